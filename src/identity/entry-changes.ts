import type { ChangeAudit, EntryChange } from '#identity/account-store.ts'
import type { Attributes } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'

/** What the work changes. */
export async function changesOf(work: (request: ChangeAudit) => Promise<void>): Promise<readonly EntryChange[]> {
  const changes: EntryChange[] = []
  await work({ audit: (change) => void changes.push(change) })
  return changes
}

/** For changes that the audit doesn't have, or has in another form. */
export const unaudited: ChangeAudit = { audit: () => {} }

interface ValueOptions {
  /** Removes nothing. */
  readonly addOnly?: boolean
  /** The order counts: if it differs, every value is replaced. */
  readonly ordered?: boolean
}

/** The changes from the values `before` to the values `wanted`. Letter case counts. */
export function valueChanges(
  attribute: string,
  before: readonly string[],
  wanted: readonly string[],
  { addOnly = false, ordered = false }: ValueOptions = {},
): EntryChange[] {
  const added = missingValues(before, wanted)
  const removed = addOnly ? [] : missingValues(wanted, before)
  const changes = (action: EntryChange['action'], values: readonly string[]) =>
    values.map((value) => entryChange('attribute', action, attribute, value))
  if (added.length === 1 && removed.length === 1 && wanted.length === 1) return changes('replace', wanted)
  if (added.length + removed.length > 0) return [...changes('add', added), ...changes('delete', removed)]
  const isSame = before.length === wanted.length && before.every((value, i) => value === wanted[i])
  return ordered && !addOnly && !isSame ? changes('replace', wanted) : []
}

/** One change for each of the attributes that has the wanted values in another order, and no other change. */
export const orderChanges = (before: Attributes, wanted: Attributes, names: readonly string[]): EntryChange[] =>
  names.flatMap((name) => {
    const [present, values] = [before, wanted].map((attributes) => [...new Set(attributes.values(name))])
    if (present === undefined || values === undefined) return []
    if (valueChanges(name, present, values).length > 0) return []
    return valueChanges(name, present, values, { ordered: true }).slice(0, 1)
  })

interface UserChangeOptions extends ValueOptions {
  /** The attributes that may change. */
  readonly attributes: readonly string[]
  /** Group names that differ in letter case only are the same. */
  readonly foldGroups?: boolean
}

/** The changes from the user `before` to `wanted`. `before` is undefined for a user that doesn't exist yet. */
export function userChanges(before: User | undefined, wanted: User, options: UserChangeOptions): EntryChange[] {
  const { attributes, addOnly = false, foldGroups = false } = options
  const missing = foldGroups ? missingNames : missingValues
  const groups = before?.groups ?? []
  const left = addOnly ? [] : missing(wanted.groups, groups)
  return [
    ...(before === undefined ? [entryChange('entry', 'add', 'userID', wanted.userID)] : []),
    ...attributes.flatMap((name) =>
      valueChanges(name, before?.attributes.values(name) ?? [], wanted.attributes.values(name), options),
    ),
    ...missing(groups, wanted.groups).map((name) => entryChange('group', 'add', 'groups', name)),
    ...left.map((name) => entryChange('group', 'delete', 'groups', name)),
  ]
}

/** The changes that give a group this name and these attributes. Unknown attributes of the group count as equal. */
export function groupChanges(
  before: Group,
  name: string,
  wanted: Iterable<readonly [string, readonly string[]]>,
): EntryChange[] {
  const { attributes, description } = before
  const valuesOf = (attribute: string, values: readonly string[]): readonly string[] => {
    if (attribute.toLowerCase() === 'description' && description !== undefined) return [description]
    return attributes === undefined ? values : attributes.values(attribute)
  }
  return [
    ...(before.name === name ? [] : [entryChange('entry', 'replace', 'name', name)]),
    ...Array.from(wanted).flatMap(([attribute, values]) =>
      valueChanges(attribute, valuesOf(attribute, values), values),
    ),
  ]
}

/** The changes of creating a group. */
export const newGroupChanges = (name: string, attributes: Attributes): EntryChange[] => [
  entryChange('entry', 'add', 'name', name),
  ...[...attributes].flatMap(([attribute, values]) =>
    values.map((value) => entryChange('attribute', 'add', attribute, value)),
  ),
]

export const entryChange = (
  subject: EntryChange['subject'],
  action: EntryChange['action'],
  attribute: string,
  value: string,
): EntryChange => ({ subject, action, attribute, value })

/** The values of `wanted` that `present` doesn't have, each once. */
export function missingValues(present: readonly string[], wanted: readonly string[]): string[] {
  const known = new Set(present)
  return [...new Set(wanted)].filter((value) => !known.has(value))
}

/** The names of `wanted` that `present` doesn't have in any letter case, each once. */
export function missingNames(present: readonly string[], wanted: readonly string[]): string[] {
  const known = new Set(present.map((name) => name.toLowerCase()))
  return wanted.filter((name) => {
    const key = name.toLowerCase()
    return !known.has(key) && known.add(key)
  })
}
