import type { AttributeSource } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { evaluate } from '#identity/filter/evaluate.ts'
import { printFilter } from '#identity/filter/print-filter.ts'

const mostValues = 5
const longestValue = 200

/** The clauses because of which a filter does not match, each with the values it saw. Empty where it matches. */
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
