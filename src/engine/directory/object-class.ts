import type { Filter } from '#identity/filter/ast.ts'

/**
 * A directory filter as a target understands it: clauses about objectClass are decided here, since a target's records
 * have none, and the naming attribute becomes the target's own. True or false when nothing is left to ask.
 */
export function withObjectClass(
  filter: Filter,
  classes: readonly string[],
  namingAttribute: string,
  targetAttribute: string,
): Filter | boolean {
  const inner = (part: Filter): Filter | boolean => withObjectClass(part, classes, namingAttribute, targetAttribute)
  switch (filter.kind) {
    case 'and':
    case 'or': {
      const absorbing = filter.kind === 'or'
      const rest: Filter[] = []
      for (const part of filter.filters.map(inner)) {
        if (part === absorbing) return absorbing
        if (typeof part !== 'boolean') rest.push(part)
      }
      return rest.length === 0 ? !absorbing : { kind: filter.kind, filters: rest }
    }
    case 'not': {
      const part = inner(filter.filter)
      return typeof part === 'boolean' ? !part : { kind: 'not', filter: part }
    }
    default: {
      const name = filter.attribute.toLowerCase()
      if (name === 'objectclass') {
        if (filter.kind === 'present') return true
        const value = filter.kind === 'equal' ? filter.value.toLowerCase() : undefined
        return classes.some((known) => known.toLowerCase() === value)
      }
      return name === namingAttribute ? { ...filter, attribute: targetAttribute } : filter
    }
  }
}
