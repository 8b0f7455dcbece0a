import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'

const nameAttributes: ReadonlySet<string> = new Set([
  'member',
  'uniquemember',
  'memberof',
  'manager',
  'owner',
  'seealso',
  'secretary',
  'roleoccupant',
])

/** True for attributes whose values are distinguished names. */
export const holdsNames = (attribute: string): boolean => nameAttributes.has(attribute.toLowerCase())

/** The filter with every distinguished name in it changed; other values stay the same. */
export function withNames(filter: Filter, change: (dn: Dn) => Dn): Filter {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return { ...filter, filters: filter.filters.map((part) => withNames(part, change)) }
    case 'not':
      return { ...filter, filter: withNames(filter.filter, change) }
    case 'equal':
      return holdsNames(filter.attribute) ? { ...filter, value: changedName(filter.value, change) } : filter
    default:
      return filter
  }
}

/** The filter with distinguished names in normal form, so that they can be compared as texts. */
export const withPlainNames = (filter: Filter): Filter => withNames(filter, (dn) => dn)

export function changedName(text: string, change: (dn: Dn) => Dn): string {
  try {
    return change(Dn.parse(text)).toString()
  } catch {
    return text
  }
}
