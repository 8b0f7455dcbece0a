import type { Filter } from '#identity/filter/ast.ts'
import { type FilterItem, itemFilter, readFilter, type ValuePart } from '#identity/filter/filter-text.ts'

const maxAlternatives = 100

/** The values of a placeholder's name; none if it is absent. */
type ValueLookup = (name: string) => readonly string[]

/** A filter with placeholders. Its structure is fixed when it is parsed, so a value can't change it. */
export interface FilterTemplate {
  /** The names that are looked up. */
  readonly placeholders: ReadonlySet<string>
  /** The names by the attributes that they are compared with. */
  readonly comparisons: readonly { readonly attribute: string; readonly placeholder: string }[]
  /**
   * Undefined, so that nothing is found, if a name has no value, an empty one, or several where only one is
   * allowed. An equality accepts several, and matches if one of them is equal.
   */
  bind(lookup: ValueLookup): Filter | undefined
}

type Binder = (lookup: ValueLookup) => Filter | undefined

/** RFC 4515 text with `${name}` in its values, such as `(uid=${sub})`. Throws FilterSyntaxError. */
export function parseFilterTemplate(text: string): FilterTemplate {
  const comparisons: { readonly attribute: string; readonly placeholder: string }[] = []
  const bind = readFilter<Binder>(text, true, {
    list: (kind, binders) => (lookup) => {
      const filters = bindAll(binders, lookup)
      return filters && { kind, filters }
    },
    not: (binder) => (lookup) => {
      const filter = binder(lookup)
      return filter && { kind: 'not', filter }
    },
    item: (item) => {
      const { attribute, value } = item
      for (const part of value) if (part.kind === 'placeholder') comparisons.push({ attribute, placeholder: part.name })
      return itemBinder(item)
    },
  })
  return { placeholders: new Set(comparisons.map(({ placeholder }) => placeholder)), comparisons, bind }
}

function bindAll(binders: readonly Binder[], lookup: ValueLookup): Filter[] | undefined {
  const filters: Filter[] = []
  for (const binder of binders) {
    const filter = binder(lookup)
    if (filter === undefined) return undefined
    filters.push(filter)
  }
  return filters
}

function itemBinder(item: FilterItem): Binder {
  const isConstant = item.value.every((part) => part.kind !== 'placeholder')
  const sample = itemFilter({ ...item, value: item.value.map((part) => fill(part, () => 'x')) })
  if (isConstant) return () => sample
  if (item.operator === ':=' && sample.kind === 'substring') {
    throw new Error('a placeholder is not allowed in a substring assertion')
  }
  const takesSeveral = sample.kind === 'equal'
  return (lookup) => bindItem(item, takesSeveral, lookup)
}

function bindItem(item: FilterItem, takesSeveral: boolean, lookup: ValueLookup): Filter | undefined {
  let several: { readonly name: string; readonly values: readonly string[] } | undefined
  const single = new Map<string, string>()
  for (const part of item.value) {
    if (part.kind !== 'placeholder' || single.has(part.name) || several?.name === part.name) continue
    const values = lookup(part.name)
    const [value] = values
    if (value === undefined || values.includes('') || values.length > maxAlternatives) return undefined
    if (values.length === 1) single.set(part.name, value)
    else if (takesSeveral && several === undefined) several = { name: part.name, values }
    else return undefined
  }
  const withValue = (value: string): Filter =>
    itemFilter({ ...item, value: item.value.map((part) => fill(part, (name) => single.get(name) ?? value)) })
  return several === undefined ? withValue('') : { kind: 'or', filters: several.values.map(withValue) }
}

const fill = (part: ValuePart, value: (name: string) => string): ValuePart =>
  part.kind === 'placeholder' ? { kind: 'text', text: value(part.name) } : part
