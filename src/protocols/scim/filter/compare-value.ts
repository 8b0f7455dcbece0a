import { dateTimeMillis } from '#protocols/scim/date-time.ts'
import type { CompareOperator, CompareValue } from '#protocols/scim/filter/filter-ast.ts'
import type { SchemaAttribute } from '#protocols/scim/schema.ts'

const ordering: ReadonlySet<CompareOperator> = new Set(['gt', 'ge', 'lt', 'le'])
const textual: ReadonlySet<CompareOperator> = new Set(['co', 'sw', 'ew'])

/** The value in the attribute's type, or why the comparison makes no sense. Strictly, quotes make it a text. */
export function readCompareValue(
  attribute: SchemaAttribute,
  operator: CompareOperator,
  value: CompareValue,
  strict = false,
): { readonly value: CompareValue } | { readonly problem: string } {
  const { name, type } = attribute
  if (value === null) {
    return operator === 'eq' || operator === 'ne'
      ? { value }
      : { problem: `${name}: ${operator} cannot compare with null. Use eq or ne.` }
  }
  switch (type) {
    case 'complex':
      return { problem: `${name} is complex. Compare one of its sub-attributes, such as ${firstPart(attribute)}.` }
    case 'boolean': {
      if (operator !== 'eq' && operator !== 'ne')
        return { problem: `${name}: ${operator} does not apply to a boolean. Use eq or ne.` }
      const word = String(value).toLowerCase()
      if ((word !== 'true' && word !== 'false') || (strict && typeof value !== 'boolean'))
        return { problem: `${name} must be compared with true or false${strict ? ', without quotes' : ''}.` }
      return { value: word === 'true' }
    }
    case 'integer':
    case 'decimal':
      if (textual.has(operator)) return { problem: notTextual(name, operator, 'a number') }
      return readNumber(name, value, strict)
    case 'dateTime':
      if (textual.has(operator)) return { problem: notTextual(name, operator, 'a date and time') }
      if (typeof value !== 'string' || Number.isNaN(dateTimeMillis(value)))
        return { problem: `${name} must be compared with a date and time such as "2026-01-31T09:00:00Z".` }
      return { value }
    case 'binary':
      if (ordering.has(operator))
        return { problem: `${name}: ${operator} does not apply to binary values. Use eq, ne, co, sw or ew.` }
      break
  }
  if (typeof value !== 'string') return { problem: `${name} must be compared with a text in double quotes.` }
  // No attribute can hold these, and not every store can be asked for them.
  return value.isWellFormed() && !value.includes('\0')
    ? { value }
    : { problem: `${name}: the value contains NUL or half of a surrogate pair. Remove that character.` }
}

const notTextual = (name: string, operator: CompareOperator, type: string): string =>
  `${name}: ${operator} does not apply to ${type}. Use eq, ne, gt, ge, lt or le.`

const firstPart = ({ name, subAttributes: [first] }: SchemaAttribute): string =>
  first === undefined ? name : `${name}.${first.name}`

function readNumber(name: string, value: string | number | boolean, strict: boolean) {
  const quotedNumber = typeof value === 'string' && !strict && /^-?\d{1,15}(\.\d{1,15})?$/.test(value)
  const number = quotedNumber ? Number(value) : value
  return typeof number === 'number' ? { value: number } : { problem: `${name} must be compared with a number.` }
}
