import { expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { type Migration, migrate, migration, readMigrations } from '#storage/sql/migrate.ts'
import { builderFor, dynamic } from '#storage/sql/queries.ts'
import type { SqlClient } from '#storage/sql/sql-client.ts'
import { SqlUserDirectory } from '#storage/sql/sql-user-directory.ts'

const first = migration('0001_first.sql', 'create table first (a bigint); create table second (a bigint);')
const later = migration('0002_later.sql', 'create table third (a bigint);')

/** How databases are brought to the present form; `connect` connects again and again to the test's own one. */
export function migrationConformance(connect: () => Promise<() => SqlClient>): void {
  const run = (client: SqlClient, migrations: readonly Migration[]) =>
    migrate(client, migrations, systemClock, silentLogger)
  const applied = async (client: SqlClient) =>
    (
      await client.query(
        dynamic(builderFor(client.dialect).selectFrom('schema_migrations').select('name').orderBy('name')),
      )
    ).map(({ name }) => name)

  test('each migration runs once, and later ones follow', async () => {
    const client = (await connect())()
    await run(client, [first])
    await run(client, [first])
    await run(client, [first, later])
    expect(await applied(client)).toEqual(['0001_first.sql', '0002_later.sql'])
  })

  test('many who start at the same time migrate once', async () => {
    const open = await connect()
    const clients = Array.from({ length: 5 }, () => open())
    await Promise.all(clients.map((client) => run(client, [first, later])))
    for (const client of clients) expect(await applied(client)).toHaveLength(2)
  })

  test('a migration that fails leaves nothing behind', async () => {
    const client = (await connect())()
    await run(client, [first])
    const broken = migration('0003_broken.sql', 'create table fourth (a bigint); create table first (a bigint);')
    await expect(run(client, [first, later, broken])).rejects.toThrow(/first/)
    expect(await applied(client)).toEqual(['0001_first.sql'])
    await run(client, [first, later])
    expect(await applied(client)).toHaveLength(2)
  })

  test('a database of a newer program is refused', async () => {
    const client = (await connect())()
    await run(client, [first, later])
    await expect(run(client, [first])).rejects.toThrow(/newer version.*0002_later/)
  })

  test('a migration that was changed after its release is refused, but not for its line ends', async () => {
    const client = (await connect())()
    await run(client, [first])
    await run(client, [migration(first.name, first.script.replaceAll('; ', ';\r\n').replaceAll(';\r\n', '; '))])
    await expect(run(client, [migration(first.name, `${first.script}\n-- changed`)])).rejects.toThrow(
      /0001_first.*changed/,
    )
  })

  test('a migration that would come before one that has run is refused', async () => {
    const client = (await connect())()
    await run(client, [later])
    await expect(run(client, [first, later])).rejects.toThrow(/0001_first.*before/)
  })

  test('the migrations of the program run, and run again', async () => {
    const client = (await connect())()
    const migrations = readMigrations(client.dialect)
    expect(migrations.length).toBeGreaterThan(0)
    await run(client, migrations)
    await run(client, migrations)
    expect(await applied(client)).toEqual(migrations.map(({ name }) => name))
  })

  test('what entries held before they held it in one piece is still there', async () => {
    const client = (await connect())()
    const migrations = readMigrations(client.dialect)
    await run(
      client,
      migrations.filter(({ name }) => name < '0005'),
    )
    const db = builderFor(client.dialect)
    const value = (name: string, position: number, text: string) => ({
      entry: 7,
      collection: 3,
      name_key: name.toLowerCase(),
      position,
      name,
      value: text,
      value_key: text.toLowerCase(),
      long_key: null,
      number: null,
    })
    await client.transaction(async (tx) => {
      const named = { pk: 3, directory: 'old', kind: 'users' }
      await tx.run(dynamic(db.insertInto('collections').values(named)))
      const times = { version: 4, created: 1, modified: 2 }
      const old = { pk: 7, collection: 3, id: 'id7', name: 'Ada', key: 'ada', number: null, ...times }
      await tx.run(dynamic(db.insertInto('entries').values(old)))
      const rows = [value('Mail', 1, 'b"@x'), value('Mail', 0, 'a@x'), value('sn', 0, 'Lovelace')]
      await tx.run(dynamic(db.insertInto('attributes').values(rows)))
    })
    await run(client, migrations)
    const directory = new SqlUserDirectory(client, 'old', systemClock, async () => {})
    const found = await directory.findByLogin('ada')
    expect(found?.attributes.toObject()).toEqual({ Mail: ['a@x', 'b"@x'], sn: ['Lovelace'] })
    expect(found?.version).toBe('4')
  })
}
