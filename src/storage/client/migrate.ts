import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { statement } from '#storage/client/statement.ts'

export interface Migration {
  readonly name: string
  readonly script: string
  readonly hash: string
}

const namePattern = /^\d{4}_[a-z0-9_]+\.sql$/

/** The migrations of a dialect, in order. A released file is never changed: the next one corrects it. */
export function readMigrations(dialect: SqlDialect): Migration[] {
  const folder = new URL(`../migrations/${dialect}/`, import.meta.url)
  return readdirSync(fileURLToPath(folder))
    .filter((name) => namePattern.test(name))
    .sort()
    .map((name) => migration(name, readFileSync(new URL(name, folder), 'utf8')))
}

/** The hash does not depend on how lines end. */
export function migration(name: string, text: string): Migration {
  const script = text.replaceAll('\r\n', '\n')
  return { name, script, hash: createHash('sha256').update(script).digest('hex') }
}

const selectApplied = statement<object, Pick<Migration, 'name' | 'hash'>>(`select name, hash from schema_migrations`)
const insertApplied = statement<Pick<Migration, 'name' | 'hash'> & { applied: number }>(
  `insert into schema_migrations (name, hash, applied) values (:name, :hash, :applied)`,
)

/**
 * Runs all pending migrations or none, while other processes that try the same wait. Throws, and changes nothing, when a
 * newer version wrote the database, or when a migration was changed after it ran.
 */
export async function migrate(
  client: SqlClient,
  migrations: readonly Migration[],
  clock: Clock,
  log: Logger,
): Promise<void> {
  await client.migrate(async (tx, runScript) => {
    await runScript(
      'create table if not exists schema_migrations (name text primary key, hash text not null, applied bigint not null)',
    )
    const done = await selectApplied.all(tx, {})
    const pending = pendingMigrations(done, migrations)
    for (const { name, script, hash } of pending) {
      await runScript(script)
      await insertApplied.run(tx, { name, hash, applied: clock().getTime() })
      log.info('database migrated', { migration: name })
    }
  })
}

function pendingMigrations(
  done: readonly { readonly name: string; readonly hash: string }[],
  known: readonly Migration[],
): readonly Migration[] {
  const byName = new Map(known.map((each) => [each.name, each]))
  for (const { name, hash } of done) {
    const migration = byName.get(name)
    if (migration === undefined) {
      throw new Error(
        `this program does not know the migration ${name} of the database: a newer version wrote it, or a checkout from before the first release`,
      )
    }
    if (migration.hash !== hash) {
      throw new Error(`the migration ${name} was changed after it ran on this database`)
    }
  }
  const names = new Set(done.map(({ name }) => name).sort())
  const last = [...names].at(-1) ?? ''
  const pending = known.filter(({ name }) => !names.has(name))
  const late = pending.find(({ name }) => name < last)
  if (late !== undefined) {
    throw new Error(`the migration ${late.name} comes before ${last}, which this database already has`)
  }
  return pending
}
