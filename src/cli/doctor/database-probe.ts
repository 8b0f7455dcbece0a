import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { readAddress } from '#database/databases.ts'
import { pendingMigrations, readMigrations, SchemaMismatch } from '#database/migrations.ts'
import { dialectTexts } from '#database/statement.ts'
import { expiringTokens } from '#features/scim/tokens/client-token-store.ts'
import { silentLogger } from '#kernel/logger.ts'
import { readPostgresAddress } from '#protocols/sql/postgres-address.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import { isDamaged } from '#protocols/sql/sqlite.ts'
import { refuseLeftover } from '#server/backup/staging-folder.ts'
import { isUnfinished } from '#workflows/store/run-store.ts'
import { clockFinding, type Finding, ok, type Probe, problem, reasonOf, warning } from './diagnosis.ts'

interface Applied {
  readonly name: string
  readonly hash: string
}

/** Reads the database of a gateway, and changes nothing: it neither creates nor migrates it. */
export function databaseProbe(url: string | undefined, data: string): Probe {
  const { dialect, address } = url === undefined ? embedded(data) : readAddress(url)
  if (dialect === 'sqlite') {
    return {
      probe: 'database',
      at: address,
      advice: 'Check that the file is a database of Gatehouse, and that this user can read it.',
      run: async () => sqlite(address),
    }
  }
  const { shown, servers } = readPostgresAddress(address)
  return {
    probe: 'database',
    at: shown,
    advice:
      'Check host, port, user, password and TLS of the address, and that PostgreSQL accepts connections of this machine.',
    run: () => postgres(address, servers.length > 1),
  }
}

const embedded = (data: string): { dialect: SqlDialect; address: string } => ({
  dialect: 'sqlite',
  address: join(data, 'gatehouse.db'),
})

function sqlite(file: string): Finding[] {
  if (!existsSync(file)) refuseLeftover(dirname(file))
  if (!existsSync(file)) return [ok('the file does not exist yet: serve creates it')]
  const started = performance.now()
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const version = database.prepare('select sqlite_version() as version').get()?.['version']
    const tables = database.prepare("select 1 from sqlite_schema where name = 'schema_migrations'").all()
    const rows = tables.length === 0 ? [] : database.prepare('select name, hash from schema_migrations').all()
    const millis = Math.round(performance.now() - started)
    const schema = schemaFinding('sqlite', rows as unknown as Applied[])
    const found = String(database.prepare('select quick_check as found from pragma_quick_check').get()?.['found'])
    if (found !== 'ok') return [damaged(found)]
    const count = hasRuns(schema, rows) ? database.prepare(countUnfinished).get()?.['count'] : 0
    const expiring = hasRuns(schema, rows)
      ? database.prepare(expiringTokens(dialectTexts.sqlite.now)).get()?.['count']
      : 0
    return [
      ok(`SQLite ${version}, answered in ${millis} ms`),
      schema,
      ...unfinishedFindings(Number(count)),
      ...tokenFindings(Number(expiring)),
    ]
  } catch (error) {
    if (isDamaged(error)) return [damaged(reasonOf(error))]
    throw error
  } finally {
    database.close()
  }
}

const damaged = (found: string): Finding =>
  problem(
    `the file is damaged: ${found}`,
    'Stop the gateway, keep the file, and restore the newest backup with "gatehouse restore".',
  )

const slowMillis = 50
const oldestPostgres = 14

