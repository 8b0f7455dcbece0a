import type { UserChange } from '#identity/user-directory.ts'
import { newId } from '#kernel/ids.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'
import { findEntries, insertEntryIfAbsent, lockEntries } from '#storage/sql/entry-writes.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed, fixedLists } from '#storage/sql/queries.ts'

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
  lockMembers: fixed<{ group: number }, unknown>(dialect, (db, at) => {
    const members = db
      .selectFrom('entries')
      .select('pk')
      .where('pk', 'in', (eb) =>
        eb.selectFrom('memberships').select('user_entry').where('group_entry', '=', at('group')),
      )
      .orderBy('pk')
    const locked = dialect === 'postgres' ? members.forUpdate() : members
    return db.selectFrom(locked.as('locked')).select((eb) => eb.fn.countAll().as('members'))
  }),
  bumpMembers: fixed<{ group: number; now: number }, unknown>(dialect, (db, at) =>
    db
      .updateTable('entries')
      .set((eb) => ({ version: eb('version', '+', 1), modified: at('now') }))
      .where('pk', 'in', (eb) =>
        eb.selectFrom('memberships').select('user_entry').where('group_entry', '=', at('group')),
      ),
  ),
}))

export const groupsOf = (tx: SqlTransaction, user: number): Promise<RelatedEntry[]> =>
  tx.query(statements(tx.dialect).groupsOf({ user }))

/** Takes a group's members before the group itself, the order in which everything else takes them. */
export async function lockMembers(tx: SqlTransaction, group: number): Promise<void> {
  if (tx.dialect === 'sqlite') return
  await tx.query(statements(tx.dialect).lockMembers({ group }))
}

/** Gives all members of a group a new version: one statement, however many they are. */
export async function bumpMembers(tx: SqlTransaction, group: number, now: number): Promise<void> {
  await tx.run(statements(tx.dialect).bumpMembers({ group, now }))
}

const membership = (action: 'add' | 'delete', group: string): UserChange => ({
  subject: 'group',
  action,
  attribute: 'groups',
  value: group,
})

/** What changed, and the groups that are to have a new version for it. */
export interface MembershipChanges {
  readonly changes: readonly UserChange[]
  readonly groups: readonly number[]
}

export interface JoinResult extends MembershipChanges {
  /** How many groups had to be made. */
  readonly created: number
}

/**
 * Puts a user into groups, by folded name; those that do not exist are made. Many want the same group, so its own row is
 * taken by the new version only, at the end, where there is no other to be taken in order with it.
 */
export async function joinGroups(
  tx: SqlTransaction,
  groupCollection: number,
  user: number,
  wanted: ReadonlyMap<string, string>,
  now: number,
): Promise<JoinResult> {
  if (wanted.size === 0) return { changes: [], groups: [], created: 0 }
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
  await lockSeveral(tx, groups)
  const joined: number[] = []
  for (const group of groups) {
    const rows = await tx.query(statements(tx.dialect).join({ group: group.pk, user }))
    if (rows.length === 0) continue
    joined.push(group.pk)
    changes.push(membership('add', group.name))
  }
  return { changes, groups: joined, created }
}

export async function leaveGroups(
  tx: SqlTransaction,
  user: number,
  groups: readonly RelatedEntry[],
): Promise<MembershipChanges> {
  if (groups.length === 0) return { changes: [], groups: [] }
  const keys = groups.map(({ pk }) => pk)
  await lockSeveral(tx, groups)
  for (const query of statements(tx.dialect).leaveGroups({ user }, keys)) await tx.query(query)
  return { changes: groups.map(({ name }) => membership('delete', name)), groups: keys }
}

async function lockSeveral(tx: SqlTransaction, groups: readonly { readonly pk: number }[]): Promise<void> {
  if (groups.length < 2) return
  await lockEntries(
    tx,
    groups.map(({ pk }) => pk),
  )
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
