import { DatabaseSync } from 'node:sqlite'
import { onTestFinished } from 'vitest'
import { readAddress } from '#database/databases.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import { openStorage, type Storage, type StorageOptions } from '#server/composition/stores.ts'
import { runSql } from '#testing/databases/postgres.ts'

/** One database, opened by two processes and by a database tool; it closes with the test. */
export interface Stores {
  readonly one: Storage
  readonly two: Storage
  readonly dialect: SqlDialect
  sql(statement: string): Promise<readonly Readonly<Record<string, unknown>>[]>
}

export async function openStores(url: string, more: Pick<StorageOptions, 'wake'> = {}): Promise<Stores> {
  const open = async (): Promise<Storage> => {
    const storage = openStorage({ url, clock: systemClock, log: silentLogger, ...more })
    onTestFinished(() => storage.close())
    await storage.ready()
    return storage
  }
  const { dialect, address } = readAddress(url)
  const [one, two] = [await open(), await open()]
  return { one, two, dialect, sql: dialect === 'sqlite' ? inFile(address) : (text) => runSql(url, text) }
}

function inFile(file: string): Stores['sql'] {
  const database = new DatabaseSync(file)
  onTestFinished(() => database.close())
  database.exec('pragma busy_timeout = 2000')
  return async (text) => database.prepare(text).all()
}
