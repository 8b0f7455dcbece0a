import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { dateTimeMillis } from '#protocols/scim/date-time.ts'
import type { CompareOperator, CompareValue, ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { isUnassigned, readAttribute } from '#protocols/scim/resource.ts'
import type { AttributePath } from '#protocols/scim/resource-schema.ts'
import type { SchemaAttribute } from '#protocols/scim/schema.ts'

/**
 * Whether a resource, or an element of one, satisfies the filter. Two-valued: a comparison with an absent attribute is
 * false, its negation true. Comparisons with several values are true when one value compares so, and `ne` is the
 * negation of `eq`.
 */
export function evaluateFilter(filter: ScimFilter, object: JsonObject): boolean {
  switch (filter.kind) {
    case 'and':
      return filter.filters.every((part) => evaluateFilter(part, object))
    case 'or':
      return filter.filters.some((part) => evaluateFilter(part, object))
    case 'not':
      return !evaluateFilter(filter.filter, object)
    case 'present':
      return leafValues(object, filter.path).some(isPresent)
    case 'compare':
      return evaluateCompare(filter.operator, filter.path, filter.value, object)
    case 'element':
      return asList(readAttribute(object, filter.of)).some(
        (element) => isJsonObject(element) && evaluateFilter(filter.filter, element),
      )
  }
}

function evaluateCompare(
  operator: CompareOperator,
  path: AttributePath,
  value: CompareValue,
  object: JsonObject,
): boolean {
  const values = leafValues(object, path)
  if (value === null) return (operator === 'eq') !== values.some(isPresent)
  const leaf = path.sub ?? path.attribute
  if (operator === 'ne') return !values.some((candidate) => compare('eq', leaf, candidate, value))
  return values.some((candidate) => compare(operator, leaf, candidate, value))
}

function compare(operator: CompareOperator, leaf: SchemaAttribute, candidate: JsonValue, value: CompareValue): boolean {
  if (typeof candidate === 'string' && typeof value === 'string') {
    if (leaf.type === 'dateTime') return ordered(operator, dateTimeMillis(candidate), dateTimeMillis(value))
    return compareTexts(operator, fold(leaf, candidate), fold(leaf, value))
  }
  if (typeof candidate === 'number' && typeof value === 'number') return ordered(operator, candidate, value)
  return operator === 'eq' && candidate === value
}

function compareTexts(operator: CompareOperator, a: string, b: string): boolean {
  if (operator === 'co') return a.includes(b)
  if (operator === 'sw') return a.startsWith(b)
  if (operator === 'ew') return a.endsWith(b)
  return ordered(operator, a, b)
}

function ordered<T extends string | number>(operator: CompareOperator, a: T, b: T): boolean {
  switch (operator) {
    case 'eq':
      return a === b
    case 'gt':
      return a > b
    case 'ge':
      return a >= b
    case 'lt':
      return a < b
    case 'le':
      return a <= b
    default:
      return false
  }
}

const fold = (leaf: SchemaAttribute, text: string): string => (leaf.caseExact ? text : text.toLowerCase())

/** Equal as the attribute's case rule has it. */
export const equalBySchema = (leaf: SchemaAttribute, a: JsonValue, b: JsonValue): boolean =>
  typeof a === 'string' && typeof b === 'string' ? fold(leaf, a) === fold(leaf, b) : a === b

function leafValues(object: JsonObject, path: AttributePath): readonly JsonValue[] {
  const values = asList(readAttribute(object, path))
  const { sub } = path
  if (sub === undefined) return values
  return values.flatMap((value) => (isJsonObject(value) ? asList(value[sub.name]) : []))
}

const asList = (value: JsonValue | undefined): readonly JsonValue[] => {
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? value : [value as JsonValue]
}

const isPresent = (value: JsonValue): boolean => value !== '' && !isUnassigned(value)
