import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, onTestFinished } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/postgres.ts'

/** A folder that goes away with the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Describes a suite once for each database; `freshUrl` gives a test an empty one. */
export function onEachDatabase(name: string, suite: (freshUrl: () => Promise<string>) => void): void {
  describe(`${name} on SQLite`, () => {
    suite(async () => `sqlite:${join(temporaryFolder(), 'test.db')}`)
  })
  describe.skipIf(postgresUrl() === '')(`${name} on PostgreSQL`, () => {
    suite(freshSchema)
  })
}
