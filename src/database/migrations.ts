import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import type { DatabaseReader, DatabaseTransaction, SqlClient } from './sql-client.ts'
import { statement } from './statement.ts'

export interface Migration {
  readonly name: string
  readonly script: string
  readonly hash: string
}

/**
 * The schema of the database does not fit this program:
 * - `SCHEMA_NEWER`: it has migrations that the program does not know.
 * - `SCHEMA_OLDER`: it lacks migrations of the program, and the caller must not run them.
 * - `SCHEMA_CHANGED`: the migrations that ran are not those of the program.
 * - `RESTORE_UNFINISHED`: a restore of the database began, and did not end.
 */
export class SchemaMismatch extends Error {
  readonly code: 'SCHEMA_NEWER' | 'SCHEMA_OLDER' | 'SCHEMA_CHANGED' | 'RESTORE_UNFINISHED'

  constructor(code: SchemaMismatch['code'], message: string) {
    super(`${message} (${code})`)
    this.name = 'SchemaMismatch'
    this.code = code
  }
}

/**
 * What to do with pending migrations: run them, or refuse a database that has tables and lacks some. `restore` also
 * refuses a database without tables, and alone accepts one whose restore has not ended.
 */
export type MigrationPolicy = 'apply' | 'refuse' | 'restore'

/** Among the migrations that ran, so that no version uses a database while it is being restored. */
export const restoreMarker = 'restore'

const namePattern = /^\d{4}_[a-z0-9_]+\.sql$/

/** The migrations of a dialect, in order. A released file is never changed: the next one corrects it. */
export function readMigrations(dialect: SqlDialect): Migration[] {
  const folder = new URL(`${dialect}/`, new URL('./migrations/', import.meta.url))
  return readdirSync(fileURLToPath(folder))
    .filter((name) => namePattern.test(name))
    .sort()
    .map((name) => migration(name, readFileSync(new URL(name, folder), 'utf8')))
}

/** The hash does not depend on line endings. */
export function migration(name: string, text: string): Migration {
  const script = text.replaceAll('\r\n', '\n')
  return { name, script, hash: createHash('sha256').update(script).digest('hex') }
}

type Applied = Pick<Migration, 'name' | 'hash'>

const selectTable = statement<object, object>(({ name }) =>
  name === 'sqlite'
    ? "select name from sqlite_schema where type = 'table' and name = 'schema_migrations'"
    : "select 1 from pg_class where oid = to_regclass('schema_migrations')",
)
const selectApplied = statement<object, Applied>(`select name, hash from schema_migrations order by name`)
const insertApplied = statement<Applied & { applied: number }>(
  `insert into schema_migrations (name, hash, applied) values (:name, :hash, :applied)`,
)

export interface Schema {
  /** The names of the migrations that have run, in order. Empty for a database without our tables. */
  readonly applied: readonly string[]
  /** Those that have not. */
  readonly pending: readonly Migration[]
}

/** Reads only. Throws SchemaMismatch if the program can't use the database, now or after the pending migrations. */
export async function readSchema(
  reader: DatabaseReader,
  known: readonly Migration[],
  policy?: MigrationPolicy,
): Promise<Schema> {
  const found = (await selectTable.first(reader, {})) === undefined ? [] : await selectApplied.all(reader, {})
  const done = policy === 'restore' ? found.filter(({ name }) => name !== restoreMarker) : found
  return { applied: done.map(({ name }) => name), pending: pendingMigrations(done, known) }
}

/**
 * Runs all pending migrations or none, while other processes that try the same wait. Throws SchemaMismatch, and
 * changes nothing, if a newer version wrote the database, or a migration was changed after it ran; with `refuse`
 * also if migrations are pending, unless all of them are. With `restore`, throws an Error if all of them are.
 */
export async function migrate(
  client: SqlClient,
  migrations: readonly Migration[],
  clock: Clock,
  log: Logger,
  policy: MigrationPolicy = 'apply',
): Promise<void> {
  await client.migrate((tx, runScript) => migrateWithin(tx, runScript, migrations, clock, log, policy))
}

/** The same as part of a larger change of the database. */
export async function migrateWithin(
  tx: DatabaseTransaction,
  runScript: (script: string) => Promise<void>,
  migrations: readonly Migration[],
  clock: Clock,
  log: Logger,
  policy: MigrationPolicy = 'apply',
): Promise<void> {
  await runScript(
    'create table if not exists schema_migrations (name text primary key, hash text not null, applied bigint not null)',
  )
  const { applied, pending } = await readSchema(tx, migrations, policy)
  const [next] = pending
  if (policy === 'restore' && applied.length === 0) {
    throw new Error('the database has no tables of Gatehouse. Load the dump first; if pg_restore failed, repeat it')
  }
  if (policy !== 'apply' && applied.length > 0 && next !== undefined) {
    throw new SchemaMismatch(
      'SCHEMA_OLDER',
      `the database lacks the migration ${next.name} of this version. Run "gatehouse migrate", or start a gateway of this version`,
    )
  }
  for (const { name, script, hash } of pending) {
    await runScript(script)
    await insertApplied.run(tx, { name, hash, applied: clock().getTime() })
    log.info('database migrated', { migration: name })
  }
}

export function pendingMigrations(done: readonly Applied[], known: readonly Migration[]): readonly Migration[] {
  const byName = new Map(known.map((each) => [each.name, each]))
  for (const { name, hash } of done) {
    if (name === restoreMarker) {
      throw new SchemaMismatch(
        'RESTORE_UNFINISHED',
        'a restore of this database did not finish: sessions from before it may be valid again. Run "gatehouse restore --yes" again',
      )
    }
    const migration = byName.get(name)
    if (migration === undefined) {
      throw new SchemaMismatch(
        'SCHEMA_NEWER',
        `this program does not know the migration ${name} of the database: a newer version wrote it, or a checkout from before the first release. Use that version, or restore a backup from before the upgrade`,
      )
    }
    if (migration.hash !== hash) {
      throw new SchemaMismatch('SCHEMA_CHANGED', `the migration ${name} was changed after it ran on this database`)
    }
  }
  const names = new Set(done.map(({ name }) => name).sort())
  const last = [...names].at(-1) ?? ''
  const pending = known.filter(({ name }) => !names.has(name))
  const late = pending.find(({ name }) => name < last)
  if (late !== undefined) {
    throw new SchemaMismatch(
      'SCHEMA_CHANGED',
      `the migration ${late.name} comes before ${last}, which this database already has`,
    )
  }
  return pending
}
