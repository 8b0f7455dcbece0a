import type { DatabaseTransaction } from '#database/sql-client.ts'
import { columnName, ListStatement, RowInsert, statement } from '#database/statement.ts'
import { foldKey, isStorable } from '#database/text-keys.ts'
import type { EntryChange } from '#identity/account-store.ts'
import type { NamedGroup } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { findEntries, insertEntryIfAbsent, lockVersions, type StoredEntry } from './entries.ts'

interface MemberRow {
  readonly group: number
  readonly member: number
}

/** The statements of a table whose rows are a group and one of its members. */
export function memberTable(table: string, memberColumn: 'userEntry' | 'memberEntry') {
  const column = columnName(memberColumn)
  const insert = new RowInsert<Readonly<Record<string, number>>, MemberRow>(
    table,
    ['groupEntry', memberColumn],
    `on conflict (group_entry, ${column}) do nothing returning group_entry as "group", ${column} as member`,
  )
  return {
    /** Returns the rows that did not exist before. */
    add: (tx: DatabaseTransaction, rows: readonly MemberRow[]): Promise<MemberRow[]> =>
      insert.all(
        tx,
        rows.map(({ group, member }) => ({ groupEntry: group, [memberColumn]: member })),
      ),
    remove: new ListStatement<{ group: number }, number, { member: number }>(
      `delete from ${table} where group_entry = :group and ${column} in (:list) returning ${column} as member`,
    ),
  }
}
const userMembers = memberTable('memberships', 'userEntry')

/** Changes a group's members without reading the others. Returns the members that were in fact added or removed. */
export async function changeMemberRows(
  tx: DatabaseTransaction,
  table: ReturnType<typeof memberTable>,
  group: number,
  change: { readonly add: readonly number[]; readonly remove: readonly number[] },
): Promise<{ readonly added: ReadonlySet<number>; readonly removed: ReadonlySet<number> }> {
  const removed = new Set((await table.remove.all(tx, { group }, change.remove)).map(({ member }) => member))
  const added = await table.add(
    tx,
    change.add.map((member) => ({ group, member })),
  )
  return { added: new Set(added.map(({ member }) => member)), removed }
}

/** What changed in a group's list of members. */
export const memberChanges = (
  action: 'add' | 'delete',
  members: readonly { readonly pk: number; readonly name: string }[],
  changed: ReadonlySet<number>,
): EntryChange[] =>
  members
    .filter(({ pk }) => changed.has(pk))
    .map(({ name }) => ({ subject: 'group', action, attribute: 'members', value: name }))

interface GroupEntry {
  readonly pk: number
  readonly name: string
  readonly key: string
}

export const findGroups = statement<{ user: number }, GroupEntry>(
  `select g.pk, g.name, g.key from memberships as m inner join entries as g on g.pk = m.group_entry
   where m.user_entry = :user order by m.group_entry`,
)

export interface MembershipChanges {
  readonly changes: readonly EntryChange[]
  /** The groups that need a new version. */
  readonly groups: readonly number[]
  /** How many groups were created. */
  readonly created: number
}

/**
 * Changes a user's groups to the given ones, by folded name; with `addOnly`, the user leaves none. `known` is a group whose
 * name is locked.
 */
export async function syncGroups(
  tx: DatabaseTransaction,
  user: number,
  groupCollection: number,
  wanted: ReadonlyMap<string, string>,
  options: {
    readonly addOnly: boolean
    readonly refusesFormerNames: boolean
    readonly known: StoredEntry | undefined
    readonly now: number
  },
): Promise<MembershipChanges> {
  const current = await findGroups.all(tx, { user })
  const currentKeys = new Set(current.map(({ key }) => key))
  const missing = new Map([...wanted].filter(([key]) => !currentKeys.has(key)))
  const surplus = options.addOnly ? [] : current.filter(({ key }) => !wanted.has(key))
  if (options.refusesFormerNames) await refuseFormerNames(tx, surplus, missing, options.now)
  return await changeGroups(tx, groupCollection, user, { leave: surplus, join: missing }, options)
}

/**
 * Removes a user from groups and adds it to others, by folded name; creates those that do not exist. Many transactions use
 * the same group, so its row is locked only by the new version at the end, unless several groups have to be locked in order.
 */
