import { scimError } from '#protocols/scim/schema/scim-error.ts'

/** The entity tags of an If-Match or If-None-Match header (RFC 9110 13.1). */
interface EntityTags {
  /** Whether one of them is the tag of this version; `*` matches any. */
  matches(version: string | undefined): boolean
  /** `*` matches every version. */
  readonly any: boolean
}

export const maxTagsLength = 8192
const tag = /[ \t]*(?:W\/)?"([\x21\x23-\x7e\x80-\uffff]*)"[ \t]*(?:,|$)/y

/**
 * Throws invalidValue for anything outside the grammar. Weak and strong tags compare alike, since SCIM's versions are
 * weak and its clients send them in If-Match (RFC 7644 3.14).
 */
export function parseEntityTags(text: string, headerName: string): EntityTags {
  if (text.trim() === '*') return { any: true, matches: () => true }
  const tags = new Set<string>()
  tag.lastIndex = 0
  let ends = text.length <= maxTagsLength ? 0 : -1
  while (ends >= 0 && ends < text.length) {
    const match = tag.exec(text)
    if (match !== null) tags.add(match[1] ?? '')
    ends = match === null ? -1 : tag.lastIndex
  }
  if (ends < 0 || tags.size === 0) {
    throw scimError('invalidValue', `${headerName} must be * or a list of entity tags in double quotes.`)
  }
  return { any: false, matches: (version) => version !== undefined && tags.has(opaque(version)) }
}

/** The entity tag of a version; it is also the `meta.version` of the resource. */
export const entityTag = (version: string): string => `W/"${opaque(version)}"`

/** A version, encoded in the characters that a tag may contain. */
const opaque = (version: string): string =>
  /^\w*$/.test(version)
    ? version
    : version.replace(/[^\x21\x23\x24\x26-\x7e]/gu, (char) => encodeURIComponent(char.toWellFormed()))
