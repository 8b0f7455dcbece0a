import sql from 'sql-template-tag'
import type { TimeAttribute } from '#identity/entry-times.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { groupCollection, userCollection } from '#modules/shared/targets/collections.ts'
import type { SqlDatabase, SqlDialect } from '#protocols/sql/sql-database.ts'
import type { LookupTarget, SearchPage, SearchQuery, Target } from '#sdk/target/target.ts'
import { columnOf } from './column.ts'
import { GroupRows, UserRows } from './entry-rows.ts'
import type { Layout, TimeColumns } from './layout.ts'
import type { SearchField } from './table-search.ts'
import { type SearchSpace, searchTable, timeField } from './table-search.ts'
import type { TableUsers } from './table-users.ts'
import type { TablesConfig, TimesConfig } from './tables-config.ts'
import { tableId } from './tables-config.ts'

/** The tables after they were read. */
export interface OpenTables {
  readonly layout: Layout
  readonly accounts: TableUsers
  readonly groups: GroupRows | undefined
  readonly userSpace: SearchSpace<User>
  readonly groupSpace: SearchSpace<Group> | undefined
}

/** The search spaces of users and groups. In filters `userID`, `name` and `id` are an entry's own. */
export function searchSpaces(
  layout: Layout,
  database: SqlDatabase,
): Pick<OpenTables, 'groups' | 'userSpace' | 'groupSpace'> {
  const { users, groups } = layout
  const rows = new UserRows(layout, database.dialect)
  const userFields = new Map<string, SearchField>([
    ...users.columns.map(({ attribute, column }) => [attribute.toLowerCase(), { alias: 'u', column }] as const),
    ...users.values.map(
      (values) => [values.attribute.toLowerCase(), { values, owner: columnOf('u', users.id) }] as const,
    ),
  ])
  for (const [name, field] of timeFields('u', users.times, database.dialect)) userFields.set(name, field)
  // An attribute with such a name takes precedence, as in memory.
  if (!userFields.has('userid')) userFields.set('userid', { alias: 'u', column: users.name })
  if (!userFields.has('id')) userFields.set('id', { alias: 'u', column: users.id })
  const userSpace: SearchSpace<User> = {
    from: sql`${tableId(users.table)} as u`,
    alias: 'u',
    key: users.id,
    columns: rows.columns,
    fields: userFields,
    collection: userCollection,
    read: (row) => rows.toUser(row),
  }
  if (groups === undefined) return { userSpace, groups: undefined, groupSpace: undefined }
  const groupRows = new GroupRows(layout, groups, database.dialect)
  const groupFields = new Map<string, SearchField>([
    ['name', { alias: 'g', column: groupRows.name }],
    ['id', { alias: 'g', column: groupRows.id }],
    ...(groups.own?.columns ?? []).map(
      ({ attribute, column }) => [attribute.toLowerCase(), { alias: 'g', column }] as const,
    ),
    ...(groups.own === undefined ? [] : timeFields('g', groups.own.times, database.dialect)),
  ])
  const groupSpace: SearchSpace<Group> = {
    from: groupRows.from,
    alias: 'g',
    key: groupRows.id,
    columns: groupRows.columns,
    fields: groupFields,
    collection: groupCollection,
    read: (row) => groupRows.toGroup(row),
  }
  return { userSpace, groups: groupRows, groupSpace }
}

/** By the reserved names, in lower case. */
const timeFields = (alias: string, { created, modified }: TimeColumns, dialect: SqlDialect) => [
  ...(created === undefined ? [] : [['meta.created', { time: timeField(alias, created, dialect) }] as const]),
  ...(modified === undefined ? [] : [['meta.lastmodified', { time: timeField(alias, modified, dialect) }] as const]),
]

const served = (times: TimesConfig | undefined): TimeAttribute[] => [
  ...(times?.created === undefined ? [] : (['meta.created'] as const)),
  ...(times?.modified === undefined ? [] : (['meta.lastModified'] as const)),
]

export function tableLookups(
  database: SqlDatabase,
  config: TablesConfig,
  open: () => Promise<OpenTables>,
  limitInMemory: number,
): Omit<LookupTarget, keyof Target> {
  async function group(by: 'name' | 'id', value: string, members: boolean): Promise<Group | undefined> {
    const { groups } = await open()
    const found = await groups?.find(database, by, value)
    return found === undefined || groups === undefined || !members ? found : groups.withMembers(database, found)
  }

  return {
    groupMembersAreIds: false,
    userIdIsLogin: config.users.id === undefined,
    groupHasOwnId: config.groups?.own?.id !== undefined,
    servedTimes: { users: served(config.users.times), groups: served(config.groups?.own?.times) },
    lookupUserByLogin: async (login) => (await open()).accounts.findAlike(database, login),
    lookupUserById: async (id) => (await open()).accounts.find(database, 'id', id),
    async searchUsers(query: SearchQuery): Promise<SearchPage<User>> {
      const page = await searchTable(database, (await open()).userSpace, query, limitInMemory)
      const { attributes } = query
      if (attributes === undefined) return page
      return { ...page, items: page.items.map((user) => ({ ...user, attributes: user.attributes.pick(attributes) })) }
    },
    lookupGroupByName: (name, options) => group('name', name, options?.members ?? true),
    lookupGroupById: (id, options) => group('id', id, options?.members ?? true),
    async searchGroups(query) {
      const { groupSpace } = await open()
      if (groupSpace === undefined) return { items: [], total: 0 }
      return searchTable(database, groupSpace, query, limitInMemory)
    },
  }
}
