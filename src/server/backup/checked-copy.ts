import { DatabaseSync } from 'node:sqlite'
import { readChains } from '#audit/store/audit-chain.ts'
import type { AuditReport } from '#audit/store/audit-report.ts'
import { verifyAudit } from '#audit/store/audit-verification.ts'
import type { AuditSeal } from '#database/audit-seal.ts'
import { readMigrations, readSchema, type Schema } from '#database/migrations.ts'
import type { DatabaseReader } from '#database/sql-client.ts'
import { StatementCache, sqliteError } from '#protocols/sql/sqlite.ts'

/** What a copy of an embedded database contains. */
export interface CopyContents {
  readonly schema: Schema
  /** In all tables. */
  readonly rows: number
  /** The last record of each chain of the audit that has one. */
  readonly heads: readonly { readonly chain: number; readonly number: number }[]
  readonly audit: AuditReport
}

/** The file is not a database, is damaged, or is not one of Gatehouse. */
export class DamagedCopy extends Error {}

/**
 * Checks a copy that no other process uses: its pages and indexes, references between its rows, its schema and its
 * audit. Throws DamagedCopy, and SchemaMismatch for a copy of a newer version. If migrations are pending, the audit is
 * read as it will be after them; the copy stays as it is. Errors name the copy as `name`.
 */
export async function checkCopy(file: string, name: string, seal: AuditSeal | undefined): Promise<CopyContents> {
  const database = openCopy(file, name)
  try {
    checkPages(database, name)
    const reader = readerOf(database)
    const schema = await readSchema(reader, readMigrations('sqlite'))
    if (schema.applied.length === 0) throw new DamagedCopy(`${name} is not a database of Gatehouse`)
    const rows = countRows(database)
    database.exec('begin')
    try {
      for (const { script } of schema.pending) database.exec(script)
      refuseForeignCode(database, name)
      const heads = (await readChains(reader)).flatMap(({ chain, seq }) => (seq > 0 ? [{ chain, number: seq }] : []))
      return { schema, rows, heads, audit: await verifyAudit(reader, seal) }
    } finally {
      if (database.isTransaction) database.exec('rollback')
    }
  } catch (error) {
    throw sqliteError(error)
  } finally {
    database.close()
  }
}

/** The copy becomes one file, without a log of its own beside it. */
function openCopy(file: string, name: string): DatabaseSync {
  try {
    const database = new DatabaseSync(file)
    database.exec('pragma journal_mode = delete')
    return database
  } catch (error) {
    throw new DamagedCopy(`${name} is not an SQLite database, or is damaged: ${messageOf(error)}`)
  }
}

const maxProblems = 5

function checkPages(database: DatabaseSync, name: string): void {
  let problems: string[]
  try {
    const found = database.prepare(`pragma integrity_check(${maxProblems})`).all()
    problems = found.map((row) => String(row['integrity_check'])).filter((line) => line !== 'ok')
    if (problems.length === 0) {
      const broken = database.prepare('select distinct "table" as name from pragma_foreign_key_check limit 5').all()
      problems = broken.map(({ name }) => `rows of ${name} refer to rows that do not exist`)
    }
  } catch (error) {
    problems = [messageOf(error)]
  }
  if (problems.length > 0) throw new DamagedCopy(`${name} is damaged: ${problems.join('; ')}`)
}

const selectSchema = `select type || ' ' || name as name, sql from sqlite_schema`
/** As SQLite writes it. An index of a constraint has no text. */
const harmless = /^CREATE (?:TABLE|INDEX|UNIQUE INDEX) /

/**
 * A trigger or view can keep what a statement deletes, or change what it reads, and a constraint can drop what it
 * writes, so only those of the migrations are accepted. Other tables are harmless: programs that replicate a database
 * add some.
 */
function refuseForeignCode(database: DatabaseSync, name: string): void {
  const own = new DatabaseSync(':memory:')
  try {
    for (const { script } of readMigrations('sqlite')) own.exec(script)
    const schemaOf = (one: DatabaseSync): [object: string, sql: string | undefined][] =>
      one
        .prepare(selectSchema)
        .all()
        .map((row) => [String(row['name']), row['sql'] === null ? undefined : String(row['sql'])])
    const known = new Map(schemaOf(own))
    for (const [object, sql] of schemaOf(database)) {
      if (known.has(object) ? known.get(object) === sql : sql === undefined || harmless.test(sql)) continue
      throw new DamagedCopy(`${name} contains the ${object}, which Gatehouse did not create. Remove it there first`)
    }
  } finally {
    own.close()
  }
}

function countRows(database: DatabaseSync): number {
  const tables = database
    .prepare(
      "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' and name not like 'backup_%'",
    )
    .all()
  return tables.reduce((sum, { name }) => {
    const counted = database.prepare(`select count(*) as count from "${String(name).replaceAll('"', '""')}"`).get()
    return sum + Number(counted?.['count'])
  }, 0)
}

function readerOf(database: DatabaseSync): DatabaseReader {
  const statements = new StatementCache(database)
  return {
    dialect: 'sqlite',
    query: async <R>(query: Parameters<DatabaseReader['query']>[0]) =>
      statements.get(query).all(...query.params) as unknown as R[],
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
