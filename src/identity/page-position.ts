import { createHash } from 'node:crypto'
import type { Filter } from '#identity/filter/ast.ts'
import { foldValue } from '#identity/filter/compare-values.ts'
import { printFilter } from '#identity/filter/print-filter.ts'
import type { SortOrder } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'

/** A search. A position is valid only for the search that returned it. */
export interface PageScope {
  /** Identifies the collection; any text that is different for others. */
  readonly of: string
  readonly filter: Filter | undefined
  readonly sort: SortOrder | undefined
}

/** The last entry of a page. It holds all values of the order, so that it works even after the entry is deleted. */
export interface PagePosition {
  /** The entry's own key. */
  readonly entry: string
  /** The value that the search sorts by; undefined without a value or without sorting. */
  readonly folded?: string | undefined
  readonly exact?: string | undefined
  /** How many entries the first page counted, where counting them again would cost too much. */
  readonly total?: number | undefined
}

/** Longer than any position that is returned. */
const maxLength = 8192

/** The position as a text that is safe in a URL. */
export function writePosition(scope: PageScope, { entry, folded, exact, total }: PagePosition): string {
  return Buffer.from(JSON.stringify([digest(scope), entry, folded ?? null, exact ?? null, total ?? null])).toString(
    'base64url',
  )
}

/** Throws BAD_REQUEST when the text is not a position of this search. */
export function readPosition(scope: PageScope, text: string): PagePosition {
  const parts = parse(text)
  if (parts.length !== 5 || parts[0] !== digest(scope)) throw unknownPosition()
  const [, entry, folded, exact, total] = parts
  if (!isText(entry) || !isTextOrNull(folded) || !isTextOrNull(exact)) throw unknownPosition()
  if (total !== null && !(Number.isSafeInteger(total) && Number(total) >= 0)) throw unknownPosition()
  return {
    entry,
    folded: folded ?? undefined,
    exact: exact ?? undefined,
    total: total === null ? undefined : Number(total),
  }
}

export function unknownPosition(cause?: unknown): GatewayError {
  return new GatewayError('BAD_REQUEST', 'the page position does not belong to this search', {
    cause,
    publicText: 'The page cursor does not belong to this search. Start again with the first page.',
    keyword: 'invalidCursor',
  })
}

function parse(text: string): readonly unknown[] {
  if (text.length > maxLength || !/^[\w-]+$/.test(text)) throw unknownPosition()
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(value) ? value : []
  } catch (cause) {
    throw unknownPosition(cause)
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'

const isTextOrNull = (value: unknown): value is string | null => value === null || isText(value)

function digest({ of, filter, sort }: PageScope): string {
  const order = sort === undefined ? null : [foldValue(sort.attribute, false), sort.descending, sort.caseExact]
  const text = JSON.stringify([of, filter === undefined ? null : printFilter(filter), order])
  return createHash('sha256').update(text).digest('base64url').slice(0, 12)
}
