import { scimError } from '#protocols/scim/scim-error.ts'

export const defaultCount = 100
export const maxCount = 200

/** Which part of a list is asked for: by index (RFC 7644 3.4.2.4) or by cursor (RFC 9865). */
export type ListPage =
  | {
      readonly kind: 'index'
      /** From 1. */
      readonly startIndex: number
      readonly count: number
    }
  | {
      readonly kind: 'cursor'
      /** Empty for the first page. */
      readonly cursor: string
      readonly count: number
    }

/**
 * `cursor`, even an empty one, asks for the cursor method; without it the index method is used. By index a start below 1
 * is 1 and a count below 0 is 0; by cursor a count below 1 is invalidCount. More than the maximum is the maximum.
 */
export function parsePage(query: URLSearchParams): ListPage {
  const cursor = query.get('cursor')
  const start = query.get('startIndex')
  if (cursor === null) {
    const startIndex = Math.max(1, wholeNumber(start) ?? invalid('startIndex'))
    const count = Math.max(0, wholeNumber(query.get('count'), defaultCount) ?? invalid('count'))
    return { kind: 'index', startIndex, count: Math.min(count, maxCount) }
  }
  // RFC 9865 says what each of the two asks for, so together they contradict each other.
  if (start !== null) throw scimError('invalidValue', 'cursor and startIndex cannot be used together.')
  const count = wholeNumber(query.get('count'), defaultCount)
  if (count === undefined || count < 1) {
    throw scimError('invalidCount', `count must be a whole number from 1 to ${maxCount}.`)
  }
  return { kind: 'cursor', cursor, count: Math.min(count, maxCount) }
}

/** Undefined when it is none. */
function wholeNumber(text: string | null, fallback = 1): number | undefined {
  if (text === null || text === '') return fallback
  return /^[+-]?\d{1,15}$/.test(text) ? Number(text) : undefined
}

function invalid(name: string): never {
  throw scimError('invalidValue', `${name} must be a whole number.`)
}
