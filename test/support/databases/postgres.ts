import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#storage/open.ts'

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
  const url = postgresUrl()
  const name = `test_${randomBytes(6).toString('hex')}`
  await runSql(url, `create schema ${name}`)
  const address = new URL(url)
  address.searchParams.set('options', `-c search_path=${name}`)
  address.searchParams.set('application_name', name)
  return { name, url: address.toString() }
}

/** A schema with the tables of the gateway, and their definition at that time. */
interface MigratedSchema extends Schema {
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
  const storage = openStorage({ url: schema.url, clock: systemClock, log: silentLogger })
  await storage.ready()
  await storage.close()
  await runSql(postgresUrl(), copyFilled(schema.name))
  const [row] = await runSql(postgresUrl(), definitionOf(schema.name))
  return { ...schema, definition: String(row?.['definition']) }
}

const connectionMillis = 500

/** False if it must not be used again. */
async function emptySchema({ name, definition }: MigratedSchema): Promise<boolean> {
  const client = new pg.Client({ connectionString: postgresUrl() })
  await client.connect()
  try {
    const connections = `select from pg_stat_activity where application_name = '${name}'`
    for (const end = Date.now() + connectionMillis; (await client.query(connections)).rowCount !== 0; ) {
      if (Date.now() > end) return false
    }
    const [row] = (await client.query(definitionOf(name))).rows
    if (row?.definition !== definition) return false
    await client.query(restoreRows(name))
    return true
  } finally {
    await client.end()
  }
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
  )) as definition`

/** Runs `each` for every table that has rows, as `candidate`, except for the list of migrations. */
const forFilled = (schema: string, each: string): string => `
  do $$
  declare
    candidate text;
    is_filled boolean;
  begin
    for candidate in
      select tablename from pg_tables where schemaname = '${schema}' and tablename <> 'schema_migrations'
    loop
      execute format('select exists (select from ${schema}.%I)', candidate) into is_filled;
      if is_filled then ${each} end if;
    end loop;
  end $$`

/** Keeps the rows of the migrations in another schema. */
const copyFilled = (schema: string): string => `
  create schema ${schema}_initial;
  ${forFilled(schema, `execute format('create table ${schema}_initial.%1$I as table ${schema}.%1$I', candidate);`)}`

/** Back to the rows of the migrations, with sequences that count from their start. */
const restoreRows = (schema: string): string => `
  begin;
  set local session_replication_role = replica;
  ${forFilled(schema, `execute format('truncate ${schema}.%I cascade', candidate);`)};
  do $$
  declare
    used text;
  begin
    for used in select sequencename from pg_sequences where schemaname = '${schema}' and last_value is not null
    loop
      execute format('alter sequence ${schema}.%I restart', used);
    end loop;
  end $$;
  ${forFilled(`${schema}_initial`, `execute format('insert into ${schema}.%1$I table ${schema}_initial.%1$I', candidate);`)};
  commit`

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
