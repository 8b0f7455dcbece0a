import { expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { connectTo, onEachEmptyDatabase } from '#testing/databases/databases.ts'
import { type Migration, migrate, migration, readMigrations, readSchema } from './migrations.ts'
import type { SqlClient } from './sql-client.ts'
import { statement } from './statement.ts'

const first = migration('0001_first.sql', 'create table first (a bigint); create table second (a bigint);')
const later = migration('0002_later.sql', 'create table third (a bigint);')

const selectNames = statement<object, { name: string }>(`select name from schema_migrations order by name`)

onEachEmptyDatabase('migrations', (freshUrl) => {
  /** Each call of the result opens another client of the test's database. */
  const connect = async () => {
    const url = await freshUrl()
    return () => connectTo(url)
  }
  const run = (client: SqlClient, migrations: readonly Migration[]) =>
    migrate(client, migrations, systemClock, silentLogger)
  const applied = async (client: SqlClient) => (await selectNames.all(client, {})).map(({ name }) => name)

  test('each migration runs once, in order', async () => {
    const client = (await connect())()
    await run(client, [first])
    await run(client, [first])
    await run(client, [first, later])
    expect(await applied(client)).toEqual(['0001_first.sql', '0002_later.sql'])
  })

  test('processes that start at the same time migrate once', async () => {
    const open = await connect()
    const clients = Array.from({ length: 5 }, () => open())
    await Promise.all(clients.map((client) => run(client, [first, later])))
    for (const client of clients) expect(await applied(client)).toHaveLength(2)
  })

  test('a migration that fails changes nothing', async () => {
    const client = (await connect())()
    await run(client, [first])
    const broken = migration('0003_broken.sql', 'create table fourth (a bigint); create table first (a bigint);')
    await expect(run(client, [first, later, broken])).rejects.toThrow(/first/)
    expect(await applied(client)).toEqual(['0001_first.sql'])
    await run(client, [first, later])
    expect(await applied(client)).toHaveLength(2)
  })

  test('a database of a newer version is rejected', async () => {
    const client = (await connect())()
    await run(client, [first, later])
    await expect(run(client, [first])).rejects.toThrow(/0002_later.*newer version/)
    await expect(run(client, [first])).rejects.toMatchObject({ code: 'SCHEMA_NEWER' })
    await expect(readSchema(client, [first])).rejects.toMatchObject({ code: 'SCHEMA_NEWER' })
  })

  test('the schema is read without a change', async () => {
    const client = (await connect())()
    expect(await readSchema(client, [first])).toEqual({ applied: [], pending: [first] })
    await expect(applied(client)).rejects.toThrow()
    await run(client, [first])
    expect(await readSchema(client, [first, later])).toEqual({ applied: [first.name], pending: [later] })
    expect(await applied(client)).toEqual([first.name])
  })

  test('a caller that must not migrate creates the tables of an empty database, and refuses an older one', async () => {
    const client = (await connect())()
    const refusing = (migrations: readonly Migration[]) =>
      migrate(client, migrations, systemClock, silentLogger, 'refuse')
    await refusing([first])
    await refusing([first])
    await expect(refusing([first, later])).rejects.toMatchObject({ code: 'SCHEMA_OLDER' })
    expect(await applied(client)).toEqual([first.name])
  })

  test('a migration that was changed after it ran is rejected, unless only its line endings differ', async () => {
    const client = (await connect())()
    await run(client, [first])
    await run(client, [migration(first.name, first.script.replaceAll('; ', ';\r\n').replaceAll(';\r\n', '; '))])
    await expect(run(client, [migration(first.name, `${first.script}\n-- changed`)])).rejects.toThrow(
      /0001_first.*changed/,
    )
  })

  test('a new migration with a lower number than the last one that ran is rejected', async () => {
    const client = (await connect())()
    await run(client, [later])
    await expect(run(client, [first, later])).rejects.toThrow(/0001_first.*before/)
  })

  test('the migrations of the program run once', async () => {
    const client = (await connect())()
    const migrations = readMigrations(client.dialect)
    expect(migrations.length).toBeGreaterThan(0)
    await run(client, migrations)
    await run(client, migrations)
    expect(await applied(client)).toEqual(migrations.map(({ name }) => name))
  })
})
