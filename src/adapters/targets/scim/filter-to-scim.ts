import { timeAttribute, timeValue, valueMillis } from '#identity/entry-times.ts'
import type { CompareFilter, Filter, PresentFilter, SubstringFilter } from '#identity/filter/ast.ts'
import type { CompareOperator, CompareValue, ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { type AttributePath, internalName, type ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import type { SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { isDateTime } from '#protocols/scim/schema/schema.ts'
import { isText, type ResourceMapping } from './resource-mapping.ts'

/** The meaning of a name in a filter to the server. */
export type FilterName =
  | {
      readonly kind: 'path'
      readonly path: AttributePath
      readonly leaf: SchemaAttribute
      /** Every resource has one. */
      readonly always?: boolean
      /** Letter case counts here as well, whatever the filter requires. */
      readonly exact?: boolean
      /** Empty texts are not read from it. */
      readonly neverEmpty?: boolean
    }
  /** Only the resource itself shows whether it matches. */
  | { readonly kind: 'unknown' }
  /** No resource has it. */
  | { readonly kind: 'absent' }

/** The filter for the server, which finds at least all matches. */
export type Narrowed =
  | { readonly kind: 'some'; readonly filter: ScimFilter; readonly exact: boolean }
  | { readonly kind: 'all'; readonly exact: boolean }
  | { readonly kind: 'none'; readonly exact: true }

type Leaf = PresentFilter | CompareFilter | SubstringFilter
type Path = FilterName & { readonly kind: 'path' }

/** Longer values are searched by their beginning: servers limit the length of a filter. */
const maxValue = 500

const none: Narrowed = { kind: 'none', exact: true }
const everything: Narrowed = { kind: 'all', exact: true }
const unknown: Narrowed = { kind: 'all', exact: false }

/**
 * SCIM filters are true or false; ours may be neither if a compared attribute is absent. So a negation is pushed down
 * to the comparisons, and requires there that the attribute is present.
 */
export function narrow(filter: Filter, nameOf: (attribute: string) => FilterName, negated = false): Narrowed {
  switch (filter.kind) {
    case 'and':
    case 'or': {
      const parts = filter.filters.map((part) => narrow(part, nameOf, negated))
      return (filter.kind === 'and') === negated ? anyOf(parts) : allOf(parts)
    }
    case 'not':
      return narrow(filter.filter, nameOf, !negated)
    default:
      return narrowLeaf(filter, nameOf(filter.attribute), negated)
  }
}

function allOf(parts: readonly Narrowed[]): Narrowed {
  if (parts.some(({ kind }) => kind === 'none')) return none
  const exact = parts.every((part) => part.exact)
  return (
    joined(
      'and',
      parts.flatMap((part) => (part.kind === 'some' ? [part.filter] : [])),
      exact,
    ) ?? { kind: 'all', exact }
  )
}

function anyOf(parts: readonly Narrowed[]): Narrowed {
  const all = parts.filter(({ kind }) => kind === 'all')
  if (all.length > 0) return { kind: 'all', exact: all.some(({ exact }) => exact) }
  const exact = parts.every((part) => part.exact)
  return (
    joined(
      'or',
      parts.flatMap((part) => (part.kind === 'some' ? [part.filter] : [])),
      exact,
    ) ?? none
  )
}

function joined(kind: 'and' | 'or', filters: readonly ScimFilter[], exact: boolean): Narrowed | undefined {
  const [first] = filters
  if (first === undefined) return undefined
  return { kind: 'some', filter: filters.length === 1 ? first : { kind, filters }, exact }
}

/**
 * The same for a server that only evaluates `eq` with one of these attributes: a comparison that every match fulfills, or
 * everything.
 */
export function onlyEqual(asked: Narrowed, names: readonly string[] | undefined): Narrowed {
  if (names === undefined || asked.kind !== 'some') return asked
  const isServed = (filter: ScimFilter): boolean =>
    filter.kind === 'compare' && filter.operator === 'eq' && names.includes(internalName(filter.path))
  if (isServed(asked.filter)) return asked
  const part = asked.filter.kind === 'and' ? asked.filter.filters.find(isServed) : undefined
  return part === undefined ? unknown : { kind: 'some', filter: part, exact: false }
}

function narrowLeaf(filter: Leaf, name: FilterName, negated: boolean): Narrowed {
  if (name.kind === 'unknown') return unknown
  if (name.kind === 'absent') return filter.kind === 'present' && negated ? everything : none
  const there = present(name)
  if (filter.kind === 'present') return negated ? opposite(there) : there
  const matching = comparison(filter, name)
  if (!negated) return matching ?? inexact(there)
  if (matching === undefined || !matching.exact) return inexact(there)
  return allOf([there, opposite(matching)])
}

/** `pr` does not count an empty text. */
function present({ path, leaf, always = false, neverEmpty = false }: Path): Narrowed {
  if (always) return everything
  const there: ScimFilter = { kind: 'present', path }
  if (neverEmpty || leaf.multiValued || !isText(leaf)) return { kind: 'some', filter: there, exact: true }
  return { kind: 'some', filter: { kind: 'or', filters: [there, compare(path, 'eq', '')] }, exact: true }
}

function opposite(part: Narrowed): Narrowed {
  if (part.kind === 'none') return everything
  if (part.kind === 'all') return none
  return { ...part, filter: { kind: 'not', filter: part.filter } }
}

const inexact = (part: Narrowed): Narrowed => (part.kind === 'none' ? part : { ...part, exact: false })

/** Undefined if the server may compare otherwise: order, and attributes whose letter case only counts there. */
function comparison(filter: CompareFilter | SubstringFilter, name: Path): Narrowed | undefined {
  const { leaf, path } = name
  if (isText(leaf)) return ofText(filter, name)
  if (timeAttribute(`${path.attribute.name}.${path.sub?.name ?? ''}`) !== undefined) return ofTime(filter, path)
  if (filter.kind !== 'equal' && filter.kind !== 'approximate') return undefined
  const { value } = filter
  switch (leaf.type) {
    case 'boolean': {
      const word = filter.caseExact === true ? value : value.toLowerCase()
      return word === 'true' || word === 'false' ? some(path, 'eq', word === 'true') : none
    }
    case 'integer':
    case 'decimal':
      return String(Number(value)) === value && Number.isFinite(Number(value)) ? some(path, 'eq', Number(value)) : none
    case 'dateTime':
      return isDateTime(value) ? inexact(some(path, 'eq', value)) : undefined
    default:
      return undefined
  }
}

/** A time of the server may be finer than ours, which stands for its whole millisecond. */
function ofTime(filter: CompareFilter | SubstringFilter, path: AttributePath): Narrowed | undefined {
  const millis = filter.kind === 'substring' ? undefined : valueMillis(filter.value)
  if (filter.kind === 'substring' || millis === undefined) return undefined
  const from = compare(path, 'ge', timeValue(millis))
  const to = compare(path, 'lt', timeValue(millis + 1))
  switch (filter.kind) {
    case 'greater':
      return some(path, 'ge', timeValue(millis + 1))
    case 'lessOrEqual':
      return { kind: 'some', filter: to, exact: true }
    case 'equal':
    case 'approximate':
      return { kind: 'some', filter: { kind: 'and', filters: [from, to] }, exact: true }
    default:
      return some(path, filter.kind === 'less' ? 'lt' : 'ge', timeValue(millis))
  }
}

function ofText(filter: CompareFilter | SubstringFilter, name: Path): Narrowed | undefined {
  const parts = textParts(filter)
  if (parts === undefined) return undefined
  if (parts.some(({ value }) => !value.isWellFormed() || value.includes('\0'))) return none
  const { leaf, path, neverEmpty = false } = name
  if (neverEmpty && parts.some(({ value }) => value === '')) return none
  const isSensitive = filter.caseExact === true || name.exact === true
  const hasCase = parts.some(({ value }) => value.toLowerCase() !== value.toUpperCase())
  if (hasCase && leaf.caseExact && !isSensitive) return undefined
  if (parts.length === 0) return present(name)
  const exact = parts.length === 1 && (!hasCase || leaf.caseExact === isSensitive) && !parts.some(isCut)
  const filters = parts.map((part) => compare(path, ...cut(part)))
  return joined('and', filters, exact)
}

interface TextPart {
  readonly operator: CompareOperator
  readonly value: string
}

function textParts(filter: CompareFilter | SubstringFilter): TextPart[] | undefined {
  if (filter.kind === 'substring') {
    const { initial = '', any, final = '' } = filter
    const parts: TextPart[] = [
      { operator: 'sw', value: initial },
      ...any.map((value) => ({ operator: 'co', value }) as const),
      { operator: 'ew', value: final },
    ]
    return parts.filter(({ value }) => value !== '')
  }
  return filter.kind === 'equal' || filter.kind === 'approximate'
    ? [{ operator: 'eq', value: filter.value }]
    : undefined
}

const isCut = ({ value }: TextPart): boolean => value.length > maxValue

function cut(part: TextPart): [CompareOperator, string] {
  const { operator, value } = part
  if (!isCut(part)) return [operator, value]
  const points = Array.from(value.slice(0, maxValue))
  // The last one may be half of a pair.
  return [operator === 'eq' || operator === 'sw' ? 'sw' : 'co', points.slice(0, -1).join('')]
}

const compare = (path: AttributePath, operator: CompareOperator, value: CompareValue): ScimFilter => ({
  kind: 'compare',
  operator,
  path,
  value,
})

const some = (path: AttributePath, operator: CompareOperator, value: CompareValue): Narrowed => ({
  kind: 'some',
  filter: compare(path, operator, value),
  exact: true,
})

/** The meaning of a mapped attribute in a filter. */
export function slotName(attribute: string, mapping: ResourceMapping): FilterName {
  const slot = mapping.slots.byName.get(attribute.toLowerCase())
  if (slot === undefined) return { kind: 'absent' }
  switch (slot.kind) {
    case 'plain':
      // A filter can't distinguish an empty list of plain values from none.
      return slot.leaf.multiValued ? { kind: 'unknown' } : { kind: 'path', path: slot.path, leaf: slot.leaf }
    case 'elements':
      return { kind: 'path', path: slot.path, leaf: slot.path.attribute, neverEmpty: true }
    case 'values':
      return { kind: 'path', path: slot.path, leaf: slot.path.sub, neverEmpty: true }
  }
}

/** A reserved name of a time; undefined for any other attribute. */
export function timeName(attribute: string, schema: ResourceSchema): FilterName | undefined {
  const name = timeAttribute(attribute)
  const path = name === undefined ? undefined : schema.resolveAttribute(name, true)
  if (name === undefined) return undefined
  return path?.sub === undefined ? { kind: 'unknown' } : { kind: 'path', path, leaf: path.sub }
}
