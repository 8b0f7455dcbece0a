/** A lazily loaded part of the portal failed to load: the connection is lost, or a new version was installed. */
export class MissingPart extends Error {}

/** Loads a part; the error view offers to reload the page, since a browser does not fetch a failed part again. */
export const part =
  <T>(load: () => Promise<T>): (() => Promise<T>) =>
  async () => {
    try {
      return await load()
    } catch (cause) {
      throw new MissingPart('a part of the portal could not be loaded', { cause })
    }
  }
