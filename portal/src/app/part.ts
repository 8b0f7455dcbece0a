/** A part of the portal that is loaded when it is needed did not come: the connection is gone, or a new version is there. */
export class MissingPart extends Error {}

/** Loads a part; whoever shows the failure offers to load the page again, since a browser does not ask twice for a part. */
export const part =
  <T>(load: () => Promise<T>): (() => Promise<T>) =>
  async () => {
    try {
      return await load()
    } catch (cause) {
      throw new MissingPart('a part of the portal could not be loaded', { cause })
    }
  }
