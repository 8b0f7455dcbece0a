import { compareCodePoints, foldPart, foldValue } from '#kernel/text/compare-texts.ts'
import type { CompareFilter, Filter, SubstringFilter } from './ast.ts'
import type { AttributeSource } from './attribute-source.ts'
import { printFilter } from './filter-text.ts'

/**
 * Three-valued, as RFC 4511 4.5.1.7: undefined if a compared attribute is absent, so that a negation of it is not a
 * match either. Claims of a token are compared with letter case, unless the filter says otherwise.
 */
export function evaluate(filter: Filter, source: AttributeSource): boolean | undefined {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return combine(filter.filters, source, filter.kind === 'or')
    case 'not': {
      const inner = evaluate(filter.filter, source)
      return inner === undefined ? undefined : !inner
    }
    case 'present':
      return source.values(filter.attribute).length > 0
    default: {
      const values = source.values(filter.attribute)
      if (values.length === 0) return undefined
      const caseExact = filter.caseExact ?? source.isClaim?.(filter.attribute) ?? false
      return filter.kind === 'substring'
        ? hasSubstrings(filter, values, caseExact)
        : hasComparable(filter, values, caseExact)
    }
  }
}

/** Undefined does not match. */
export const matches = (filter: Filter, source: AttributeSource): boolean => evaluate(filter, source) === true

/** One `decisive` result decides: false for and, true for or. */
function combine(filters: readonly Filter[], source: AttributeSource, decisive: boolean): boolean | undefined {
  let known = true
  for (const filter of filters) {
    const result = evaluate(filter, source)
    if (result === decisive) return decisive
    if (result === undefined) known = false
  }
  return known ? !decisive : undefined
}

function hasComparable({ kind, value }: CompareFilter, values: readonly string[], caseExact: boolean): boolean {
  if (kind === 'equal' || kind === 'approximate') {
    const wanted = foldValue(value, caseExact)
    return values.some((candidate) => foldValue(candidate, caseExact) === wanted)
  }
  const holds = orderings[kind]
  return values.some((candidate) => holds(compareValues(candidate, value, caseExact)))
}

const orderings = {
  greaterOrEqual: (order: number) => order >= 0,
  lessOrEqual: (order: number) => order <= 0,
  greater: (order: number) => order > 0,
  less: (order: number) => order < 0,
}

function hasSubstrings(filter: SubstringFilter, values: readonly string[], caseExact: boolean): boolean {
  const initial = foldPart(filter.initial ?? '', caseExact)
  const final = foldPart(filter.final ?? '', caseExact)
  const any = filter.any.map((fragment) => foldPart(fragment, caseExact))
  return values.some((value) => {
    const text = foldPart(value, caseExact)
    if (!text.startsWith(initial)) return false
    const end = text.length - final.length
    let at = initial.length
    for (const fragment of any) {
      const found = text.indexOf(fragment, at)
      if (found < 0) return false
      at = found + fragment.length
    }
    return at <= end && text.endsWith(final)
  })
}

const mostValues = 5
const longestValue = 200

/** The clauses that make a filter fail, each with the values it saw. Empty if the filter matches. */
export function failedClauses(filter: Filter, source: AttributeSource): readonly string[] {
  if (evaluate(filter, source) === true) return []
  switch (filter.kind) {
    case 'and':
      return filter.filters.flatMap((inner) => failedClauses(inner, source))
    case 'or': {
      if (filter.filters.length === 0) return ['(|) never matches']
      const branches = filter.filters.map((inner) => failedClauses(inner, source).join(' and '))
      return branches.length === 1 ? branches : [`no alternative matches: ${branches.join(', or ')}`]
    }
    case 'not':
      return [`${printFilter(filter)} does not match: ${seen(attributesOf(filter.filter), source)}`]
    default:
      return [`${printFilter(filter)} does not match: ${seen([filter.attribute], source)}`]
  }
}

function attributesOf(filter: Filter): readonly string[] {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return [...new Set(filter.filters.flatMap(attributesOf))]
    case 'not':
      return attributesOf(filter.filter)
    default:
      return [filter.attribute]
  }
}

function seen(names: readonly string[], source: AttributeSource): string {
  const texts = names.map((name) => {
    const values = source.values(name)
    if (values.length === 0) return `${name} is absent`
    const shown = values.slice(0, mostValues).map((value) => JSON.stringify(value.slice(0, longestValue)))
    const more = values.length > mostValues ? ` and ${values.length - mostValues} more` : ''
    return `${name} is ${shown.join(', ')}${more}`
  })
  return texts.length === 0 ? 'it names no attribute' : texts.join(', ')
}

/**
 * Negative, zero or positive. Whole numbers of at most 18 digits compare as numbers, everything else by the code points
 * of the folded text, as databases with a binary collation do.
 */
export function compareValues(a: string, b: string, caseExact: boolean): number {
  if (isWholeNumber(a) && isWholeNumber(b)) {
    const difference = BigInt(a) - BigInt(b)
    return difference < 0n ? -1 : difference > 0n ? 1 : 0
  }
  return compareCodePoints(foldValue(a, caseExact), foldValue(b, caseExact))
}

const isWholeNumber = (text: string): boolean => /^-?\d{1,18}$/.test(text)
