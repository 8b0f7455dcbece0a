import type { CompareValue, ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { internalName } from '#protocols/scim/internal-name.ts'

/** RFC 7644 3.4.2.2 text, which reads back as the same filter. Lists of nothing have no such form and are not printed. */
export function printScimFilter(filter: ScimFilter): string {
  switch (filter.kind) {
    case 'and':
    case 'or': {
      if (filter.filters.length === 0) throw new TypeError(`an empty ${filter.kind} has no text`)
      return filter.filters.map(printPart).join(` ${filter.kind} `)
    }
    case 'not':
      return `not (${printScimFilter(filter.filter)})`
    case 'present':
      return `${internalName(filter.path)} pr`
    case 'compare':
      return `${internalName(filter.path)} ${filter.operator} ${printValue(filter.value)}`
    case 'element':
      return `${internalName(filter.of)}[${printScimFilter(filter.filter)}]`
  }
}

/** A list of one is itself; others stand in parentheses inside one another. */
function printPart(filter: ScimFilter): string {
  const text = printScimFilter(filter)
  return (filter.kind === 'and' || filter.kind === 'or') && filter.filters.length > 1 ? `(${text})` : text
}

/** As JSON has it, which is how RFC 7644 has it. */
const printValue = (value: CompareValue): string => JSON.stringify(value)
