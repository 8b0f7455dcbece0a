import { foldKey, isStorable } from '#database/text-keys.ts'
import type { EntryChange, GroupChange } from '#identity/account-store.ts'
import type { Attributes } from '#identity/attributes.ts'
import { entryChange, newGroupChanges } from '#identity/entry-changes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { checkAttributes, checkName, syncAttributes, valueRows } from './attributes.ts'
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
  storedAttributes,
} from './entries.ts'
import { bumpMembers, keepFormerName, lockMembers } from './memberships.ts'
import { parentsOf } from './nested-groups.ts'
import { createEntry } from './new-entry.ts'

const nameTaken = 'A group with this name exists already.'

export async function createGroup(
  { transaction, groups, now }: DirectoryWrite,
  name: string,
  attributes: Attributes,
): Promise<readonly EntryChange[]> {
  checkName('group name', name)
  checkAttributes(attributes)
  const values = valueRows(attributes)
  const group = { collection: groups, id: newId(), name, attributes: storedAttributes(attributes), now }
  try {
    return await transaction(async (tx) => {
      await createEntry(tx, group, values, { counted: true })
      return newGroupChanges(name, attributes)
    })
  } catch (error) {
    throw explainConflict(error, nameTaken)
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
): Promise<readonly EntryChange[]> {
  if (!isStorable(name)) return []
  return await transaction(async (tx) => {
    const found = (await findEntries(tx, groups, [foldKey(name)])).get(foldKey(name))
    if (found === undefined) return []
    await lockMembers(tx, found.pk)
    await lockEntries(tx, [found.pk, ...(await parentsOf(tx, found.pk))])
    const group = await lockEntry(tx, groups, name)
    if (group === undefined) return []
    checkVersion(group, expectedVersion)
    await bumpMembers.run(tx, { group: group.pk, now })
    await bumpEntries(tx, await parentsOf(tx, group.pk), now)
    await deleteEntry.run(tx, group)
    await resize(tx, groups, -1)
    return [entryChange('entry', 'delete', 'name', group.name)]
  })
}
