import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
// Loaded here, since the first load takes longer than a test may.
import './backup.ts'
import './migrate.ts'
import { lockInstance } from '#database/instance-lock.ts'
import { openStorage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { runCommand } from '#testing/gateway/command.ts'

function sql(data: string, text: string): Readonly<Record<string, unknown>>[] {
  const database = new DatabaseSync(join(data, 'gatehouse.db'))
  try {
    return database.prepare(text).all()
  } finally {
    database.close()
  }
}

const names = (data: string) => sql(data, "select name from sqlite_schema where type = 'table' and name = 'runs'")
const migrate = (data: string, ...more: string[]) => runCommand(['migrate', '--data', data, ...more])

/** The file of a database without tables. */
function emptyDatabase(): string {
  const data = temporaryFolder()
  sql(data, 'pragma user_version = 1')
  return data
}

test('a dry run prints what would run and changes nothing; then it runs once', async () => {
  const data = emptyDatabase()
  const dry = await migrate(data, '--dry-run')
  expect(dry).toMatchObject({ code: 0, stderr: '' })
  expect(dry.stdout).toContain('Would run 0001_initial.sql\nNothing was changed')
  expect(names(data)).toEqual([])
  expect(await migrate(data)).toMatchObject({ code: 0, stdout: expect.stringContaining('Ran 0001_initial.sql') })
  expect(names(data)).toHaveLength(1)
  expect(await migrate(data)).toMatchObject({
    code: 0,
    stdout: 'Schema of the database: 0001_initial.sql\nNothing to do: it is the schema of this version\n',
  })
})

test('a database of a newer version is refused with exit code 3, by every command', async () => {
  const data = temporaryFolder()
  const storage = openStorage({ dataFolder: data, clock: systemClock, log: silentLogger })
  await storage.ready()
  await storage.close()
  sql(data, "insert into schema_migrations values ('0999_later.sql', 'hash', 1)")
  for (const args of [['migrate'], ['migrate', '--dry-run'], ['audit', 'verify'], ['backup', join(data, 'copy.db')]]) {
    expect(await runCommand([...args, '--data', data])).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/does not know the migration 0999_later\.sql.*a newer version.*\(SCHEMA_NEWER\)/),
    })
  }
})

test('a gateway that runs is not migrated beneath', async () => {
  const data = emptyDatabase()
  const lock = await lockInstance({ dataFolder: data })
  expect(await migrate(data)).toMatchObject({ code: 1, stderr: expect.stringContaining('another gateway uses') })
  await lock.close?.()
  expect(names(data)).toEqual([])
})

test('a missing database is reported, and not created', async () => {
  const data = temporaryFolder()
  expect(await migrate(data)).toMatchObject({ code: 1, stderr: expect.stringContaining('does not exist') })
})
