import { expect, test } from 'vitest'
import type { SqlClient } from '#database/sql-client.ts'
import { systemClock } from '#kernel/clock.ts'
import { bulkPeople, createDirectory } from '#testing/databases/bulk-people.ts'
import { connectTo, onEachDatabase } from '#testing/databases/databases.ts'
import { plannedReads, planOf } from '#testing/databases/directory-plans.ts'
import { createUser, deleteUser } from '#testing/databases/directory-writes.ts'
import { recordedQueries } from '#testing/databases/recorded-queries.ts'
import { UserDirectoryStore } from './user-directory-store.ts'

const since = Date.UTC(2026, 0, 1)
const login = 'user0000007'
/** A whole table, or a whole index of it, whatever the statement calls it. */
const wholeTable =
  /Seq Scan on (?:entries|attributes|memberships)|SCAN (?:e|a|s|m|r|l|entries|attributes|memberships)\b/

async function filled(url: string, users: number, groups: number): Promise<SqlClient> {
  await createDirectory({ url }, 'people')
  const client = connectTo(url)
  const rows = bulkPeople('people', users, groups, since)
  const analyze =
    client.dialect === 'postgres' ? ['analyze entries, attributes, memberships, collections, collection_sizes'] : []
  await client.transaction(async (tx) => {
    for (const sql of [...rows.users, ...rows.groups, ...analyze, ...rows.memberships, ...analyze]) {
      await tx.run({ sql, params: [], name: undefined })
    }
  })
  return client
}

onEachDatabase('plans of a directory', (freshUrl) => {
  test('each read uses its index, and no read takes a whole table', async () => {
    const users = 8000
    const client = await filled(await freshUrl(), users, users / 10)
    const { client: recorded, queries } = recordedQueries(client)
    const people = new UserDirectoryStore(recorded, 'people', systemClock, async () => {})
    const [user, group] = [await people.lookupUserByLogin(login), await people.lookupGroupByName('group0000007')]
    const problems: string[] = []
    for (const { name, indexes, read } of plannedReads(user?.id ?? '', group?.id ?? '', since + users)) {
      queries.length = 0
      await read(people)
      const plans: string[] = []
      for (const query of queries) plans.push((await planOf(client, query)).join('\n'))
      const text = plans.join('\n')
      if (wholeTable.test(text)) problems.push(`${name} reads a whole table:\n${text}`)
      for (const index of indexes) {
        if (!text.includes(shownName(client, index))) problems.push(`${name} does not use ${index}:\n${text}`)
      }
    }
    expect(problems).toEqual([])
  })

  test('the rows are those that the program writes for the same user', async () => {
    const client = await filled(await freshUrl(), 60, 20)
    const people = new UserDirectoryStore(client, 'people', systemClock, async () => {})
    const rows = async (): Promise<unknown[]> => {
      const read = (sql: string) => client.query<unknown>({ sql, params: [], name: undefined })
      const ofUser = `(select pk from entries where key = '${login}')`
      return [
        await read(`select collection, name, key, number, version, attributes from entries where key = '${login}'`),
        await read(`select name_key, position, collection, name, value, value_key, long_key, number from attributes
          where entry = ${ofUser} order by name_key`),
        await read(`select group_entry from memberships where user_entry = ${ofUser} order by group_entry`),
      ]
    }
    const before = await rows()
    expect(before).toEqual([[expect.anything()], Array(7).fill(expect.anything()), Array(2).fill(expect.anything())])
    const user = await people.lookupUserByLogin(login)
    if (user === undefined) throw new Error(`no user ${login}`)
    await deleteUser(people, login)
    await createUser(people, user)
    expect(await rows()).toEqual(before)
  })
})

/** How a plan shows the index. */
const shownName = ({ dialect }: SqlClient, index: string): string =>
  (dialect === 'sqlite' ? columnsOf[index] : undefined) ?? index

/** SQLite numbers the indexes of keys. */
const columnsOf: Readonly<Record<string, string>> = {
  entries_id_key: '(id=?)',
  entries_collection_key_key: '(collection=? AND key=?)',
  memberships_pkey: '(group_entry=?)',
}
