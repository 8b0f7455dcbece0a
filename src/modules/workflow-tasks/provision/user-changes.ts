import type { User } from '#identity/user.ts'
import type { TargetChange } from '#sdk/target.ts'
import { withoutGroups } from '#sdk/workflow-user.ts'

/** What making `found` into `wanted` changes; nothing when they agree. With addOnly, nothing is taken away. */
export function userChanges(
  found: User,
  wanted: User,
  options: { readonly attributes: readonly string[]; readonly addOnly: boolean },
): TargetChange[] {
  const changes: TargetChange[] = []
  for (const attribute of options.attributes) {
    const present = found.attributes.values(attribute)
    const values = wanted.attributes.values(attribute)
    changes.push(...attributeChanges(attribute, present, values, options.addOnly))
  }
  for (const group of withoutGroups(wanted.groups, found.groups)) changes.push(groupChange('add', group))
  if (options.addOnly) return changes
  for (const group of withoutGroups(found.groups, wanted.groups)) changes.push(groupChange('delete', group))
  return changes
}

export function newUserChanges(user: User): TargetChange[] {
  return [
    { subject: 'entry', action: 'add', attribute: 'userID', value: user.userID },
    ...[...user.attributes].flatMap(([attribute, values]) => values.map((value) => change('add', attribute, value))),
    ...user.groups.map((group) => groupChange('add', group)),
  ]
}

function attributeChanges(
  attribute: string,
  present: readonly string[],
  wanted: readonly string[],
  addOnly: boolean,
): TargetChange[] {
  if (sameValues(present, wanted)) return []
  const added = wanted.filter((value) => !present.includes(value))
  if (addOnly) return added.map((value) => change('add', attribute, value))
  const [value] = wanted
  if (present.length === 1 && wanted.length === 1 && value !== undefined) return [change('replace', attribute, value)]
  const removed = present.filter((held) => !wanted.includes(held))
  if (added.length === 0 && removed.length === 0) return wanted.map((moved) => change('replace', attribute, moved))
  return [
    ...added.map((one) => change('add', attribute, one)),
    ...removed.map((one) => change('delete', attribute, one)),
  ]
}

const sameValues = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((value, index) => value === b[index])

const change = (action: TargetChange['action'], attribute: string, value: string): TargetChange => ({
  subject: 'attribute',
  action,
  attribute,
  value,
})

const groupChange = (action: 'add' | 'delete', group: string): TargetChange => ({
  subject: 'group',
  action,
  attribute: 'groups',
  value: group,
})
