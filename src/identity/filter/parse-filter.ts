import type { CompareFilter, Filter, SubstringFilter } from '#identity/filter/ast.ts'
import { type FilterItem, readFilter, type ValuePart } from '#identity/filter/filter-grammar.ts'
import {
  caseExactMatch,
  caseExactSubstringsMatch,
  caseIgnoreMatch,
  caseIgnoreSubstringsMatch,
  matchingRule,
} from '#identity/filter/matching-rules.ts'

/** RFC 4515 text, at most 8 KiB and 50 levels deep; throws FilterSyntaxError. */
export function parseFilter(text: string): Filter {
  return readFilter<Filter>(text, false, {
    and: (filters) => ({ kind: 'and', filters }),
    or: (filters) => ({ kind: 'or', filters }),
    not: (filter) => ({ kind: 'not', filter }),
    item: itemFilter,
  })
}

const comparisons = {
  '=': 'equal',
  '~=': 'approximate',
  '>=': 'greaterOrEqual',
  '<=': 'lessOrEqual',
} as const satisfies Record<string, CompareFilter['kind']>

/** What an item without placeholders means. Throws an Error with the reason when it means nothing. */
export function itemFilter({ attribute, operator, rule, value }: FilterItem): Filter {
  const hasWildcard = value.some((part) => part.kind === 'wildcard')
  if (operator === '=' && hasWildcard) return substring(attribute, value)
  if (hasWildcard) throw new Error(`"*" in a value behind "${operator}" must be escaped (\\2a)`)
  const text = joinText(value)
  if (operator !== ':=') return { kind: comparisons[operator], attribute, value: text }
  switch (matchingRule(rule ?? '')) {
    case caseExactMatch:
      return { kind: 'equal', attribute, value: text, caseExact: true }
    case caseExactSubstringsMatch:
      return substring(attribute, readSubstringAssertion(text), true)
    case caseIgnoreMatch:
      return { kind: 'equal', attribute, value: text, caseExact: false }
    case caseIgnoreSubstringsMatch:
      return substring(attribute, readSubstringAssertion(text), false)
    default:
      throw new Error(`the matching rule "${rule}" is not supported`)
  }
}

function substring(attribute: string, value: readonly ValuePart[], caseExact?: boolean): Filter {
  const fragments = splitAtWildcards(value)
  const initial = fragments.shift() ?? ''
  const final = fragments.pop() ?? ''
  const any = fragments.filter((fragment) => fragment !== '')
  if (initial === '' && final === '' && any.length === 0) return { kind: 'present', attribute }
  const filter: SubstringFilter = {
    kind: 'substring',
    attribute,
    ...(initial === '' ? {} : { initial }),
    any,
    ...(final === '' ? {} : { final }),
    ...(caseExact === undefined ? {} : { caseExact }),
  }
  return filter
}

function splitAtWildcards(value: readonly ValuePart[]): string[] {
  const fragments = ['']
  for (const part of value) {
    if (part.kind === 'wildcard') fragments.push('')
    else if (part.kind === 'text') fragments.push((fragments.pop() ?? '') + part.text)
  }
  return fragments
}

const joinText = (value: readonly ValuePart[]): string =>
  value.map((part) => (part.kind === 'text' ? part.text : '')).join('')

/** RFC 4517 3.3.30: `*` between fragments, `\2A` and `\5C` within them. */
function readSubstringAssertion(text: string): ValuePart[] {
  const parts = text.split('*').flatMap((fragment, i): ValuePart[] => {
    const literal: ValuePart = { kind: 'text', text: unescapeFragment(fragment) }
    return i === 0 ? [literal] : [{ kind: 'wildcard' }, literal]
  })
  if (parts.length === 1) throw new Error('a substring assertion needs a "*" (\\2a)')
  return parts
}

const unescapeFragment = (text: string): string =>
  text.replace(/\\(2a|5c)/gi, (pair) => (pair.toLowerCase() === '\\2a' ? '*' : '\\'))
