import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, onTestFinished } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { readAddress } from '#storage/client/databases.ts'
import { PostgresClient } from '#storage/client/postgres.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { SqliteClient } from '#storage/client/sqlite.ts'
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
  onBoth(name, suite, migratedSchema)
}

/** The same without any table. */
export function onEachEmptyDatabase(name: string, suite: DatabaseSuite): void {
  onBoth(name, suite, freshSchema)
}

function onBoth(name: string, suite: DatabaseSuite, schema: () => Promise<string>): void {
  describe(`${name} on SQLite`, () => {
    suite(async () => `sqlite:${join(temporaryFolder(), 'test.db')}`)
  })
  describe.skipIf(postgresUrl() === '')(`${name} on PostgreSQL`, () => {
    suite(schema)
  })
}

/** A client of the database without its tables; it closes with the test. */
export function connectTo(url: string): SqlClient {
  const { dialect, address } = readAddress(url)
  const client = dialect === 'sqlite' ? new SqliteClient(address) : new PostgresClient(address, silentLogger)
  onTestFinished(() => client.close())
  return client
}
