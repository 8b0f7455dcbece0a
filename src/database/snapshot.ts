import { DatabaseSync } from 'node:sqlite'
import type { Logger } from '#kernel/logger.ts'
import type { SqlDialect, SqlValue } from '#protocols/sql/sql-database.ts'
import { StatementCache, sqliteError } from '#protocols/sql/sqlite.ts'
import { readAddress } from './databases.ts'
import type { DatabaseReader } from './sql-client.ts'

export type SnapshotRow = Readonly<Record<string, SqlValue>>

/** A database as it was at one time, while others write to it. */
export interface Snapshot extends DatabaseReader {
  /** The rows of a query without values, a few at a time: a table may be larger than the memory. */
  rows(sql: string): AsyncIterable<SnapshotRow>
}

const rowsAtOnce = 100

/** Reads the database at that address, whatever its schema; nothing in it changes. An SQLite file must exist. */
export async function readSnapshot<T>(url: string, log: Logger, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  const { dialect, address } = readAddress(url)
  if (dialect === 'sqlite') return await readFile(address, work)
  const { PostgresClient } = await import('./postgres.ts')
  const client = new PostgresClient(address, log)
  try {
    return await client.snapshot(async (reader) => {
      const query = <R>(sql: string): Promise<R[]> =>
        Promise.resolve(reader.query<R>({ sql, params: [], name: undefined }))
      async function* rows(sql: string): AsyncGenerator<SnapshotRow> {
        await query(`declare moved no scroll cursor for ${sql}`)
        for (;;) {
          const some = await query<SnapshotRow>(`fetch ${rowsAtOnce} from moved`)
          yield* some
          if (some.length < rowsAtOnce) break
        }
        await query('close moved')
      }
      return await work({ dialect: reader.dialect, query: (one) => reader.query(one), rows })
    })
  } finally {
    await client.close()
  }
}

async function readFile<T>(file: string, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(file, { readOnly: true })
    database.exec('pragma busy_timeout = 10000; begin; select count(*) from sqlite_schema')
    const source = database
    const statements = new StatementCache(source)
    const dialect: SqlDialect = 'sqlite'
    return await work({
      dialect,
      query: (query) => statements.get(query).all(...query.params) as never,
      async *rows(sql) {
        for (const row of source.prepare(sql).iterate()) yield row as SnapshotRow
      },
    })
  } catch (error) {
    throw sqliteError(error)
  } finally {
    database?.close()
  }
}
