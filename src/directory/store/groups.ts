import { foldKey, isStorable } from '#database/text-keys.ts'
import type { GroupChange } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import type { EntryChange } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { checkAttributes, checkName, checkNames, syncAttributes, valueRows } from './attributes.ts'
import {
  bumpEntries,
  checkVersion,
  type DirectoryWrite,
  deleteEntry,
  explainConflict,
  findEntries,
  lockEntries,
  lockEntry,
  renameEntry,
  resize,
  type StoredEntry,
  storedAttributes,
} from './entries.ts'
import {
  bumpMembers,
  changeMemberRows,
  keepFormerName,
  lockMembers,
  memberChanges,
  userMembers,
} from './memberships.ts'
import { parentsOf } from './nested-groups.ts'
import { createEntry } from './new-entry.ts'

const nameTaken = 'A group with this name exists already.'

export async function createGroup(
  { transaction, groups, now }: DirectoryWrite,
  name: string,
  given: ReadonlyMap<string, readonly string[]>,
): Promise<Group> {
  checkName('group name', name)
  checkAttributes(given)
  const attributes = Attributes.from(given)
  const values = valueRows(attributes)
  const id = newId()
  try {
    await transaction(async (tx) => {
      const group = { collection: groups, id, name, attributes: storedAttributes(attributes), now }
      await createEntry(tx, group, values, { counted: true })
    })
  } catch (error) {
    throw explainConflict(error, nameTaken)
  }
  const description = attributes.first('description')
  const created = new Date(now)
  return {
    id,
    name,
    description,
    members: [],
    memberIds: [],
    memberGroups: [],
    attributes,
    version: '1',
    created,
    modified: created,
  }
}

export async function updateGroup(
  { transaction, groups, now }: DirectoryWrite,
  name: string,
  { newName, attributes: wanted = {}, expectedVersion }: GroupChange,
): Promise<readonly EntryChange[]> {
  if (newName !== undefined) checkName('group name', newName)
  const attributes = new Map(Object.entries(wanted))
  checkAttributes(attributes)
  try {
    return await transaction(async (tx) => {
      const group = isStorable(name) ? await lockEntry(tx, groups, name) : undefined
      if (group === undefined) throw new GatewayError('NOT_FOUND', `no group ${name}`)
      checkVersion(group, expectedVersion)
      const changes: EntryChange[] = []
      if (newName !== undefined && (await renameEntry(tx, group, newName))) {
        await keepFormerName(tx, group.pk, group.key, now)
        changes.push({ subject: 'entry', action: 'replace', attribute: 'name', value: newName })
      }
      const ofAttributes = await syncAttributes(tx, group, groups, attributes, { addOnly: false, now })
      const needsVersion = changes.length > 0 || expectedVersion !== undefined
      if (needsVersion && ofAttributes.length === 0) await bumpEntries(tx, [group.pk], now)
      return [...changes, ...ofAttributes]
    })
  } catch (error) {
    throw explainConflict(error, nameTaken)
  }
}

export async function deleteGroup(
  { transaction, groups, now }: DirectoryWrite,
  name: string,
  expectedVersion: string | undefined,
): Promise<boolean> {
  if (!isStorable(name)) return false
  return await transaction(async (tx) => {
    const found = (await findEntries(tx, groups, [foldKey(name)])).get(foldKey(name))
    if (found === undefined) return false
    await lockMembers(tx, found.pk)
    await lockEntries(tx, [found.pk, ...(await parentsOf(tx, found.pk))])
    const group = await lockEntry(tx, groups, name)
    if (group === undefined) return false
    checkVersion(group, expectedVersion)
    await bumpMembers.run(tx, { group: group.pk, now })
    await bumpEntries(tx, await parentsOf(tx, group.pk), now)
    await deleteEntry.run(tx, group)
    await resize(tx, groups, -1)
    return true
  })
}

export async function changeMembers(
  { transaction, users, groups, now }: DirectoryWrite,
  groupName: string,
  change: { readonly add: readonly string[]; readonly remove: readonly string[] },
): Promise<readonly EntryChange[]> {
  const add = checkNames('login', change.add)
  const remove = checkNames('login', change.remove)
  for (const key of add.keys()) remove.delete(key)
  return await transaction(async (tx) => {
    const found = await findEntries(tx, users, [...add.keys(), ...remove.keys()])
    const entryOf = ([key, login]: readonly [string, string]): StoredEntry => {
      const entry = found.get(key)
      if (entry === undefined) throw new GatewayError('NOT_FOUND', `no user ${login}`)
      return entry
    }
    const adding = Array.from(add, entryOf)
    const removing = Array.from(remove, entryOf)
    const keys = { add: adding.map(({ pk }) => pk), remove: removing.map(({ pk }) => pk) }
    // Users first, then the group: the order in which all transactions lock them.
    await lockEntries(tx, [...keys.add, ...keys.remove])
    const group = isStorable(groupName) ? await lockEntry(tx, groups, groupName) : undefined
    if (group === undefined) throw new GatewayError('NOT_FOUND', `no group ${groupName}`)
    const { added, removed } = await changeMemberRows(tx, userMembers, group.pk, keys)
    if (added.size + removed.size === 0) return []
    await bumpEntries(tx, [...added, ...removed, group.pk], now)
    return [...memberChanges('delete', removing, removed), ...memberChanges('add', adding, added)]
  })
}
