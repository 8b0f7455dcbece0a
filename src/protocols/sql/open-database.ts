import type { SqlDatabase, SqlDatabaseOptions } from '#protocols/sql/sql-database.ts'

/** Connects when it is first used, so that a database that is down is told by its methods. The driver of PostgreSQL is loaded where there is one only. */
export async function openDatabase(options: SqlDatabaseOptions): Promise<SqlDatabase> {
  if (options.url.startsWith('sqlite:')) {
    const { SqliteDatabase } = await import('#protocols/sql/sqlite-database.ts')
    return new SqliteDatabase(options.url.slice('sqlite:'.length), options.timeoutMillis)
  }
  const { PostgresDatabase } = await import('#protocols/sql/postgres-database.ts')
  return new PostgresDatabase(options)
}