async function postgres(address: string, hasStandby: boolean): Promise<Finding[]> {
  const { PostgresClient } = await import('#database/postgres.ts')
  const client = new PostgresClient(address, silentLogger)
  const query = <R>(sql: string): Promise<R[]> => client.query<R>({ sql, params: [], name: undefined })
  try {
    const [{ version = '' } = {}] = await query<{ version: string }>(
      `select current_setting('server_version') as version`,
    )
    // The connection is open by now.
    const from = Date.now()
    const started = performance.now()
    const [{ now = 0 } = {}] = await query<{ now: number }>(
      `select cast(extract(epoch from clock_timestamp()) * 1000 as double precision) as now`,
    )
    const millis = Math.round(performance.now() - started)
    const to = Date.now()
    const [{ found = false } = {}] = await query<{ found: boolean }>(
      `select to_regclass('schema_migrations') is not null as found`,
    )
    const rows = found ? await query<Applied>('select name, hash from schema_migrations') : []
    const schema = schemaFinding('postgres', rows)
    const [{ count = 0 } = {}] = hasRuns(schema, rows) ? await query<{ count: number }>(countUnfinished) : []
    const tokens = hasRuns(schema, rows)
      ? await query<{ count: number }>(expiringTokens(dialectTexts.postgres.now))
      : []
    const seen = `PostgreSQL ${version}, answered in ${millis} ms`
    const slow = 'Move the gateway closer to the database: each change waits for several answers.'
    return [
      millis > slowMillis ? warning(seen, slow) : ok(seen),
      ...(Number.parseInt(version, 10) < oldestPostgres
        ? [warning(`PostgreSQL ${version} is older than ${oldestPostgres}`, 'Upgrade PostgreSQL.')]
        : []),
      schema,
      ...replicationFindings(await query<Replication>(readReplication).catch(() => []), hasStandby),
      ...unfinishedFindings(Number(count)),
      ...tokenFindings(Number(tokens[0]?.count ?? 0)),
      clockFinding(new Date(now), { from, to }, 'the database'),
    ]
  } finally {
    await client.close()
  }
}

interface Replication {
  readonly names: string
  readonly commit: string
  readonly standbys: number
}

/** Every role sees these rows, though not all of their columns. */
const readReplication = `select current_setting('synchronous_standby_names') as names,
  current_setting('synchronous_commit') as commit,
  (select count(*) from pg_stat_replication as sender
    where coalesce(application_name, '') not in ('pg_basebackup', 'pg_receivewal')
    and not exists (select from pg_replication_slots where active_pid = sender.pid and slot_type = 'logical')) as standbys`

function replicationFindings([found]: readonly Replication[], hasStandby: boolean): Finding[] {
  if (found === undefined) return []
  const { names, commit, standbys } = found
  if (commit === 'off') {
    const remedy = 'Set synchronous_commit to on for the database and the role of the gateway.'
    return [warning('synchronous_commit is off: a crash of the database loses answered changes', remedy)]
  }
  if (names !== '' && commit === 'local') {
    const remedy = 'Set synchronous_commit to on for the database and the role of the gateway.'
    return [warning('synchronous_commit is local: a failover loses answered changes', remedy)]
  }
  if (names !== '') return [ok('a commit waits for a synchronous standby')]
  if (standbys === 0 && !hasStandby) return []
  const remedy =
    'Set synchronous_standby_names, or what sets it in your operator of PostgreSQL: see docs/guides/scaling.md.'
  return [warning('it has a standby, but no synchronous one: a failover loses answered changes', remedy)]
}

const countUnfinished = `select count(*) as count from runs where ${isUnfinished}`

const hasRuns = ({ level }: Finding, applied: readonly unknown[]): boolean => level === 'ok' && applied.length > 0

function unfinishedFindings(count: number): Finding[] {
  if (count === 0) return []
  const what = count === 1 ? '1 change has' : `${count} changes have`
  const remedy = 'List them with "gatehouse workflow list --unfinished", then retry or cancel them.'
  return [warning(`${what} failed part way`, remedy)]
}

function tokenFindings(count: number): Finding[] {
  if (count === 0) return []
  const what = count === 1 ? '1 token of a SCIM client expires' : `${count} tokens of SCIM clients expire`
  const remedy = 'List them with "gatehouse scim token list", and replace them with "gatehouse scim token rotate".'
  return [warning(`${what} within two weeks`, remedy)]
}

function schemaFinding(dialect: SqlDialect, applied: readonly Applied[]): Finding {
  if (applied.length === 0) return ok('it has no tables of Gatehouse yet: serve creates them')
  try {
    const pending = pendingMigrations(applied, readMigrations(dialect))
    const newest = applied
      .map(({ name }) => name.replace(/\.sql$/, ''))
      .sort()
      .at(-1)
    if (pending.length === 0) return ok(`schema ${newest}, the newest`)
    const names = pending.map(({ name }) => name.replace(/\.sql$/, '')).join(', ')
    return warning(
      `schema ${newest}; ${names} are pending`,
      'Make a backup: serve migrates the database when it starts.',
    )
  } catch (error) {
    const isRestoring = error instanceof SchemaMismatch && error.code === 'RESTORE_UNFINISHED'
    const other = 'Use the version of Gatehouse that wrote the database, or a newer one.'
    return problem(reasonOf(error), isRestoring ? 'Until then no gateway starts on it.' : other)
  }
}
