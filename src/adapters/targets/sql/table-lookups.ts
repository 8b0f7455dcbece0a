import sql from 'sql-template-tag'
import { groupCollection, userCollection, withAttributes } from '#adapters/targets/shared/collections.ts'
import type { TimeAttribute } from '#identity/entry-times.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlDatabase } from '#protocols/sql/sql-database.ts'
import type { LookupTarget, Target } from '#sdk/target/target.ts'
import { type Column, columnOf } from './column.ts'
import { GroupRows, UserRows } from './entry-rows.ts'
import type { Layout } from './layout.ts'
import { type SearchField, type SearchSpace, searchTable, timeField } from './table-search.ts'
import type { TableUsers } from './table-users.ts'
import { type EntryTable, type EntryTimes, type Tables, tableId } from './tables.ts'

/** The tables after they were read. */
export interface OpenTables {
  readonly layout: Layout
  readonly accounts: TableUsers
  readonly groups: GroupRows | undefined
  readonly userSpace: SearchSpace<User>
  readonly groupSpace: SearchSpace<Group> | undefined
}

/** The search spaces of users and groups. In filters `userID`, `name` and `id` are an entry's own. */
export function searchSpaces(layout: Layout): Pick<OpenTables, 'groups' | 'userSpace' | 'groupSpace'> {
  const { users, groups } = layout
  const rows = new UserRows(layout)
  const values = Array.from(users.values, ([attribute, values]) => {
    return [attribute.toLowerCase(), { values, owner: columnOf('u', users.id) }] as const
  })
  const userSpace: SearchSpace<User> = {
    from: sql`${tableId(users.table)} as u`,
    alias: 'u',
    key: users.id,
    columns: rows.columns,
    // An attribute with such a name takes precedence, as in memory.
    fields: new Map([
      ...ownFields('u', users, 'userid'),
      ...columnFields('u', users),
      ...values,
      ...timeFields('u', users),
    ]),
    collection: userCollection,
    read: (row) => rows.toUser(row),
  }
  if (groups === undefined) return { userSpace, groups: undefined, groupSpace: undefined }
  const groupRows = new GroupRows(layout, groups)
  const { entry } = groupRows
  const groupSpace: SearchSpace<Group> = {
    from: groupRows.from,
    alias: 'g',
    key: entry.id,
    columns: groupRows.columns,
    fields: new Map([...ownFields('g', entry, 'name'), ...columnFields('g', entry), ...timeFields('g', entry)]),
    collection: groupCollection,
    read: (row) => groupRows.toGroup(row),
  }
  return { userSpace, groups: groupRows, groupSpace }
}

/** By name in lower case. */
type NamedFields = readonly (readonly [string, SearchField])[]

const ownFields = (alias: string, { name, id }: EntryTable<Column>, called: string): NamedFields => [
  [called, { alias, column: name }],
  ['id', { alias, column: id }],
]

const columnFields = (alias: string, { columns }: EntryTable<Column>): NamedFields =>
  Array.from(columns, ([attribute, column]) => [attribute.toLowerCase(), { alias, column }])

const timeFields = (alias: string, { times: { created, modified } }: EntryTable<Column>): NamedFields => [
  ...(created === undefined ? [] : [['meta.created', { time: timeField(alias, created) }] as const]),
  ...(modified === undefined ? [] : [['meta.lastmodified', { time: timeField(alias, modified) }] as const]),
]

const served = (times: EntryTimes<string> | undefined): TimeAttribute[] => [
  ...(times?.created === undefined ? [] : (['meta.created'] as const)),
  ...(times?.modified === undefined ? [] : (['meta.lastModified'] as const)),
]

export function tableLookups(
  database: SqlDatabase,
  config: Tables<string>,
  open: () => Promise<OpenTables>,
  limitInMemory: number,
): Omit<LookupTarget, keyof Target> {
  async function group(by: 'name' | 'id', value: string, members: boolean): Promise<Group | undefined> {
    const { groups } = await open()
    const found = await groups?.find(database, by, value)
    return found === undefined || groups === undefined || !members ? found : groups.withMembers(database, found)
  }

  /** The only user whose login differs in the case of letters beyond ASCII, if not too many come into question. */
  async function otherCase(login: string): Promise<User | undefined> {
    if (/^\p{ASCII}*$/u.test(login) || login.toLowerCase() === login.toUpperCase()) return undefined
    const filter = { kind: 'equal', attribute: 'userID', value: login } as const
    const { userSpace } = await open()
    try {
      const { items, total } = await searchTable(database, userSpace, { filter, offset: 0, limit: 1 }, limitInMemory)
      return total === 1 ? items[0] : undefined
    } catch (error) {
      if (error instanceof GatewayError && error.keyword === 'tooMany') return undefined
      throw error
    }
  }

  return {
    groupMembersAreIds: false,
    userIdIsLogin: config.users.id === config.users.name,
    groupHasOwnId: config.groups?.own !== undefined && config.groups.own.id !== config.groups.own.name,
    servedTimes: { users: served(config.users.times), groups: served(config.groups?.own?.times) },
    lookupUserByLogin: async (login) => (await (await open()).accounts.findAlike(database, login)) ?? otherCase(login),
    lookupUserById: async (id) => (await open()).accounts.find(database, 'id', id),
    searchUsers: async (query) =>
      withAttributes(await searchTable(database, (await open()).userSpace, query, limitInMemory), query),
    lookupGroupByName: (name, options) => group('name', name, options?.members ?? true),
    lookupGroupById: (id, options) => group('id', id, options?.members ?? true),
    async searchGroups(query) {
      const { groupSpace } = await open()
      if (groupSpace === undefined) return { items: [], total: 0 }
      return searchTable(database, groupSpace, query, limitInMemory)
    },
  }
}
