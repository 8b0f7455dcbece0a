import type { JsonObject } from '#kernel/json.ts'

interface Dated {
  readonly version?: string
  readonly created?: Date
  readonly modified?: Date
}

/** RFC 7643 3.1; dates and version where the store has them. */
export function resourceMeta(resourceType: string, location: string, stored: Dated): JsonObject {
  const { created, modified, version } = stored
  return {
    resourceType,
    ...(created === undefined ? {} : { created: created.toISOString() }),
    ...(modified === undefined ? {} : { lastModified: modified.toISOString() }),
    location,
    ...(version === undefined ? {} : { version: `W/"${version}"` }),
  }
}
