import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'

/** The run's PostgreSQL; empty if there is none. */
export const postgresUrl = (): string => inject('postgresUrl')

/** The address of an empty schema in the run's PostgreSQL. */
export async function freshSchema(): Promise<string> {
  return (await createSchema()).url
}

interface Schema {
  readonly name: string
  readonly url: string
}

async function createSchema(): Promise<Schema> {
  const name = `test_${randomBytes(6).toString('hex')}`
  await ownConnection().query(`create schema ${name}`)
  const address = new URL(postgresUrl())
  address.searchParams.set('options', `-c search_path=${name}`)
  address.searchParams.set('application_name', name)
  return { name, url: address.toString() }
}

let connection: pg.Pool | undefined

/** One for all tests of this worker, since a new one takes longer than what it is used for. */
function ownConnection(): pg.Pool {
  if (connection === undefined) {
    connection = new pg.Pool({ connectionString: postgresUrl(), max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true })
    // It opens another one.
    connection.on('error', () => {})
  }
  return connection
}

/** A schema with the tables of the gateway, and its state at that time. */
interface MigratedSchema extends Schema {
  readonly tables: readonly string[]
  readonly sequences: readonly string[]
  /** Those with rows of the migrations. */
  readonly initial: readonly string[]
  readonly definition: string
}

/** Those that tests of this worker have used, emptied. */
const emptied: MigratedSchema[] = []

/**
 * The address of a schema with the tables of the gateway, without data. Creating them takes more time than most tests, so a
 * schema is emptied after its test and used again, unless the test changed its definition or left a connection open.
 */
export async function migratedSchema(): Promise<string> {
  const schema = emptied.pop() ?? (await migrateSchema())
  onTestFinished(async () => {
    if (await emptySchema(schema)) emptied.push(schema)
  })
  return schema.url
}

async function migrateSchema(): Promise<MigratedSchema> {
  const schema = await createSchema()
  const { name } = schema
  const storage = openStorage({ url: schema.url, clock: systemClock, log: silentLogger })
  await storage.ready()
  await storage.close()
  const client = ownConnection()
  const names = async (text: string): Promise<string[]> => (await client.query(text)).rows.map((row) => row.name)
  const tables = await names(
    `select tablename as name from pg_tables where schemaname = '${name}' and tablename <> 'schema_migrations'`,
  )
  const sequences = await names(`select sequencename as name from pg_sequences where schemaname = '${name}'`)
  const { filled: initial, definition } = await readState(client, { name, tables })
  await client.query(`create schema ${name}_initial`)
  for (const table of initial) await client.query(`create table ${name}_initial.${table} as table ${name}.${table}`)
  return { ...schema, tables, sequences, initial, definition }
}

const connectionMillis = 500

/** Back to the rows of the migrations, with sequences that count from their start; false if it must not be used again. */
async function emptySchema(schema: MigratedSchema): Promise<boolean> {
  const { name, sequences, initial } = schema
  const client = ownConnection()
  const connections = `select from pg_stat_activity where application_name = '${name}'`
  for (const end = Date.now() + connectionMillis; (await client.query(connections)).rowCount !== 0; ) {
    if (Date.now() > end) return false
  }
  const { filled, large, definition } = await readState(client, schema)
  if (definition !== schema.definition) return false
  const small = filled.filter((table) => !large.includes(table))
  const statements = [
    // Neither triggers nor foreign keys prevent it.
    'set local session_replication_role = replica',
    ...large.map((table) => `truncate ${name}.${table} cascade`),
    ...small.map((table) => `delete from ${name}.${table}`),
    ...initial.map((table) => `insert into ${name}.${table} table ${name}_initial.${table}`),
    ...sequences.map((sequence) => `select setval('${name}.${sequence}', 1, false)`),
  ]
  await client.query(['begin', ...statements, 'commit'].join(';'))
  return true
}

interface State {
  readonly filled: readonly string[]
  /** The filled ones of which a truncated file takes less time than deleted rows. */
  readonly large: readonly string[]
  readonly definition: string
}

const largeBytes = 2 ** 19

/** PostgreSQL keeps the plan of the statement, which takes longer than the statement itself. */
async function readState(client: pg.Pool, schema: Pick<MigratedSchema, 'name' | 'tables'>): Promise<State> {
  const { name, tables } = schema
  const list = (condition: (table: string) => string): string =>
    `array_remove(array[${tables.map((table) => `case when ${condition(table)} then '${table}' end`).join(', ')}], null)`
  const isFilled = (table: string): string => `exists (select from ${name}.${table})`
  const isLarge = (table: string): string => `pg_relation_size('${name}.${table}') > ${largeBytes}`
  const text = `select ${list(isFilled)} as filled, ${list(isLarge)} as large, (${definitionOf(name)}) as definition`
  const { rows } = await client.query<State>({ name: `state of ${name}`, text })
  const [state] = rows
  if (state === undefined) throw new Error('no row')
  return state
}

const definitionOf = (schema: string): string => `
  select md5(concat(
    (select string_agg(format('%s %s %s %s', relname, relkind, relacl, relchecks), ',' order by relname)
      from pg_class where relnamespace = '${schema}'::regnamespace),
    (select string_agg(format('%s %s %s %s', attrelid, attname, atttypid, attnotnull), ',' order by attrelid, attnum)
      from pg_attribute join pg_class on pg_class.oid = attrelid and relkind = 'r'
      where relnamespace = '${schema}'::regnamespace and attnum > 0),
    (select string_agg(format('%s %s %s', tgrelid, tgname, tgenabled), ',' order by pg_trigger.oid)
      from pg_trigger join pg_class on pg_class.oid = tgrelid where relnamespace = '${schema}'::regnamespace),
    (select string_agg(conname, ',' order by oid) from pg_constraint where connamespace = '${schema}'::regnamespace),
    (select string_agg(prosrc, ',' order by oid) from pg_proc where pronamespace = '${schema}'::regnamespace)
  ))`

/** Runs a statement of the test beside the code under test. */
export async function runSql(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}
