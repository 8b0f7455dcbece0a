import pg from 'pg'
import type { SqlClient, SqlQuery } from '#database/sql-client.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import type { Awaitable } from '#kernel/awaitable.ts'

interface PlannedRead {
  readonly name: string
  /** The indexes that PostgreSQL uses; SQLite names those of keys otherwise. */
  readonly indexes: readonly string[]
  read(people: UserDirectory): Awaitable<unknown>
}

const firstPage = { offset: 0, limit: 100 } as const
const changedSince = (time: number) => ({
  kind: 'greaterOrEqual' as const,
  attribute: 'meta.lastModified',
  value: new Date(time).toISOString(),
})

/**
 * The reads of a directory of `bulkPeople` that every installation does most, and the indexes of each. `id` and `groupId`
 * are those of one user and one group, `latest` the time of the newest user.
 */
export function plannedReads(id: string, groupId: string, latest: number): readonly PlannedRead[] {
  return [
    {
      name: 'user by id',
      indexes: ['entries_id_key', 'memberships_of_user'],
      read: (people) => people.lookupUserById(id),
    },
    {
      name: 'user by login',
      indexes: ['entries_collection_key_key'],
      read: (people) => people.lookupUserByLogin('user0000007'),
    },
    {
      name: 'filter emails.value eq',
      indexes: ['attributes_by_value'],
      read: (people) =>
        people.searchUsers({
          ...firstPage,
          filter: { kind: 'equal', attribute: 'emails.value', value: 'user0000007@example.com' },
        }),
    },
    {
      name: 'filter displayName sw',
      indexes: ['attributes_by_value'],
      read: (people) =>
        people.searchUsers({
          ...firstPage,
          filter: { kind: 'substring', attribute: 'displayName', initial: 'Given77 ', any: [] },
        }),
    },
    { name: 'first page of 100 users', indexes: ['entries_in_order'], read: (people) => people.searchUsers(firstPage) },
    {
      name: 'next page of 100 users',
      indexes: ['entries_in_order'],
      read: async (people) => {
        const { next } = await people.searchUsers(firstPage)
        return people.searchUsers({ ...firstPage, ...(next === undefined ? {} : { after: next }) })
      },
    },
    {
      name: 'users by displayName',
      indexes: ['attributes_by_value'],
      read: (people) =>
        people.searchUsers({
          ...firstPage,
          sort: { attribute: 'displayName', descending: false, caseExact: false },
        }),
    },
    {
      name: 'users changed since',
      indexes: ['entries_by_modified'],
      read: (people) => people.searchUsers({ ...firstPage, filter: changedSince(latest - 50) }),
    },
    {
      name: 'first page of 100 groups',
      indexes: ['entries_in_order'],
      read: (people) => people.searchGroups(firstPage),
    },
    {
      name: 'group by id with its members',
      indexes: ['memberships_pkey'],
      read: (people) => people.lookupGroupById(groupId),
    },
  ]
}

/**
 * The lines of the plan of a statement with its values. PostgreSQL plans a named statement for any values once it has run
 * a few times, so that is the plan of those.
 */
export function planOf(client: SqlClient, { sql, params, name }: SqlQuery<unknown>): Promise<string[]> {
  return client.transaction(async (tx) => {
    if (client.dialect === 'sqlite') {
      const rows = await tx.query<{ detail: string }>({ sql: `explain query plan ${sql}`, params, name: undefined })
      return rows.map(({ detail }) => detail)
    }
    const run = async (text: string): Promise<number> => tx.run({ sql: text, params: [], name: undefined })
    await run(`set local plan_cache_mode = ${name === undefined ? 'force_custom_plan' : 'force_generic_plan'}`)
    await run(`prepare planned as ${sql}`)
    const values = params.map((value) => (value === null ? 'null' : pg.escapeLiteral(String(value)))).join(', ')
    const rows = await tx.query<{ 'QUERY PLAN': string }>({
      sql: `explain (analyze, costs off, timing off, summary off, buffers off) execute planned${values === '' ? '' : `(${values})`}`,
      params: [],
      name: undefined,
    })
    await run('deallocate planned')
    return rows.map((row) => row['QUERY PLAN'])
  })
}
