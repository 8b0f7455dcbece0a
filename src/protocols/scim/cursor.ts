import { createHash } from 'node:crypto'
import { scimError } from '#protocols/scim/scim-error.ts'

export const maxCursorLength = 16_384

const bindingBytes = 12
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * A cursor of RFC 9865: a position, bound to the query it is a position in. `scope` tells queries apart: the same list,
 * filter and order give the same one. It is made of unreserved characters (RFC 3986 2.3) and kept nowhere.
 */
export function writeCursor(scope: readonly string[], position: string): string {
  return Buffer.concat([binding(scope), Buffer.from(position, 'utf8')]).toString('base64url')
}

/** Throws invalidCursor when it is none, or one of another query. */
export function readCursor(scope: readonly string[], cursor: string): string {
  const bytes = cursor.length > maxCursorLength ? Buffer.alloc(0) : Buffer.from(cursor, 'base64url')
  const same = bytes.toString('base64url') === cursor && bytes.subarray(0, bindingBytes).equals(binding(scope))
  if (!same) throw invalidCursor()
  try {
    return decoder.decode(bytes.subarray(bindingBytes))
  } catch (cause) {
    throw invalidCursor(cause)
  }
}

export const invalidCursor = (cause?: unknown) =>
  scimError('invalidCursor', 'cursor: this query did not return it. Send an empty cursor for the first page.', {
    ...(cause === undefined ? {} : { cause }),
  })

export const expiredCursor = () =>
  scimError('expiredCursor', 'cursor: it has expired. Send an empty cursor for the first page.')

const binding = (scope: readonly string[]): Buffer =>
  createHash('sha256').update(JSON.stringify(scope)).digest().subarray(0, bindingBytes)
