import type { UserChange } from '#identity/user-directory.ts'
import { newId } from '#kernel/ids.ts'
import { bumpEntries, findEntries, insertEntryIfAbsent, lockEntries } from '#storage/sql/entry-writes.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed, fixedLists } from '#storage/sql/queries.ts'
import type { SqlTransaction } from '#storage/sql/sql-client.ts'

interface RelatedEntry {
  readonly pk: number
  readonly name: string
  readonly key: string
}

const statements = perDialect((dialect) => ({
  join: fixed<{ group: number; user: number }, { user_entry: number }>(dialect, (db, at) =>
    db
      .insertInto('memberships')
      .values({ group_entry: at('group'), user_entry: at('user') })
      .onConflict((on) => on.columns(['group_entry', 'user_entry']).doNothing())
      .returning('user_entry'),
  ),
  leaveGroups: fixedLists<{ user: number }, number, { group_entry: number }>(dialect, (db, at, groups) =>
    db
      .deleteFrom('memberships')
      .where('user_entry', '=', at('user'))
      .where('group_entry', 'in', groups)
      .returning('group_entry'),
  ),
  removeMembers: fixedLists<{ group: number }, number, { user_entry: number }>(dialect, (db, at, users) =>
    db
      .deleteFrom('memberships')
      .where('group_entry', '=', at('group'))
      .where('user_entry', 'in', users)
      .returning('user_entry'),
  ),
  groupsOf: fixed<{ user: number }, RelatedEntry>(dialect, (db, at) =>
    db
      .selectFrom('memberships as m')
      .innerJoin('entries as g', 'g.pk', 'm.group_entry')
      .select(['g.pk', 'g.name', 'g.key'])
      .where('m.user_entry', '=', at('user'))
      .orderBy('g.pk'),
  ),
  membersOf: fixed<{ group: number }, { pk: number }>(dialect, (db, at) =>
    db
      .selectFrom('memberships')
      .select('user_entry as pk')
      .where('group_entry', '=', at('group'))
      .orderBy('user_entry'),
  ),
}))

export const groupsOf = (tx: SqlTransaction, user: number): Promise<RelatedEntry[]> =>
  tx.query(statements(tx.dialect).groupsOf({ user }))

export async function membersOf(tx: SqlTransaction, group: number): Promise<number[]> {
  return (await tx.query(statements(tx.dialect).membersOf({ group }))).map(({ pk }) => pk)
}

const membership = (action: 'add' | 'delete', group: string): UserChange => ({
  subject: 'group',
  action,
  attribute: 'groups',
  value: group,
})

export interface JoinResult {
  readonly changes: readonly UserChange[]
  /** How many groups had to be made. */
  readonly created: number
}

/** Puts a user into groups, by folded name; those that do not exist are made. */
export async function joinGroups(
  tx: SqlTransaction,
  groupCollection: number,
  user: number,
  wanted: ReadonlyMap<string, string>,
  now: number,
): Promise<JoinResult> {
  if (wanted.size === 0) return { changes: [], created: 0 }
  const changes: UserChange[] = []
  const keys = [...wanted.keys()].sort()
  let found = await findEntries(tx, groupCollection, keys)
  let created = 0
  for (const key of keys) {
    if (found.has(key)) continue
    const name = wanted.get(key) ?? key
    const made = await insertEntryIfAbsent(tx, groupCollection, newId(), name, now)
    if (made === undefined) continue
    created++
    changes.push({ subject: 'entry', action: 'add', attribute: 'name', value: name })
  }
  if (found.size < keys.length) found = await findEntries(tx, groupCollection, keys)
  const groups = [...found.values()]
  await lockEntries(
    tx,
    groups.map(({ pk }) => pk),
  )
  const joined: number[] = []
  for (const group of groups) {
    const rows = await tx.query(statements(tx.dialect).join({ group: group.pk, user }))
    if (rows.length === 0) continue
    joined.push(group.pk)
    changes.push(membership('add', group.name))
  }
  await bumpEntries(tx, joined, now)
  return { changes, created }
}

export async function leaveGroups(
  tx: SqlTransaction,
  user: number,
  groups: readonly RelatedEntry[],
  now: number,
): Promise<UserChange[]> {
  if (groups.length === 0) return []
  const keys = groups.map(({ pk }) => pk)
  await lockEntries(tx, keys)
  for (const query of statements(tx.dialect).leaveGroups({ user }, keys)) await tx.query(query)
  await bumpEntries(tx, keys, now)
  return groups.map(({ name }) => membership('delete', name))
}

/** Changes a group's members, without reading the others; the users who were in fact added or removed. */
export async function changeGroupMembers(
  tx: SqlTransaction,
  group: number,
  add: readonly number[],
  remove: readonly number[],
): Promise<{ readonly added: ReadonlySet<number>; readonly removed: ReadonlySet<number> }> {
  const removed = new Set<number>()
  for (const query of statements(tx.dialect).removeMembers({ group }, remove)) {
    for (const { user_entry } of await tx.query(query)) removed.add(user_entry)
  }
  const added = new Set<number>()
  for (const user of add) {
    const rows = await tx.query(statements(tx.dialect).join({ group, user }))
    if (rows.length > 0) added.add(user)
  }
  return { added, removed }
}
