import type { User } from '#identity/user.ts'
import type { UserChange, UserSync } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { isStorable } from '#storage/client/text-keys.ts'
import {
  checkAttributes,
  checkName,
  checkNames,
  insertValues,
  syncAttributes,
  valueRows,
} from '#storage/directory/attributes.ts'
import {
  bumpEntries,
  checkVersion,
  type DirectoryWrite,
  deleteEntry,
  explainConflict,
  insertEntry,
  lockEntry,
  renameEntry,
  resize,
  storedAttributes,
} from '#storage/directory/entries.ts'
import {
  findGroups,
  joinGroups,
  leaveGroups,
  lockGroupName,
  type MembershipChanges,
  syncGroups,
} from '#storage/directory/memberships.ts'

const loginTaken = 'A user with this login exists already.'

export async function createUser(
  { transaction, users, groups, now }: DirectoryWrite,
  { userID, attributes, groups: groupNames }: User,
): Promise<readonly UserChange[]> {
  checkName('login', userID)
  checkAttributes(attributes)
  const wantedGroups = checkNames('group name', groupNames)
  const values = valueRows(attributes)
  const stored = storedAttributes(attributes)
  const added: UserChange[] = [
    { subject: 'entry', action: 'add', attribute: 'userID', value: userID },
    ...values.map(({ name, value }) => ({ subject: 'attribute', action: 'add', attribute: name, value }) as const),
  ]
  try {
    return await transaction(async (tx) => {
      const user = { collection: users, id: newId(), name: userID, attributes: stored, now }
      const entry = await insertEntry(tx, user)
      await insertValues(tx, entry, users, values)
      const joined = await joinGroups(tx, groups, entry, wantedGroups, now)
      await bumpEntries(tx, joined.groups, now)
      await resize(tx, groups, joined.created)
      await resize(tx, users, 1)
      return [...added, ...joined.changes]
    })
  } catch (error) {
    throw explainConflict(error, loginTaken)
  }
}

const unchanged: MembershipChanges = { changes: [], groups: [], created: 0 }

export async function syncUser(
  { transaction, users, groups, now }: DirectoryWrite,
  { userID, newUserID, attributes, groups: groupNames, addOnly, expectedVersion, expectedGroup }: UserSync,
): Promise<readonly UserChange[]> {
  checkAttributes(attributes)
  const wantedGroups = groupNames === undefined ? undefined : checkNames('group name', groupNames)
  if (newUserID !== undefined) checkName('login', newUserID)
  try {
    return await transaction(async (tx) => {
      const entry = isStorable(userID) ? await lockEntry(tx, users, userID) : undefined
      if (entry === undefined) throw new GatewayError('NOT_FOUND', `no user ${userID}`)
      checkVersion(entry, expectedVersion)
      const changes: UserChange[] = []
      if (newUserID !== undefined && (await renameEntry(tx, entry, newUserID))) {
        changes.push({ subject: 'entry', action: 'replace', attribute: 'userID', value: newUserID })
      }
      changes.push(...(await syncAttributes(tx, entry, users, attributes, addOnly)))
      if (expectedGroup !== undefined) await lockGroupName(tx, groups, expectedGroup)
      const options = { addOnly, refusesFormerNames: expectedVersion !== undefined, now }
      const memberships =
        wantedGroups === undefined ? unchanged : await syncGroups(tx, entry.pk, groups, wantedGroups, options)
      changes.push(...memberships.changes)
      if (changes.length > 0) await bumpEntries(tx, [entry.pk, ...memberships.groups], now)
      await resize(tx, groups, memberships.created)
      return changes
    })
  } catch (error) {
    throw explainConflict(error, loginTaken)
  }
}

export async function deleteUser(
  { transaction, users, now }: DirectoryWrite,
  userID: string,
  expectedVersion: string | undefined,
): Promise<readonly UserChange[]> {
  if (!isStorable(userID)) return []
  return await transaction(async (tx) => {
    const entry = await lockEntry(tx, users, userID)
    if (entry === undefined) return []
    checkVersion(entry, expectedVersion)
    const left = await leaveGroups(tx, entry.pk, await findGroups.all(tx, { user: entry.pk }))
    await bumpEntries(tx, left.groups, now)
    await deleteEntry.run(tx, entry)
    await resize(tx, users, -1)
    return [{ subject: 'entry', action: 'delete', attribute: 'userID', value: entry.name }]
  })
}
