import type { EntryAttribute } from '#features/portal/contract/console-people.ts'
import { type Attributes, isSecretAttribute } from '#identity/attributes.ts'
import { withoutTokens } from '#kernel/text/redaction.ts'

const maxValues = 50
const maxLength = 1_000

/** The attributes of an entry by name, for administrators: without secrets, and of a length that a page can show. */
export function entryAttributes(attributes: Attributes): EntryAttribute[] {
  return [...attributes]
    .map(([name, values]): EntryAttribute => {
      if (isSecretAttribute(name)) return { name, values: [], hidden: true }
      return { name, ...shownValues(values) }
    })
    .sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1))
}

/** Values of a length that a page can show; `cut` if that is less than all. */
export function shownValues(values: readonly string[]): Pick<EntryAttribute, 'values' | 'cut'> {
  const isCut = values.length > maxValues || values.some((value) => value.length > maxLength)
  const shown = values.slice(0, maxValues).map((value) => withoutTokens(value.slice(0, maxLength).toWellFormed()))
  return { values: shown, ...(isCut ? { cut: true } : {}) }
}
