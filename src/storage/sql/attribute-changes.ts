import type { UserChange } from '#identity/user-directory.ts'

/** What has to happen to one attribute: its new values, and what the audit says about it. */
export interface AttributeChange {
  readonly name: string
  readonly values: readonly string[]
  readonly changes: readonly UserChange[]
}

/**
 * How the stored values of an attribute become the wanted ones; undefined when they are that already. With `addOnly`,
 * values are added and none goes away. Letter case and order count.
 */
export function attributeChange(
  name: string,
  stored: readonly string[],
  wanted: readonly string[],
  addOnly: boolean,
): AttributeChange | undefined {
  const values = addOnly ? [...stored, ...without(wanted, stored)] : wanted
  if (values.length === stored.length && values.every((value, i) => value === stored[i])) return undefined
  const tell = (action: UserChange['action'], value: string): UserChange => ({
    subject: 'attribute',
    action,
    attribute: name,
    value,
  })
  const added = without(values, stored)
  const removed = without(stored, values)
  if (values.length === 1 && stored.length === 1) return { name, values, changes: added.map((v) => tell('replace', v)) }
  const changes = [...removed.map((value) => tell('delete', value)), ...added.map((value) => tell('add', value))]
  if (changes.length > 0) return { name, values, changes }
  return { name, values, changes: values.map((value) => tell('replace', value)) }
}

/** The values of `list` that `other` has not, counting repetitions. */
function without(list: readonly string[], other: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const value of other) counts.set(value, (counts.get(value) ?? 0) + 1)
  return list.filter((value) => {
    const count = counts.get(value) ?? 0
    if (count === 0) return true
    counts.set(value, count - 1)
    return false
  })
}
