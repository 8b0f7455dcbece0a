import { isoTime } from '#kernel/iso-time.ts'
import type { JsonObject } from '#kernel/json.ts'
import { entityTag } from '#protocols/scim/entity-tag.ts'

interface Dated {
  readonly version?: string
  readonly created?: Date
  readonly modified?: Date
}

/** RFC 7643 3.1; dates and version where the store has them. */
export function resourceMeta(resourceType: string, location: string, stored: Dated): JsonObject {
  const { created, modified, version } = stored
  const meta: Record<string, string> = { resourceType }
  if (created !== undefined) meta['created'] = isoTime(created.getTime())
  if (modified !== undefined) {
    const unchanged = modified.getTime() === created?.getTime() ? meta['created'] : undefined
    meta['lastModified'] = unchanged ?? isoTime(modified.getTime())
  }
  meta['location'] = location
  if (version !== undefined) meta['version'] = entityTag(version)
  return meta
}
