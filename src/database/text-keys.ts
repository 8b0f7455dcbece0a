import { createHash } from 'node:crypto'
import { cutKey, keyLength } from '#identity/paging.ts'
import { GatewayError } from '#kernel/errors.ts'
import { foldValue } from '#kernel/text/compare-texts.ts'

/** Letter case folded here and never by a database, so that all databases agree. */
export const foldKey = (text: string): string => foldValue(text, false)

/** A folded text as it is indexed. */
export const indexKey = cutKey

/** The index has only the start of the text. */
export const isLong = (folded: string): boolean => folded.length > keyLength

/** A key for equality only, of bounded length. */
export function lookupKey(text: string): string {
  const folded = foldKey(text)
  if (!isLong(folded)) return folded
  return `${indexKey(folded)}${createHash('sha256').update(folded).digest('hex')}`
}

/** The number that a value counts as where values are ordered (`compareValues`), or null. */
export const numberOf = (value: string): bigint | null => (/^-?\d{1,18}$/.test(value) ? BigInt(value) : null)

/** PostgreSQL can't store NUL characters, nor UTF-8 halves of surrogate pairs. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** Replaces characters that a database can't store, for texts that are never rejected. */
export const storable = (text: string): string =>
  isStorable(text) ? text : text.toWellFormed().replaceAll('\0', '\ufffd')

export const optionalText = (text: string | undefined): string | null => (text === undefined ? null : storable(text))

export function assertStorable(what: string, text: string): void {
  if (!isStorable(text)) {
    const publicText = `The ${what} holds a character that cannot be stored.`
    throw new GatewayError('BAD_REQUEST', `${what} with a NUL character or half a surrogate pair`, { publicText })
  }
}

/**
 * The least text that is greater than all that start with `prefix`, in code-point order; undefined if there is
 * none.
 */
export function afterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0)
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    if (last === 0x10ffff) continue
    const next = last === 0xd7ff ? 0xe000 : last + 1
    return String.fromCodePoint(...points, next)
  }
  return undefined
}
