import type { CompareFilter, Filter, SubstringFilter } from '#identity/filter/ast.ts'
import { caseExactMatch, caseExactSubstringsMatch } from '#identity/filter/matching-rules.ts'

/**
 * RFC 4515 text. `greater` and `less` have no form of their own there and are written as `(&(a>=v)(!(a=v)))`; that
 * letter case counts is written as a matching rule, which exists for equality and substrings only.
 */
export function printFilter(filter: Filter): string {
  switch (filter.kind) {
    case 'and':
      return `(&${filter.filters.map(printFilter).join('')})`
    case 'or':
      return `(|${filter.filters.map(printFilter).join('')})`
    case 'not':
      return `(!${printFilter(filter.filter)})`
    case 'present':
      return `(${filter.attribute}=*)`
    case 'substring':
      return printSubstring(filter)
    case 'greater':
      return `(&${printComparison(filter, '>=')}(!${printEquality(filter)}))`
    case 'less':
      return `(&${printComparison(filter, '<=')}(!${printEquality(filter)}))`
    case 'greaterOrEqual':
      return printComparison(filter, '>=')
    case 'lessOrEqual':
      return printComparison(filter, '<=')
    case 'approximate':
      return printComparison(filter, '~=')
    case 'equal':
      return printEquality(filter)
  }
}

const printEquality = (filter: CompareFilter): string =>
  printComparison(filter, filter.caseExact === true ? `:${caseExactMatch}:=` : '=')

const printComparison = ({ attribute, value }: CompareFilter, operator: string): string =>
  `(${attribute}${operator}${escapeFilterValue(value)})`

function printSubstring({ attribute, initial = '', any, final = '', caseExact }: SubstringFilter): string {
  const fragments = [initial, ...any, final]
  if (caseExact !== true) return `(${attribute}=${fragments.map(escapeFilterValue).join('*')})`
  const assertion = fragments.map((fragment) => fragment.replaceAll('\\', '\\5C').replaceAll('*', '\\2A')).join('*')
  return `(${attribute}:${caseExactSubstringsMatch}:=${escapeFilterValue(assertion)})`
}

function escapeFilterValue(value: string): string {
  let escaped = ''
  for (const char of value) {
    if (char === '*' || char === '(' || char === ')' || char === '\\' || char < ' ') {
      escaped += `\\${char.charCodeAt(0).toString(16).padStart(2, '0')}`
    } else {
      escaped += char
    }
  }
  return escaped
}
