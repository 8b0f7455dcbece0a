import { expect, onTestFinished, test } from 'vitest'
import { Databases } from '#database/databases.ts'
import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { createGroup, createUser, sync, syncUser, user } from '#testing/databases/directory-writes.ts'
import { UserDirectoryStore } from './user-directory-store.ts'

/** A directory, and the first words and tables of the statements in its transactions. */
async function recorded(url: string) {
  const { client, release } = new Databases({ clock: systemClock, log: silentLogger }).use(url)
  onTestFinished(release)
  const statements: string[] = []
  const recording = (tx: DatabaseTransaction): DatabaseTransaction => ({
    dialect: tx.dialect,
    seal: tx.seal,
    query: (query) => {
      statements.push(shortForm(query.sql))
      return tx.query(query)
    },
    run: (query) => {
      statements.push(shortForm(query.sql))
      return tx.run(query)
    },
    send: (query) => {
      statements.push(shortForm(query.sql))
      tx.send(query)
    },
  })
  const recordingClient: SqlClient = {
    dialect: client.dialect,
    query: (query) => client.query(query),
    transaction: (work, durable) => client.transaction((tx) => work(recording(tx)), durable),
    owns: (transaction): transaction is DatabaseTransaction => client.owns(transaction),
    migrate: (plan) => client.migrate(plan),
    close: () => client.close(),
  }
  const directory = new UserDirectoryStore(recordingClient, 'people', systemClock, async () => {})
  // Finds the collections of the directory.
  await directory.searchUsers({ offset: 0, limit: 0 })
  return {
    dialect: client.dialect,
    directory,
    statementsOf: async (work: () => Promise<unknown>): Promise<readonly string[]> => {
      statements.length = 0
      await work()
      return [...statements]
    },
  }
}

const shortForm = (text: string): string => {
  const [, verb, table] = /\b(insert into|update|delete from|select\b.*?\bfrom) (\w+)/s.exec(text) ?? []
  return `${verb?.split(' ')[0]} ${table}`
}

onEachDatabase('statements of a directory', (freshUrl) => {
  test('a user is created by one statement for each table, and by one for all on PostgreSQL', async () => {
    const { dialect, directory, statementsOf } = await recorded(await freshUrl())
    const attributes = { mail: ['a@x.org', 'b@x.org'], phone: ['12'], title: ['Dr'] }
    expect(await statementsOf(() => createUser(directory, user('alice', attributes)))).toEqual(
      dialect === 'sqlite' ? ['insert entries', 'insert attributes', 'insert collection_sizes'] : ['insert entries'],
    )
    const { total, items } = await directory.searchUsers({ offset: 0, limit: 1 })
    expect([total, items[0]?.attributes.toObject()]).toEqual([1, attributes])
  })

  test('a new user joins several groups by one insert', async () => {
    const { directory, statementsOf } = await recorded(await freshUrl())
    await createUser(directory, user('alice', {}, ['a', 'b', 'c']))
    const statements = await statementsOf(() => createUser(directory, user('bob', { mail: ['b'] }, ['a', 'b', 'c'])))
    expect(statements.filter((text) => text === 'insert memberships')).toHaveLength(1)
    expect(statements.filter((text) => text === 'insert collection_sizes')).toHaveLength(1)
    expect((await directory.lookupUserByLogin('bob'))?.groups).toEqual(['a', 'b', 'c'])
  })

  test('a change of several attributes writes each table once, and the row of the user once', async () => {
    const { directory, statementsOf } = await recorded(await freshUrl())
    await createUser(directory, user('alice', { mail: ['a'], phone: ['1'], title: ['Dr'] }))
    const change = sync('alice', { mail: ['b'], phone: [], title: ['Dr'] })
    expect(await statementsOf(() => syncUser(directory, change))).toEqual([
      'select entries',
      'delete attributes',
      'insert attributes',
      'update entries',
    ])
    expect((await directory.lookupUserByLogin('alice'))?.version).toBe('2')
  })

  test('a user that joins or leaves the expected group reads that group once', async () => {
    const { directory, statementsOf } = await recorded(await freshUrl())
    await createUser(directory, user('alice', {}, ['other']))
    const { id } = await createGroup(directory, 'Crew')
    const change = (groups: string[], expectedVersion: string) =>
      sync('alice', {}, { groups, expectedVersion, expectedGroup: { name: 'crew', id } })
    expect(await statementsOf(() => syncUser(directory, change(['other', 'crew'], '1')))).toEqual([
      'select entries',
      'select entries',
      'select memberships',
      'insert memberships',
      'update entries',
    ])
    expect(await directory.lookupUserByLogin('alice')).toMatchObject({ groups: ['Crew', 'other'], version: '2' })
    const left = await statementsOf(() => syncUser(directory, change(['other'], '2')))
    expect(left.slice(3)).toEqual(['delete memberships', 'update entries'])
  })
})
