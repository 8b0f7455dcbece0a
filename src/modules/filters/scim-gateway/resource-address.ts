import { quoted, scimError } from '#protocols/scim/scim-error.ts'

const plainId = /^[\w:-]+$/

/** Where a resource stands; `base` is the gateway's own address. Most ids need no encoding, and a page names hundreds. */
export const resourceAddress = (base: string, type: 'User' | 'Group', id: string): string =>
  `${base}/${type}s/${plainId.test(id) ? id : encodeURIComponent(id)}`

/** The longest id whose address still fits into a request, encoded. */
const maxEncodedId = 6000

/**
 * A login or group name can be the resource's id, and is part of its address then, where clients fold `.` and `..` away.
 * Throws invalidValue, naming the attribute.
 */
export function requireAddress(attribute: 'userName' | 'displayName', id: string): void {
  if (['.', '..', '.search'].includes(id)) {
    throw scimError('invalidValue', `${attribute}: ${quoted(id)} is reserved in addresses. Choose another one.`)
  }
  const { length } = encodeURIComponent(id)
  if (length <= maxEncodedId) return
  const limit = `its address has ${length} characters, and ${maxEncodedId} is the most`
  throw scimError('invalidValue', `${attribute} is too long: ${limit}. Choose a shorter one.`)
}
