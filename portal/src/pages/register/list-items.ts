import type { ListItem } from '#sdk/contract/forms.ts'

/** The label of a value. */
export const nameOf = (items: readonly ListItem[], value: string): string =>
  items.find((item) => item.value === value)?.name ?? value

/** Each value once, and each label, since users distinguish them by label. */
export function unique(items: readonly ListItem[]): readonly ListItem[] {
  const [names, values] = [new Set<string>(), new Set<string>()]
  return items.filter(({ name, value }) => {
    const isNew = !names.has(name) && !values.has(value)
    names.add(name)
    values.add(value)
    return isNew
  })
}
