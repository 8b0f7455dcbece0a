import { Attributes } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import type { GroupUpdate, NestingChange, UserChange } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { foldKey, isStorable } from '#storage/client/text-keys.ts'
import { syncAttributes } from '#storage/sql/attribute-writes.ts'
import type { Collections } from '#storage/sql/directory-collections.ts'
import { checkAttributes, checkName, checkNames, valueColumns } from '#storage/sql/entry-values.ts'
import {
  bumpEntries,
  checkVersion,
  deleteEntryRow,
  findEntries,
  insertEntryRow,
  insertValues,
  lockEntries,
  lockEntry,
  renameEntry,
  resize,
  type StoredEntry,
} from '#storage/sql/entry-writes.ts'
import { rememberName } from '#storage/sql/former-names.ts'
import { writeHeld } from '#storage/sql/held-values.ts'
import { bumpMembers, changeGroupMembers, lockMembers } from '#storage/sql/memberships.ts'
import {
  changeNesting,
  groupsById,
  lockNesting,
  parentsOf,
  refuseCircles,
  type StoredGroup,
} from '#storage/sql/nested-groups.ts'
import type { Transactions } from '#storage/sql/recorded-changes.ts'
import { taken } from '#storage/sql/user-writes.ts'

export async function createGroup(
  client: Transactions,
  { groups }: Collections,
  name: string,
  attributes: ReadonlyMap<string, readonly string[]>,
  now: number,
): Promise<Group> {
  checkName('group name', name)
  checkAttributes(attributes)
  const held = Attributes.from(attributes)
  const values = Array.from(held, ([attribute, list]) => valueColumns(attribute, list)).flat()
  const id = newId()
  try {
    await client.transaction(async (tx) => {
      const entry = await insertEntryRow(tx, groups, id, name, writeHeld(held), now)
      await insertValues(tx, entry, groups, values)
      await resize(tx, groups, 1)
    })
  } catch (error) {
    throw taken(error, nameTaken)
  }
  const description = held.first('description')
  const created = new Date(now)
  return {
    id,
    name,
    ...(description === undefined ? {} : { description }),
    members: [],
    memberIds: [],
    memberGroups: [],
    attributes: held,
    version: '1',
    created,
    modified: created,
  }
}

const nameTaken = 'A group with this name exists already.'

export async function updateGroup(
  client: Transactions,
  { groups }: Collections,
  name: string,
  { newName, attributes = new Map(), expectedVersion }: GroupUpdate,
  now: number,
): Promise<readonly UserChange[]> {
  if (newName !== undefined) checkName('group name', newName)
  checkAttributes(attributes)
  try {
    return await client.transaction(async (tx) => {
      const group = isStorable(name) ? await lockEntry(tx, groups, name) : undefined
      if (group === undefined) throw new GatewayError('NOT_FOUND', `no group ${name}`)
      checkVersion(group, expectedVersion)
      const changes: UserChange[] = []
      if (newName !== undefined && (await renameEntry(tx, group, newName))) {
        await rememberName(tx, group.pk, group.key, now)
        changes.push({ subject: 'entry', action: 'replace', attribute: 'name', value: newName })
      }
      changes.push(...(await syncAttributes(tx, group, groups, attributes, false)))
      if (changes.length > 0 || expectedVersion !== undefined) await bumpEntries(tx, [group.pk], now)
      return changes
    })
  } catch (error) {
    throw taken(error, nameTaken)
  }
}

export async function deleteGroup(
  client: Transactions,
  { groups }: Collections,
  name: string,
  expectedVersion: string | undefined,
  now: number,
): Promise<boolean> {
  if (!isStorable(name)) return false
  return await client.transaction(async (tx) => {
    const found = (await findEntries(tx, groups, [foldKey(name)])).get(foldKey(name))
    if (found === undefined) return false
    await lockMembers(tx, found.pk)
    await lockEntries(tx, [found.pk, ...(await parentsOf(tx, found.pk))])
    const group = await lockEntry(tx, groups, name)
    if (group === undefined) return false
    checkVersion(group, expectedVersion)
    await bumpMembers(tx, group.pk, now)
    await bumpEntries(tx, await parentsOf(tx, group.pk), now)
    await deleteEntryRow(tx, group.pk)
    await resize(tx, groups, -1)
    return true
  })
}

