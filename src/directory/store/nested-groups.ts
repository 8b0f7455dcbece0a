import type { DatabaseReader, DatabaseTransaction } from '#database/sql-client.ts'
import { ListStatement, statement } from '#database/statement.ts'
import { foldKey, isStorable } from '#database/text-keys.ts'
import type { ContainingGroup, EntryChange, MemberGroupChange } from '#identity/account-store.ts'
import { GatewayError } from '#kernel/errors.ts'
import { checkNames } from './attributes.ts'
import { bumpEntries, type DirectoryWrite, findEntries, lockEntries, lockEntry } from './entries.ts'
import { changeMemberRows, memberChanges, memberTable } from './memberships.ts'

interface StoredGroup {
  readonly pk: number
  readonly id: string
  readonly key: string
  readonly name: string
}

export async function changeMemberGroups(
  { transaction, groups, now }: DirectoryWrite,
  groupName: string,
  { add, remove, groupId }: MemberGroupChange,
): Promise<readonly EntryChange[]> {
  const named = [...add, ...remove]
  checkNames(
    'group name',
    named.map(({ name }) => name),
  )
  const ids = named.map(({ id }) => id)
  if (groupId !== undefined) ids.push(groupId)
  const wanted = [...new Set(ids)].filter(isStorable)
  return await transaction(async (tx) => {
    if (add.length > 0) await lockNesting(tx, groups)
    const key = foldKey(groupName)
    const found = isStorable(groupName) ? (await findEntries(tx, groups, [key])).get(key) : undefined
    if (found === undefined) throw noGroup(groupName)
    const joining = await groupsById(tx, groups, wanted)
    await lockEntries(tx, [found.pk, ...add.flatMap(({ id }) => joining.get(id)?.pk ?? [])])
    // Read again: a group that was renamed or deleted before it was locked is not the requested one.
    const group = await lockEntry(tx, groups, groupName)
    const known = await groupsById(tx, groups, wanted)
    const isOther = groupId !== undefined && known.get(groupId)?.pk !== group?.pk
    if (group === undefined || group.pk !== found.pk || isOther) throw noGroup(groupName)
    const adding = add.map(({ id, name }) => {
      const member = known.get(id)
      if (member === undefined || member.key !== foldKey(name)) throw noGroup(name)
      return member
    })
    await refuseCircles(tx, group, adding)
    const staying = new Set(adding.map(({ pk }) => pk))
    const leaving = remove.flatMap(({ id }) => known.get(id) ?? []).filter(({ pk }) => !staying.has(pk))
    const keys = { add: [...staying], remove: leaving.map(({ pk }) => pk) }
    const { added, removed } = await changeMemberRows(tx, groupMembers, group.pk, keys)
    if (added.size + removed.size === 0) return []
    await bumpEntries(tx, [group.pk], now)
    return [
      ...memberChanges('delete', [...new Set(leaving)], removed),
      ...memberChanges('add', [...new Set(adding)], added),
    ]
  })
}

const groupMembers = memberTable('nested_groups', 'memberEntry')

const noGroup = (name: string): GatewayError =>
  new GatewayError('NOT_FOUND', `no group ${name}`, { publicText: `There is no group "${name}".` })

/**
 * No other transaction nests groups of this directory until this one ends. Of two that would close a circle together, the
 * second sees the change of the first.
 */
async function lockNesting(tx: DatabaseTransaction, groups: number): Promise<void> {
  if (tx.dialect === 'postgres') await lockCollection.first(tx, { groups })
}

/** Creating a group needs only a key share of the row, which this lock permits. */
const lockCollection = statement<{ groups: number }, { pk: number }>(
  (on) => `select pk from collections where pk = :groups ${on.forNoKeyUpdate}`,
)

/** Groups that do not exist are missing from the result. */
async function groupsById(
  tx: DatabaseTransaction,
  groups: number,
  ids: readonly string[],
): Promise<Map<string, StoredGroup>> {
  return new Map((await findByIds.all(tx, { groups }, ids)).map((group) => [group.id, group]))
}

const findByIds = new ListStatement<{ groups: number }, string, StoredGroup>(
  `select pk, id, key, name from entries where collection = :groups and id in (:list)`,
)

/** Throws CONFLICT when one of the members is the group or contains it. */
async function refuseCircles(
  tx: DatabaseTransaction,
  group: { readonly pk: number; readonly name: string },
  members: readonly StoredGroup[],
): Promise<void> {
  if (members.length === 0) return
  const above = new Set((await findAncestors.all(tx, { member: group.pk })).map(({ pk }) => pk))
  const member = members.find(({ pk }) => pk === group.pk || above.has(pk))
  if (member === undefined) return
  const how = member.pk === group.pk ? '' : `: "${member.name}" already contains it`
  throw new GatewayError('CONFLICT', `the group "${group.name}" would contain itself${how}`, {
    publicText: `The group "${group.name}" would contain itself${how}.`,
  })
}

const findAncestors = statement<{ member: number }, { pk: number }>(
  `with recursive up as (
     select n.group_entry as pk from nested_groups as n where n.member_entry = :member
     union select n.group_entry as pk from up inner join nested_groups as n on n.member_entry = up.pk)
   select pk from up`,
)

/** The groups that directly contain the group. */
export const parentsOf = async (tx: DatabaseTransaction, group: number): Promise<number[]> =>
  (await findParents.all(tx, { member: group })).map(({ pk }) => pk)

const findParents = statement<{ member: number }, { pk: number }>(
  `select group_entry as pk from nested_groups where member_entry = :member`,
)

/** For each of these groups that others contain, by id: the groups that contain it, each once. */
export async function containingGroups(
  reader: DatabaseReader,
  groups: number,
  ids: readonly string[],
): Promise<Map<string, ContainingGroup[]>> {
  const found = new Map<string, ContainingGroup[]>()
  for (const { member, id, name, direct } of await findContaining.all(reader, { groups }, ids)) {
    const list = found.get(member) ?? []
    list.push({ id, name, direct: direct > 0 })
    found.set(member, list)
  }
  return found
}

/** A group that contains another both directly and through others counts as direct: `max`. */
const findContaining = new ListStatement<
  { groups: number },
  string,
  { member: string; id: string; name: string; direct: number }
>(
  `with recursive up as (
     select e.id as member, n.group_entry as pk, 1 as direct
     from entries as e inner join nested_groups as n on n.member_entry = e.pk
     where e.collection = :groups and e.id in (:list)
     union select up.member, n.group_entry as pk, 0 as direct
     from up inner join nested_groups as n on n.member_entry = up.pk)
   select up.member, g.id, g.name, max(up.direct) as direct
   from up inner join entries as g on g.pk = up.pk group by up.member, g.id, g.name, g.pk order by g.pk`,
)
