import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, onTestFinished } from 'vitest'
import { readAddress } from '#database/databases.ts'
import { PostgresClient } from '#database/postgres.ts'
import type { SqlClient } from '#database/sql-client.ts'
import { SqliteClient } from '#database/sqlite.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { freshSchema, migratedSchema, postgresUrl } from '#testing/databases/postgres.ts'

/** A folder that is removed after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

type DatabaseSuite = (freshUrl: () => Promise<string>) => void

/** Describes a suite once for each database; `freshUrl` gives a test one for the gateway, without any data. */
export function onEachDatabase(name: string, suite: DatabaseSuite): void {
  onBoth(name, suite, freshFile, migratedSchema)
}

/** The same without any table. */
export function onEachEmptyDatabase(name: string, suite: DatabaseSuite): void {
  onBoth(name, suite, emptyFile, freshSchema)
}

type FreshUrl = Parameters<DatabaseSuite>[0]

function onBoth(name: string, suite: DatabaseSuite, file: FreshUrl, schema: FreshUrl): void {
  describe(`${name} on SQLite`, () => {
    suite(file)
  })
  describe.skipIf(postgresUrl() === '')(`${name} on PostgreSQL`, () => {
    suite(schema)
  })
}

const emptyFile: FreshUrl = async () => `sqlite:${join(temporaryFolder(), 'test.db')}`

let migrated: Promise<Buffer> | undefined

/** A copy of one file with the tables of the gateway: creating them takes more time than most tests. */
export const freshFile: FreshUrl = async () => {
  migrated ??= migrateFile()
  const file = join(temporaryFolder(), 'test.db')
  writeFileSync(file, await migrated, { mode: 0o600 })
  return `sqlite:${file}`
}

async function migrateFile(): Promise<Buffer> {
  const file = join(temporaryFolder(), 'test.db')
  const storage = openStorage({ url: `sqlite:${file}`, clock: systemClock, log: silentLogger })
  await storage.ready()
  await storage.close()
  return readFileSync(file)
}

/** A client of the database without its tables; it closes with the test. */
export function connectTo(url: string): SqlClient {
  const { dialect, address } = readAddress(url)
  const client = dialect === 'sqlite' ? new SqliteClient(address) : new PostgresClient(address, silentLogger)
  onTestFinished(() => client.close())
  return client
}
