import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'

/** Attributes whose values are distinguished names, in lower case. */
export const nameAttributes: ReadonlySet<string> = new Set([
  'member',
  'uniquemember',
  'memberof',
  'manager',
  'owner',
  'seealso',
  'secretary',
  'roleoccupant',
])

export const holdsNames = (attribute: string): boolean => nameAttributes.has(attribute.toLowerCase())

/** The filter with every distinguished name in it changed; other values stay the same. */
export function withNames(filter: Filter, change: (dn: Dn) => Dn, isOfNames = holdsNames): Filter {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return { ...filter, filters: filter.filters.map((part) => withNames(part, change, isOfNames)) }
    case 'not':
      return { ...filter, filter: withNames(filter.filter, change, isOfNames) }
    case 'equal':
      return isOfNames(filter.attribute) ? { ...filter, value: changedName(filter.value, change) } : filter
    default:
      return filter
  }
}

/** The filter with distinguished names in normal form, so that they can be compared as texts. */
export const withPlainNames = (filter: Filter, isOfNames = holdsNames): Filter =>
  withNames(filter, (dn) => dn, isOfNames)

/** Texts that aren't names, and names for which `change` returns undefined, stay as they are. */
export function changedName(text: string, change: (dn: Dn) => Dn | undefined): string {
  try {
    return change(Dn.parse(text))?.toString() ?? text
  } catch {
    return text
  }
}
