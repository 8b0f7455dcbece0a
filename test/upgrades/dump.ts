import { readFileSync } from 'node:fs'
import { readAddress } from '#database/databases.ts'
import { migrate, readMigrations } from '#database/migrations.ts'
import { PostgresClient } from '#database/postgres.ts'
import type { SqlClient } from '#database/sql-client.ts'
import { SqliteClient } from '#database/sqlite.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'

/** Of the replicas that made the dumps; it also seals their audit. */
export const dumpKey = { GATEHOUSE_SECRET_KEY: Buffer.alloc(32, 9).toString('base64') }

/** Rows that differ in every run and mean nothing to the next gateway. */
const leftOut = ['schema_migrations', 'replicas', 'login_failures', 'job_runs', 'sqlite_sequence']

const connect = (url: string): SqlClient => {
  const { dialect, address } = readAddress(url)
  return dialect === 'sqlite' ? new SqliteClient(address) : new PostgresClient(address, silentLogger)
}

type Row = Readonly<Record<string, string | number | null>>

const read = async <R = Row>(client: SqlClient, sql: string): Promise<R[]> =>
  client.query({ sql, params: [], name: undefined })

/** The tables of a release, in the order of their creation, so that a row comes after the rows that it refers to. */
export function tablesOf(dialect: 'sqlite' | 'postgres', names: readonly string[]): string[] {
  return readMigrations(dialect)
    .filter(({ name }) => names.includes(name))
    .flatMap(({ script }) => Array.from(script.matchAll(/^create table (\w+)/gm), ([, table = '']) => table))
    .filter((table) => !leftOut.includes(table))
}

/** Every row of a table as JSON, without columns that later migrations added. */
export async function rowsOf(url: string, table: string, columns = '*'): Promise<Row[]> {
  const client = connect(url)
  try {
    return await read(client, `select ${columns} from ${table}`)
  } finally {
    await client.close()
  }
}

/** The rows of a database as SQL, which `loadDump` reads. The tables come from the migrations, which never change. */
export async function dumpOf(url: string): Promise<string> {
  const client = connect(url)
  try {
    const sql = 'select name, hash from schema_migrations order by name'
    const applied = await read<{ name: string; hash: string }>(client, sql)
    const names = applied.map(({ name }) => name)
    const lines = [...applied.map(({ name, hash }) => `-- migration ${name} ${hash}`), 'delete from audit_chains;']
    for (const table of tablesOf(client.dialect, names)) {
      const rows = await read(client, `select * from ${table}`)
      lines.push(...rows.map((row) => insertOf(table, row)).sort(byNumbers))
      if (client.dialect === 'postgres') lines.push(...(await sequencesOf(client, table)))
    }
    return `${lines.join('\n')}\n`
  } finally {
    await client.close()
  }
}

const byNumbers = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true })

function insertOf(table: string, row: Row): string {
  const values = Object.values(row).map((value) =>
    typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value),
  )
  return `insert into ${table} (${Object.keys(row).join(', ')}) values (${values.join(', ')});`
}

/** New rows get numbers behind those of the dump. */
async function sequencesOf(client: SqlClient, table: string): Promise<string[]> {
  const columns = await read<{ name: string }>(
    client,
    `select attname as name from pg_attribute where attrelid = to_regclass('${table}') and attidentity <> ''`,
  )
  return columns.map(
    ({ name }) =>
      `select setval(pg_get_serial_sequence('${table}', '${name}'), (select coalesce(max(${name}), 0) + 1 from ${table}), false);`,
  )
}

/** The migrations of the dump's release, with their hashes. */
export const migrationsIn = (text: string): { readonly name: string; readonly hash: string }[] =>
  Array.from(text.matchAll(/^-- migration (\S+) (\S+)$/gm), ([, name = '', hash = '']) => ({ name, hash }))

/** Creates the tables of the dump's release in an empty database, and fills them. */
export async function loadDump(file: string, url: string): Promise<void> {
  const text = readFileSync(file, 'utf8')
  const names = migrationsIn(text).map(({ name }) => name)
  const client = connect(url)
  try {
    const known = readMigrations(client.dialect).filter(({ name }) => names.includes(name))
    await migrate(client, known, systemClock, silentLogger)
    await client.migrate((_, runScript) => runScript(text))
  } finally {
    await client.close()
  }
}
