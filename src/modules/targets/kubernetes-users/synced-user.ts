import type { User } from '#identity/user.ts'
import type { SyncOptions } from '#sdk/target.ts'

/** The user as it is to be after the change: what may not be touched as before. */
export function syncedUser(
  before: User,
  wanted: User,
  { addOnly, attributes, keepGroups }: Pick<SyncOptions, 'addOnly' | 'attributes' | 'keepGroups'>,
): User {
  const values = before.attributes.clone()
  for (const name of attributes) {
    const given = wanted.attributes.values(name)
    values.set(name, addOnly ? union(values.values(name), given) : given)
  }
  const groups = addOnly ? union(before.groups, wanted.groups) : [...new Set(wanted.groups)]
  return { ...before, attributes: values, groups: keepGroups ? before.groups : groups }
}

const union = (held: readonly string[], more: readonly string[]): string[] => [
  ...held,
  ...new Set(more.filter((value) => !held.includes(value))),
]
