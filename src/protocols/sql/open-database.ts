import type { SqlDatabase, SqlDatabaseOptions } from '#protocols/sql/sql-database.ts'

/** Connects on first use: the methods report a database that is down. The driver of PostgreSQL is loaded only if needed. */
export async function openDatabase(options: SqlDatabaseOptions): Promise<SqlDatabase> {
  if (options.url.startsWith('sqlite:')) {
    const { SqliteDatabase } = await import('#protocols/sql/sqlite-database.ts')
    return new SqliteDatabase(options.url.slice('sqlite:'.length), options.timeoutMillis)
  }
  const { PostgresDatabase } = await import('#protocols/sql/postgres-database.ts')
  return new PostgresDatabase(options)
}
