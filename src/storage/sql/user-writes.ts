import type { User } from '#identity/user.ts'
import type { UserChange, UserSync } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { type AttributeChange, attributeChange } from '#storage/sql/attribute-changes.ts'
import type { Collections } from '#storage/sql/directory-collections.ts'
import { checkAttributes, checkName, checkNames, valueColumns } from '#storage/sql/entry-values.ts'
import {
  bumpEntries,
  deleteEntryRow,
  deleteValues,
  insertEntryRow,
  insertValues,
  lockEntry,
  readValues,
  resize,
} from '#storage/sql/entry-writes.ts'
import { groupsOf, joinGroups, leaveGroups } from '#storage/sql/memberships.ts'
import type { SqlClient, SqlTransaction } from '#storage/sql/sql-client.ts'
import { foldKey, isStorable } from '#storage/sql/text-keys.ts'

export async function createUser(
  client: SqlClient,
  { users, groups }: Collections,
  user: User,
  now: number,
): Promise<readonly UserChange[]> {
  checkName('login', user.userID)
  checkAttributes(user.attributes)
  const wantedGroups = checkNames('group name', user.groups)
  const values = Array.from(user.attributes, ([name, list]) => valueColumns(name, list)).flat()
  const added: UserChange[] = [
    { subject: 'entry', action: 'add', attribute: 'userID', value: user.userID },
    ...values.map(({ name, value }): UserChange => ({ subject: 'attribute', action: 'add', attribute: name, value })),
  ]
  try {
    return await client.transaction(async (tx) => {
      const entry = await insertEntryRow(tx, users, newId(), user.userID, now)
      await insertValues(tx, entry, users, values)
      const joined = await joinGroups(tx, groups, entry, wantedGroups, now)
      await resize(tx, groups, joined.created)
      await resize(tx, users, 1)
      return [...added, ...joined.changes]
    })
  } catch (error) {
    throw taken(error, 'A user with this login exists already.')
  }
}

/** A uniqueness rule of the database, said in words. */
export function taken(error: unknown, publicText: string): unknown {
  if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') return error
  return new GatewayError('CONFLICT', error.message, { cause: error, publicText, keyword: 'uniqueness' })
}

export async function syncUser(
  client: SqlClient,
  collections: Collections,
  change: UserSync,
  now: number,
): Promise<readonly UserChange[]> {
  checkAttributes(change.attributes)
  const wantedGroups = change.groups === undefined ? undefined : checkNames('group name', change.groups)
  return await client.transaction(async (tx) => {
    const entry = isStorable(change.userID) ? await lockEntry(tx, collections.users, change.userID) : undefined
    if (entry === undefined) throw new GatewayError('NOT_FOUND', `no user ${change.userID}`)
    if (change.expectedVersion !== undefined && change.expectedVersion !== String(entry.version)) {
      throw new GatewayError('VERSION_MISMATCH', `${change.userID} has version ${entry.version}`)
    }
    const changes = await syncAttributes(tx, entry.pk, collections.users, change)
    if (wantedGroups !== undefined) {
      changes.push(...(await syncGroups(tx, entry.pk, collections.groups, wantedGroups, change.addOnly, now)))
    }
    if (changes.length > 0) await bumpEntries(tx, [entry.pk], now)
    return changes
  })
}

async function syncAttributes(
  tx: SqlTransaction,
  entry: number,
  collection: number,
  { attributes, addOnly }: UserSync,
): Promise<UserChange[]> {
  if (attributes.size === 0) return []
  const stored = await readValues(tx, entry)
  const outcome = new Map(Array.from(stored.values(), ({ name, values }) => [name, values as readonly string[]]))
  const changed: AttributeChange[] = []
  for (const [key, { name, values }] of byFoldedName(attributes)) {
    const known = stored.get(key)
    const change = attributeChange(known?.name ?? name, known?.values ?? [], values, addOnly)
    if (change === undefined) continue
    changed.push(change)
    outcome.set(change.name, change.values)
    if (known !== undefined) await deleteValues(tx, entry, name)
  }
  checkAttributes(outcome)
  const rows = changed.flatMap(({ name, values }) => valueColumns(name, values))
  await insertValues(tx, entry, collection, rows)
  return changed.flatMap(({ changes }) => changes)
}

/** Names that differ in letter case only are one attribute with the values of both. */
function byFoldedName(attributes: UserSync['attributes']): Map<string, { name: string; values: readonly string[] }> {
  const merged = new Map<string, { name: string; values: readonly string[] }>()
  for (const [name, values] of attributes) {
    const key = foldKey(name)
    const known = merged.get(key)
    merged.set(key, known === undefined ? { name, values } : { name: known.name, values: [...known.values, ...values] })
  }
  return merged
}

async function syncGroups(
  tx: SqlTransaction,
  user: number,
  groupCollection: number,
  wanted: ReadonlyMap<string, string>,
  addOnly: boolean,
  now: number,
): Promise<UserChange[]> {
  const held = await groupsOf(tx, user)
  const heldKeys = new Set(held.map(({ key }) => key))
  const missing = new Map([...wanted].filter(([key]) => !heldKeys.has(key)))
  const surplus = addOnly ? [] : held.filter(({ key }) => !wanted.has(key))
  const left = await leaveGroups(tx, user, surplus, now)
  const joined = await joinGroups(tx, groupCollection, user, missing, now)
  await resize(tx, groupCollection, joined.created)
  return [...left, ...joined.changes]
}

export async function deleteUser(
  client: SqlClient,
  { users }: Collections,
  userID: string,
  now: number,
): Promise<readonly UserChange[]> {
  if (!isStorable(userID)) return []
  return await client.transaction(async (tx) => {
    const entry = await lockEntry(tx, users, userID)
    if (entry === undefined) return []
    await leaveGroups(tx, entry.pk, await groupsOf(tx, entry.pk), now)
    await deleteEntryRow(tx, entry.pk)
    await resize(tx, users, -1)
    return [{ subject: 'entry', action: 'delete', attribute: 'userID', value: entry.name }]
  })
}
