import { Attributes } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import { pageInMemory } from '#identity/page-in-memory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { groupCollection, userCollection } from '#modules/shared/targets/collections.ts'
import type { SqlDatabase, SqlRow } from '#protocols/sql/sql-database.ts'
import type { LookupTarget, Target } from '#sdk/target.ts'
import { cell, type StatementAccounts } from './statement-accounts.ts'
import { bindStatement } from './statement-text.ts'
import type { StatementsConfig } from './statements-config.ts'

/** Whoever searches gets everything from the statement, and what is asked for is found in that. */
export function statementLookups(
  database: SqlDatabase,
  accounts: StatementAccounts,
  { statements }: StatementsConfig,
  limit: number,
): Omit<LookupTarget, keyof Target> {
  async function groups(): Promise<Group[]> {
    if (!statements.has('searchGroups')) return []
    const rows = await database.query(bindStatement(accounts.statement('searchGroups'), database.dialect, () => null))
    if (rows.length > limit)
      throw new GatewayError('TARGET_FAILED', `the statement searchGroups found more than ${limit} rows`)
    return rows.map(toGroup)
  }

  /** Not every statement gives ids, so a group goes by its name here, and the id serves the statement of its members. */
  const byName = (group: Group): Group => ({ ...group, id: group.name })

  async function named(name: string, members: boolean): Promise<Group | undefined> {
    const group = (await groups()).find((candidate) => candidate.name === name)
    if (group === undefined) return undefined
    if (!members || !statements.has('findGroupMembers')) return byName(group)
    const places = new Map([
      ['name', group.name],
      ['id', group.id],
    ])
    const statement = accounts.statement('findGroupMembers')
    const rows = await database.query(bindStatement(statement, database.dialect, (name) => places.get(name) ?? null))
    return { ...byName(group), members: rows.map((row) => String(cell(row, 'userID') ?? '')) }
  }

  return {
    groupMembersAreIds: false,
    userIdIsLogin: !statements.has('findUserById'),
    groupHasOwnId: false,
    lookupUserByLogin: (login) => accounts.find(database, 'login', login),
    lookupUserById: (id) => accounts.find(database, statements.has('findUserById') ? 'id' : 'login', id),
    async searchUsers(query) {
      const page = pageInMemory(await accounts.all(database, limit), query, userCollection)
      const items = []
      for (const user of page.items) items.push(await accounts.withGroups(database, user))
      return { ...page, items }
    },
    lookupGroupByName: (name, options) => named(name, options?.members ?? true),
    lookupGroupById: (id, options) => named(id, options?.members ?? true),
    searchGroups: async (query) => pageInMemory((await groups()).map(byName), query, groupCollection),
  }
}

function toGroup(row: SqlRow): Group {
  const name = String(cell(row, 'name') ?? '')
  const attributes = new Attributes()
  for (const [key, value] of Object.entries(row)) {
    if (value !== null && !/^(?:name|id)$/i.test(key)) attributes.set(key, [String(value)])
  }
  const description = attributes.first('description')
  return {
    id: String(cell(row, 'id') ?? name),
    name,
    members: [],
    attributes,
    ...(description === undefined ? {} : { description }),
  }
}
