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
    return operator === 'eq' || operator === 'ne' ? { value } : { problem: `${operator} cannot compare with null` }
  }
  switch (type) {
    case 'complex':
      return { problem: `${name} is compared by one of its sub-attributes` }
    case 'boolean': {
      if (operator !== 'eq' && operator !== 'ne') return { problem: `${operator} does not apply to ${name}` }
      const word = String(value).toLowerCase()
      if ((word !== 'true' && word !== 'false') || (strict && typeof value !== 'boolean'))
        return { problem: `${name} is true or false` }
      return { value: word === 'true' }
    }
    case 'integer':
    case 'decimal':
      if (textual.has(operator)) return { problem: `${operator} does not apply to ${name}` }
      return readNumber(name, value, strict)
    case 'dateTime':
      if (textual.has(operator)) return { problem: `${operator} does not apply to ${name}` }
      if (typeof value !== 'string' || Number.isNaN(dateTimeMillis(value)))
        return { problem: `${name} is a date and time` }
      return { value }
    case 'binary':
      if (ordering.has(operator)) return { problem: `${operator} does not apply to ${name}` }
      break
  }
  if (typeof value !== 'string') return { problem: `${name} is compared with a text in quotes` }
  // No attribute can hold these, and not every store can be asked for them.
  return value.isWellFormed() && !value.includes('\0')
    ? { value }
    : { problem: 'a text holds a character that is not allowed' }
}

function readNumber(name: string, value: string | number | boolean, strict: boolean) {
  const quotedNumber = typeof value === 'string' && !strict && /^-?\d{1,15}(\.\d{1,15})?$/.test(value)
  const number = quotedNumber ? Number(value) : value
  return typeof number === 'number' ? { value: number } : { problem: `${name} is a number` }
}
