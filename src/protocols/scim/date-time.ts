import type { CompareOperator } from '#protocols/scim/filter/filter-ast.ts'

const pattern = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(Z|[+-]\d{2}:\d{2})?$/

/** The moment of an xsd:dateTime (without a zone: UTC) in milliseconds; NaN when the text is none. */
export function dateTimeMillis(text: string): number {
  const match = pattern.exec(text)
  if (match === null) return Number.NaN
  const [, year, month, day, zone] = match
  // Date.parse takes 30 February for 2 March.
  if (Number(day) > new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()) return Number.NaN
  return Date.parse(zone === undefined ? `${text}Z` : text)
}

export const isDateTime = (text: string): boolean => !Number.isNaN(dateTimeMillis(text))

/**
 * The operator for a comparison in milliseconds with the time in `text`. A time with more digits stands for its whole
 * millisecond, which `gt` and `lt` then include: stored times lost those digits, and no resource may be missed for that.
 */
export function timeOperator(operator: CompareOperator, text: string): CompareOperator {
  if (!/\.\d{3}\d*[1-9]/.test(text)) return operator
  return operator === 'gt' ? 'ge' : operator === 'lt' ? 'le' : operator
}
