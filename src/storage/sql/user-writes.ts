import type { User } from '#identity/user.ts'
import type { UserChange, UserSync } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'
import { isStorable } from '#storage/client/text-keys.ts'
import { syncAttributes } from '#storage/sql/attribute-writes.ts'
import type { Collections } from '#storage/sql/directory-collections.ts'
import { checkAttributes, checkName, checkNames, valueColumns } from '#storage/sql/entry-values.ts'
import {
  bumpEntries,
  checkVersion,
  deleteEntryRow,
  insertEntryRow,
  insertValues,
  lockEntry,
  renameEntry,
  resize,
} from '#storage/sql/entry-writes.ts'
import { formerNames } from '#storage/sql/former-names.ts'
import { holdGroup } from '#storage/sql/held-group.ts'
import { writeHeld } from '#storage/sql/held-values.ts'
import { groupsOf, type JoinResult, joinGroups, leaveGroups } from '#storage/sql/memberships.ts'
import type { Transactions } from '#storage/sql/recorded-changes.ts'

export async function createUser(
  client: Transactions,
  { users, groups }: Collections,
  user: User,
  now: number,
): Promise<readonly UserChange[]> {
  checkName('login', user.userID)
  checkAttributes(user.attributes)
  const wantedGroups = checkNames('group name', user.groups)
  const values = Array.from(user.attributes, ([name, list]) => valueColumns(name, list)).flat()
  const held = writeHeld(user.attributes)
  const added: UserChange[] = [
    { subject: 'entry', action: 'add', attribute: 'userID', value: user.userID },
    ...values.map(({ name, value }): UserChange => ({ subject: 'attribute', action: 'add', attribute: name, value })),
  ]
  try {
    return await client.transaction(async (tx) => {
      const entry = await insertEntryRow(tx, users, newId(), user.userID, held, now)
      await insertValues(tx, entry, users, values)
      const joined = await joinGroups(tx, groups, entry, wantedGroups, now)
      await bumpEntries(tx, joined.groups, now)
      await resize(tx, groups, joined.created)
      await resize(tx, users, 1)
      return [...added, ...joined.changes]
    })
  } catch (error) {
    throw taken(error, loginTaken)
  }
}

/** A uniqueness rule of the database, said in words. */
export function taken(error: unknown, publicText: string): unknown {
  if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') return error
  return new GatewayError('CONFLICT', error.message, { cause: error, publicText, keyword: 'uniqueness' })
}

export async function syncUser(
  client: Transactions,
  collections: Collections,
  change: UserSync,
  now: number,
): Promise<readonly UserChange[]> {
  checkAttributes(change.attributes)
  const wantedGroups = change.groups === undefined ? undefined : checkNames('group name', change.groups)
  const { newUserID, addOnly } = change
  if (newUserID !== undefined) checkName('login', newUserID)
  try {
    return await client.transaction(async (tx) => {
      const entry = isStorable(change.userID) ? await lockEntry(tx, collections.users, change.userID) : undefined
      if (entry === undefined) throw new GatewayError('NOT_FOUND', `no user ${change.userID}`)
      checkVersion(entry, change.expectedVersion)
      const changes: UserChange[] = []
      if (newUserID !== undefined && (await renameEntry(tx, entry, newUserID))) {
        changes.push({ subject: 'entry', action: 'replace', attribute: 'userID', value: newUserID })
      }
      changes.push(...(await syncAttributes(tx, entry, collections.users, change.attributes, addOnly)))
      const memberships = await syncGroups(tx, entry.pk, collections.groups, wantedGroups, change, now)
      changes.push(...memberships.changes)
      if (changes.length > 0) await bumpEntries(tx, [entry.pk, ...memberships.groups], now)
      await resize(tx, collections.groups, memberships.created)
      return changes
    })
  } catch (error) {
    throw taken(error, loginTaken)
  }
}

const loginTaken = 'A user with this login exists already.'

async function syncGroups(
  tx: SqlTransaction,
  user: number,
  groupCollection: number,
  wanted: ReadonlyMap<string, string> | undefined,
  { addOnly, expectedVersion, expectedGroup }: UserSync,
  now: number,
): Promise<JoinResult> {
  if (expectedGroup !== undefined) await holdGroup(tx, groupCollection, expectedGroup)
  if (wanted === undefined) return { changes: [], groups: [], created: 0 }
  const held = await groupsOf(tx, user)
  const heldKeys = new Set(held.map(({ key }) => key))
  const missing = new Map([...wanted].filter(([key]) => !heldKeys.has(key)))
  const surplus = addOnly ? [] : held.filter(({ key }) => !wanted.has(key))
  if (expectedVersion !== undefined) await refuseFormerNames(tx, surplus, missing, now)
  const left = await leaveGroups(tx, user, surplus)
  const joined = await joinGroups(tx, groupCollection, user, missing, now)
  return {
    changes: [...left.changes, ...joined.changes],
    groups: [...left.groups, ...joined.groups],
    created: joined.created,
  }
}

/**
 * A group's new name is no new version of its members. So a list that was read before it names a group that the user
 * would join instead of the one that it is in, and would leave: throws VERSION_MISMATCH, as if the version told.
 */
async function refuseFormerNames(
  tx: SqlTransaction,
  surplus: readonly { readonly pk: number }[],
  missing: ReadonlyMap<string, string>,
  now: number,
): Promise<void> {
  if (surplus.length === 0 || missing.size === 0) return
  const former = await formerNames(
    tx,
    surplus.map(({ pk }) => pk),
    now,
  )
  const stale = [...missing].find(([key]) => former.has(key))
  if (stale !== undefined) throw new GatewayError('VERSION_MISMATCH', `the group ${stale[1]} has another name by now`)
}

export async function deleteUser(
  client: Transactions,
  { users }: Collections,
  userID: string,
  expectedVersion: string | undefined,
  now: number,
): Promise<readonly UserChange[]> {
  if (!isStorable(userID)) return []
  return await client.transaction(async (tx) => {
    const entry = await lockEntry(tx, users, userID)
    if (entry === undefined) return []
    checkVersion(entry, expectedVersion)
    const left = await leaveGroups(tx, entry.pk, await groupsOf(tx, entry.pk))
    await bumpEntries(tx, left.groups, now)
    await deleteEntryRow(tx, entry.pk)
    await resize(tx, users, -1)
    return [{ subject: 'entry', action: 'delete', attribute: 'userID', value: entry.name }]
  })
}
