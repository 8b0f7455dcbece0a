import { DatabaseSync } from 'node:sqlite'
import { onTestFinished } from 'vitest'
import type { AuditKey } from '#database/audit-seal.ts'
import { readAddress } from '#database/databases.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { runSql } from '#testing/databases/postgres.ts'
import type { Stores } from '#testing/databases/stores.ts'

/** One database, which can be opened any number of times, with these keys, or directly, like a database tool. */
export interface SealedDatabase {
  open(keys?: readonly AuditKey[]): Promise<Storage>
  readonly sql: Stores['sql']
}

export function sealedDatabase(url: string): SealedDatabase {
  const { dialect, address } = readAddress(url)
  return {
    open: async (auditKeys) => {
      const storage = openStorage({
        url,
        clock: systemClock,
        log: silentLogger,
        ...(auditKeys === undefined ? {} : { auditKeys }),
      })
      onTestFinished(() => storage.close())
      await storage.ready()
      return storage
    },
    sql: dialect === 'postgres' ? (text) => runSql(url, text) : (text) => inFile(address, text),
  }
}

async function inFile(file: string, text: string) {
  const database = new DatabaseSync(file)
  try {
    database.exec('pragma busy_timeout = 2000')
    return database.prepare(text).all()
  } finally {
    database.close()
  }
}
