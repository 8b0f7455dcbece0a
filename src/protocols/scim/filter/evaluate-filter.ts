import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { compareCodePoints, foldPart, foldValue } from '#kernel/text/compare-texts.ts'
import type { CompareOperator, CompareValue, ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { readAttribute } from '#protocols/scim/schema/resource.ts'
import type { AttributePath, AttributeRef } from '#protocols/scim/schema/resource-schema.ts'
import { dateTimeMillis, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'

type FilterTest = (object: JsonObject) => boolean

const compiled = new WeakMap<ScimFilter, FilterTest>()

/**
 * Whether a resource, or an element of one, satisfies the filter. Two-valued: a comparison with an absent attribute
 * is false, its negation true. Comparisons with several values are true if one value compares so, and `ne` is the
 * negation of `eq`. A filter is prepared the first time, so that many candidates can be tested with it.
 */
export function evaluateFilter(filter: ScimFilter, object: JsonObject): boolean {
  let test = compiled.get(filter)
  if (test === undefined) {
    test = prepare(filter)
    compiled.set(filter, test)
  }
  return test(object)
}

function prepare(filter: ScimFilter): FilterTest {
  switch (filter.kind) {
    case 'and': {
      const tests = filter.filters.map(prepare)
      return (object) => tests.every((test) => test(object))
    }
    case 'or': {
      const tests = filter.filters.map(prepare)
      return (object) => tests.some((test) => test(object))
    }
    case 'not': {
      const test = prepare(filter.filter)
      return (object) => !test(object)
    }
    case 'present':
      return someValue(filter.path, isPresent)
    case 'compare':
      return prepareCompare(filter.operator, filter.path, filter.value)
    case 'element': {
      const test = prepare(filter.filter)
      return someValue(filter.of, (element) => test(isJsonObject(element) ? element : { value: element }))
    }
  }
}

function prepareCompare(operator: CompareOperator, path: AttributePath, value: CompareValue): FilterTest {
  const negative = operator === 'ne' || (operator === 'eq' && value === null)
  const test = value === null ? isPresent : compareWith(negative ? 'eq' : operator, path.sub ?? path.attribute, value)
  const some = someValue(path, test)
  // "ne null" is presence, which the test already checks.
  return negative && !(operator === 'ne' && value === null) ? (object) => !some(object) : some
}

type ValueTest = (value: JsonValue) => boolean

/** Whether one of the values at a path passes; no list is made on the way. */
function someValue(path: AttributePath, test: ValueTest): FilterTest {
  const name = path.sub?.name
  const each: ValueTest =
    name === undefined
      ? (value) => value !== null && test(value)
      : (value) => {
          const part = isJsonObject(value) ? value[name] : undefined
          if (part === undefined || part === null) return false
          return Array.isArray(part) ? part.some(test) : test(part)
        }
  return (object) => {
    const value = readAttribute(object, path)
    if (value === undefined || value === null) return false
    return Array.isArray(value) ? value.some(each) : each(value)
  }
}

function compareWith(operator: CompareOperator, leaf: SchemaAttribute, wanted: string | number | boolean): ValueTest {
  if (typeof wanted === 'boolean') return (value) => operator === 'eq' && value === wanted
  if (typeof wanted === 'number') return (value) => typeof value === 'number' && ordered(operator, value, wanted)
  if (leaf.type === 'dateTime') {
    const millis = dateTimeMillis(wanted)
    const asked = timeOperator(operator, wanted)
    return (value) => typeof value === 'string' && ordered(asked, dateTimeMillis(value), millis)
  }
  const fold = operator === 'co' || operator === 'sw' || operator === 'ew' ? foldPart : foldValue
  const folded = fold(wanted, leaf.caseExact)
  return (value) => typeof value === 'string' && compareTexts(operator, fold(value, leaf.caseExact), folded)
}

function compareTexts(operator: CompareOperator, a: string, b: string): boolean {
  if (operator === 'eq') return a === b
  if (operator === 'co') return a.includes(b)
  if (operator === 'sw') return a.startsWith(b)
  if (operator === 'ew') return a.endsWith(b)
  return ordered(operator, compareCodePoints(a, b), 0)
}

function ordered(operator: CompareOperator, a: number, b: number): boolean {
  if (operator === 'eq') return a === b
  if (operator === 'gt') return a > b
  if (operator === 'ge') return a >= b
  if (operator === 'lt') return a < b
  return operator === 'le' && a <= b
}

/** The text for comparison: without regard to letter case unless the attribute is caseExact. */
export const foldBySchema = (leaf: SchemaAttribute, text: string): string => foldValue(text, leaf.caseExact)

/** Equal by the attribute's case rule. */
export const equalBySchema = (leaf: SchemaAttribute, a: JsonValue, b: JsonValue): boolean =>
  typeof a === 'string' && typeof b === 'string' ? foldBySchema(leaf, a) === foldBySchema(leaf, b) : a === b

/** RFC 7644 3.4.2.2: not empty, and a complex value has at least one part that is not. As deep as schemas are. */
function isPresent(value: JsonValue): boolean {
  if (value === null || value === '') return false
  if (Array.isArray(value)) return value.some(isPresent)
  return isJsonObject(value) ? Object.values(value).some(isPresent) : true
}

/** Matches nothing. */
export const never: ScimFilter = { kind: 'or', filters: [] }

export const isNever = (filter: ScimFilter | undefined): boolean => filter?.kind === 'or' && filter.filters.length === 0

type Settled = ScimFilter | boolean

/**
 * The filter without conditions whose outcome is known, since every resource has the same value of the attribute: the one
 * in `known`, or none. Undefined if no condition remains, `never` if nothing matches.
 */
export function settleFilter(
  filter: ScimFilter,
  isKnown: (ref: AttributeRef, sub: string | undefined) => boolean,
  known: JsonObject,
): ScimFilter | undefined {
  const settled = settle(filter, isKnown, known)
  return settled === true ? undefined : settled === false ? never : settled
}

function settle(
  filter: ScimFilter,
  isKnown: (ref: AttributeRef, sub: string | undefined) => boolean,
  known: JsonObject,
): Settled {
  switch (filter.kind) {
    case 'and':
    case 'or': {
      const decisive = filter.kind === 'or'
      const parts = filter.filters.map((part) => settle(part, isKnown, known))
      if (parts.includes(decisive)) return decisive
      const open = parts.filter((part) => typeof part !== 'boolean')
      const [only] = open
      return only === undefined ? !decisive : open.length === 1 ? only : { kind: filter.kind, filters: open }
    }
    case 'not': {
      const inner = settle(filter.filter, isKnown, known)
      return typeof inner === 'boolean' ? !inner : { kind: 'not', filter: inner }
    }
    case 'element':
      return isKnown(filter.of, undefined) ? evaluateFilter(filter, known) : filter
    default:
      return isKnown(filter.path, filter.path.sub?.name) ? evaluateFilter(filter, known) : filter
  }
}

/**
 * The operator for a comparison in milliseconds with the time in `text`. If the time has more digits, `gt` and `lt` include
 * its whole millisecond: stored times lost those digits, and no resource may be missed because of that.
 */
export function timeOperator(operator: CompareOperator, text: string): CompareOperator {
  if (!/\.\d{3}\d*[1-9]/.test(text)) return operator
  return operator === 'gt' ? 'ge' : operator === 'lt' ? 'le' : operator
}
