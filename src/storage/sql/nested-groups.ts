import { sql } from 'kysely'
import type { NamedGroup } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlReader, SqlTransaction } from '#storage/client/sql-client.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed, fixedLists } from '#storage/sql/queries.ts'

interface Containing {
  readonly member: string
  readonly id: string
  readonly name: string
  readonly direct: number
}

const statements = perDialect((dialect) => ({
  /** Inserting a group needs a key share of the row only, which this lock leaves to others. */
  lockNesting: fixed<{ groups: number }, unknown>(dialect, (db, at) => {
    const query = db.selectFrom('collections').select('pk').where('pk', '=', at('groups'))
    return dialect === 'postgres' ? query.forNoKeyUpdate() : query
  }),
  byIds: fixedLists<{ groups: number }, string, { pk: number; id: string; key: string; name: string }>(
    dialect,
    (db, at, ids) =>
      db
        .selectFrom('entries')
        .select(['pk', 'id', 'key', 'name'])
        .where('collection', '=', at('groups'))
        .where('id', 'in', ids),
  ),
  parents: fixed<{ member: number }, { pk: number }>(dialect, (db, at) =>
    db.selectFrom('nested_groups').select('group_entry as pk').where('member_entry', '=', at('member')),
  ),
  ancestors: fixed<{ member: number }, { pk: number }>(dialect, (db, at) =>
    db
      .withRecursive('up', (cte) =>
        cte
          .selectFrom('nested_groups as n')
          .select('n.group_entry as pk')
          .where('n.member_entry', '=', at('member'))
          .union(
            cte
              .selectFrom('up')
              .innerJoin('nested_groups as n', 'n.member_entry', 'up.pk')
              .select('n.group_entry as pk'),
          ),
      )
      .selectFrom('up')
      .select('pk'),
  ),
  /** A group that is reached directly and through others is found in both ways; `max` keeps the direct one. */
  containing: fixedLists<{ groups: number }, string, Containing>(dialect, (db, at, ids) =>
    db
      .withRecursive('up', (cte) =>
        cte
          .selectFrom('entries as e')
          .innerJoin('nested_groups as n', 'n.member_entry', 'e.pk')
          .select(['e.id as member', 'n.group_entry as pk', sql<number>`1`.as('direct')])
          .where('e.collection', '=', at('groups'))
          .where('e.id', 'in', ids)
          .union(
            cte
              .selectFrom('up')
              .innerJoin('nested_groups as n', 'n.member_entry', 'up.pk')
              .select(['up.member', 'n.group_entry as pk', sql<number>`0`.as('direct')]),
          ),
      )
      .selectFrom('up')
      .innerJoin('entries as g', 'g.pk', 'up.pk')
      .select((eb) => ['up.member', 'g.id', 'g.name', eb.fn.max<number>('up.direct').as('direct')])
      .groupBy(['up.member', 'g.id', 'g.name', 'g.pk'])
      .orderBy('g.pk'),
  ),
  nest: fixed<{ group: number; member: number }, { member_entry: number }>(dialect, (db, at) =>
    db
      .insertInto('nested_groups')
      .values({ group_entry: at('group'), member_entry: at('member') })
      .onConflict((on) => on.columns(['group_entry', 'member_entry']).doNothing())
      .returning('member_entry'),
  ),
  takeOut: fixedLists<{ group: number }, number, { member_entry: number }>(dialect, (db, at, members) =>
    db
      .deleteFrom('nested_groups')
      .where('group_entry', '=', at('group'))
      .where('member_entry', 'in', members)
      .returning('member_entry'),
  ),
}))

/**
 * From here on, no one else nests groups of this directory until the transaction ends: of two that would close a circle
 * together, the second sees what the first has done.
 */
export async function lockNesting(tx: SqlTransaction, groups: number): Promise<void> {
  if (tx.dialect === 'postgres') await tx.query(statements(tx.dialect).lockNesting({ groups }))
}

export interface StoredGroup {
  readonly pk: number
  readonly id: string
  readonly key: string
  readonly name: string
}

/** By id; those that don't exist are missing from the answer. */
export async function groupsById(
  tx: SqlTransaction,
  groups: number,
  ids: readonly string[],
): Promise<Map<string, StoredGroup>> {
  const found = new Map<string, StoredGroup>()
  for (const query of statements(tx.dialect).byIds({ groups }, ids)) {
    for (const group of await tx.query(query)) found.set(group.id, group)
  }
  return found
}

/** The groups that the group is a direct member of. */
export async function parentsOf(tx: SqlTransaction, group: number): Promise<number[]> {
  return (await tx.query(statements(tx.dialect).parents({ member: group }))).map(({ pk }) => pk)
}

/** Throws CONFLICT when one of the members is the group itself or contains it. */
export async function refuseCircles(
  tx: SqlTransaction,
  group: { readonly pk: number; readonly name: string },
  members: readonly StoredGroup[],
): Promise<void> {
  if (members.length === 0) return
  const above = new Set((await tx.query(statements(tx.dialect).ancestors({ member: group.pk }))).map(({ pk }) => pk))
  const member = members.find(({ pk }) => pk === group.pk || above.has(pk))
  if (member === undefined) return
  const how = member.pk === group.pk ? '' : `: "${member.name}" already contains it`
  throw new GatewayError('CONFLICT', `the group "${group.name}" would contain itself${how}`, {
    publicText: `The group "${group.name}" would contain itself${how}.`,
  })
}

/** The members that were in fact added or removed. */
export async function changeNesting(
  tx: SqlTransaction,
  group: number,
  add: readonly number[],
  remove: readonly number[],
): Promise<{ readonly added: ReadonlySet<number>; readonly removed: ReadonlySet<number> }> {
  const removed = new Set<number>()
  for (const query of statements(tx.dialect).takeOut({ group }, remove)) {
    for (const { member_entry } of await tx.query(query)) removed.add(member_entry)
  }
  const added = new Set<number>()
  for (const member of add) {
    const rows = await tx.query(statements(tx.dialect).nest({ group, member }))
    if (rows.length > 0) added.add(member)
  }
  return { added, removed }
}

/** For each of these groups that others contain, by id: those, each once. */
export async function containingGroups(
  reader: SqlReader,
  groups: number,
  ids: readonly string[],
): Promise<Map<string, (NamedGroup & { readonly direct: boolean })[]>> {
  const found = new Map<string, (NamedGroup & { readonly direct: boolean })[]>()
  for (const query of statements(reader.dialect).containing({ groups }, ids)) {
    for (const { member, id, name, direct } of await reader.query(query)) {
      const list = found.get(member) ?? []
      list.push({ id, name, direct: direct > 0 })
      found.set(member, list)
    }
  }
  return found
}