export async function changeGroups(
  tx: DatabaseTransaction,
  collection: number,
  user: number,
  {
    leave = [],
    join = new Map(),
  }: { readonly leave?: readonly GroupEntry[]; readonly join?: ReadonlyMap<string, string> },
  { now, known }: { readonly now: number; readonly known?: StoredEntry | undefined },
): Promise<MembershipChanges> {
  const changes = leave.map(({ name }) => membership('delete', name))
  const keys = [...join.keys()].sort()
  let found = await findEntries(
    tx,
    collection,
    keys.filter((key) => key !== known?.key),
  )
  if (known !== undefined && join.has(known.key)) found.set(known.key, known)
  let created = 0
  for (const key of keys) {
    if (found.has(key)) continue
    const name = join.get(key) ?? key
    const group = { collection, id: newId(), name, attributes: '[]', now }
    if ((await insertEntryIfAbsent(tx, group)) === undefined) continue
    created++
    changes.push({ subject: 'entry', action: 'add', attribute: 'name', value: name })
  }
  if (found.size < keys.length) found = await findEntries(tx, collection, keys)
  const groups = [...found.values()]
  const left = leave.map(({ pk }) => pk)
  if (Math.max(left.length, groups.length) > 1) await lockVersions(tx, [...left, ...groups.map(({ pk }) => pk)])
  await deleteMemberships.run(tx, { user }, left)
  const rows = groups.map(({ pk }) => ({ group: pk, member: user }))
  const joined = new Set((await userMembers.add(tx, rows)).map(({ group }) => group))
  for (const { pk, name } of groups) if (joined.has(pk)) changes.push(membership('add', name))
  return { changes, groups: [...left, ...joined], created }
}

const deleteMemberships = new ListStatement<{ user: number }, number>(
  `delete from memberships where user_entry = :user and group_entry in (:list)`,
)

const membership = (action: 'add' | 'delete', group: string): EntryChange => ({
  subject: 'group',
  action,
  attribute: 'groups',
  value: group,
})

/** Locks a group's members. Call it before locking the group: all transactions lock users first. */
export async function lockMembers(tx: DatabaseTransaction, group: number): Promise<void> {
  if (tx.dialect === 'postgres') await lockAll.first(tx, { group })
}

const memberKeys = 'select user_entry from memberships where group_entry = :group'
const lockAll = statement<{ group: number }, { members: number }>(
  (on) => `select count(*) as members from
    (select pk from entries where pk in (${memberKeys}) order by pk ${on.forUpdate}) as locked`,
)

/** Gives all members of a group a new version. */
export const bumpMembers = statement<{ group: number; now: number }>(
  `update entries set version = version + 1, modified = :now where pk in (${memberKeys})`,
)

/** The group keeps this name until the transaction ends. Throws VERSION_MISMATCH if another group, or none, has it. */
export async function lockGroupName(
  tx: DatabaseTransaction,
  collection: number,
  { name, id }: NamedGroup,
): Promise<StoredEntry> {
  const found = isStorable(name) ? await lockName.first(tx, { collection, key: foldKey(name) }) : undefined
  if (found?.id !== id) throw new GatewayError('VERSION_MISMATCH', `the group ${name} was renamed or deleted`)
  return found
}

/** Users may join and leave the group meanwhile. */
const lockName = statement<{ collection: number; key: string }, StoredEntry & { readonly id: string }>(
  ({ name }) => `select pk, id, name, key, version from entries where collection = :collection and key = :key
    ${name === 'postgres' ? 'for key share' : ''}`,
)

/** How long the former name of a group is kept: longer than a change computed from it may take. */
const formerNameMillis = 60 * 60 * 1000

/** Stores the former name of a group. */
export async function keepFormerName(tx: DatabaseTransaction, entry: number, key: string, now: number): Promise<void> {
  await deleteFormerNames.run(tx, { entry, before: now - formerNameMillis })
  await insertFormerName.run(tx, { entry, key, now })
}

const deleteFormerNames = statement<{ entry: number; before: number }>(
  `delete from former_names where entry = :entry and time < :before`,
)
const insertFormerName = statement<{ entry: number; key: string; now: number }>(
  `insert into former_names (entry, key, time) values (:entry, :key, :now)
   on conflict (entry, key) do update set time = excluded.time`,
)

/**
 * Renaming a group gives its members no new version. A list of groups that was read before would therefore make the user
 * leave the group and join a new one with the former name. Throws VERSION_MISMATCH instead.
 */
async function refuseFormerNames(
  tx: DatabaseTransaction,
  surplus: readonly GroupEntry[],
  missing: ReadonlyMap<string, string>,
  now: number,
): Promise<void> {
  if (surplus.length === 0 || missing.size === 0) return
  const groups = surplus.map(({ pk }) => pk)
  const formerNames = await findFormerNames.all(tx, { since: now - formerNameMillis }, groups)
  const former = formerNames.find(({ key }) => missing.has(key))
  if (former === undefined) return
  throw new GatewayError('VERSION_MISMATCH', `the group ${missing.get(former.key)} was renamed`)
}

const findFormerNames = new ListStatement<{ since: number }, number, { key: string }>(
  `select key from former_names where entry in (:list) and time >= :since`,
)