export async function changeMembers(
  client: Transactions,
  { users, groups }: Collections,
  groupName: string,
  change: { readonly add: readonly string[]; readonly remove: readonly string[] },
  now: number,
): Promise<readonly UserChange[]> {
  const add = checkNames('login', change.add)
  const remove = checkNames('login', change.remove)
  for (const key of add.keys()) remove.delete(key)
  return await client.transaction(async (tx) => {
    const found = await findEntries(tx, users, [...add.keys(), ...remove.keys()])
    const entryOf = (key: string, login: string): StoredEntry => {
      const entry = found.get(key)
      if (entry === undefined) throw new GatewayError('NOT_FOUND', `no user ${login}`)
      return entry
    }
    const adding = Array.from(add, ([key, login]) => entryOf(key, login))
    const removing = Array.from(remove, ([key, login]) => entryOf(key, login))
    const keys = [...adding, ...removing].map(({ pk }) => pk)
    // Users first, then the group: the order in which everything else takes them.
    await lockEntries(tx, keys)
    const group = isStorable(groupName) ? await lockEntry(tx, groups, groupName) : undefined
    if (group === undefined) throw new GatewayError('NOT_FOUND', `no group ${groupName}`)
    const { added, removed } = await changeGroupMembers(
      tx,
      group.pk,
      adding.map(({ pk }) => pk),
      removing.map(({ pk }) => pk),
    )
    if (added.size + removed.size === 0) return []
    await bumpEntries(tx, [...added, ...removed, group.pk], now)
    const tell = (action: 'add' | 'delete', changed: ReadonlySet<number>) => (entry: StoredEntry) =>
      changed.has(entry.pk) ? [{ subject: 'group', action, attribute: 'members', value: entry.name } as const] : []
    return [...removing.flatMap(tell('delete', removed)), ...adding.flatMap(tell('add', added))]
  })
}

export async function changeMemberGroups(
  client: Transactions,
  { groups }: Collections,
  groupName: string,
  { add, remove, groupId }: NestingChange,
  now: number,
): Promise<readonly UserChange[]> {
  checkNames(
    'group name',
    [...add, ...remove].map(({ name }) => name),
  )
  const ids = [...add, ...remove].map(({ id }) => id)
  if (groupId !== undefined) ids.push(groupId)
  const wanted = [...new Set(ids)].filter(isStorable)
  return await client.transaction(async (tx) => {
    if (add.length > 0) await lockNesting(tx, groups)
    const key = foldKey(groupName)
    const seen = isStorable(groupName) ? (await findEntries(tx, groups, [key])).get(key) : undefined
    if (seen === undefined) throw noGroup(groupName)
    const joining = await groupsById(tx, groups, wanted)
    await lockEntries(tx, [seen.pk, ...add.flatMap(({ id }) => joining.get(id)?.pk ?? [])])
    // Read again: what was renamed or deleted before it was locked is not what was asked for.
    const group = await lockEntry(tx, groups, groupName)
    const known = await groupsById(tx, groups, wanted)
    const isOther = groupId !== undefined && known.get(groupId)?.pk !== group?.pk
    if (group === undefined || group.pk !== seen.pk || isOther) throw noGroup(groupName)
    const adding = add.map(({ id, name }) => {
      const member = known.get(id)
      if (member === undefined || member.key !== foldKey(name)) throw noGroup(name)
      return member
    })
    await refuseCircles(tx, group, adding)
    const staying = new Set(adding.map(({ pk }) => pk))
    const leaving = remove.flatMap(({ id }) => known.get(id) ?? []).filter(({ pk }) => !staying.has(pk))
    const { added, removed } = await changeNesting(
      tx,
      group.pk,
      [...staying],
      leaving.map(({ pk }) => pk),
    )
    if (added.size + removed.size === 0) return []
    await bumpEntries(tx, [group.pk], now)
    const changes = (action: 'add' | 'delete', members: readonly StoredGroup[], changed: ReadonlySet<number>) =>
      [...new Set(members)]
        .filter(({ pk }) => changed.has(pk))
        .map(({ name }) => ({ subject: 'group', action, attribute: 'members', value: name }) as const)
    return [...changes('delete', leaving, removed), ...changes('add', adding, added)]
  })
}

const noGroup = (name: string): GatewayError =>
  new GatewayError('NOT_FOUND', `no group ${name}`, { publicText: `There is no group "${name}".` })
