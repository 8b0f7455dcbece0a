import { DatabaseSync } from 'node:sqlite'
import { onTestFinished } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { readAddress } from '#storage/client/databases.ts'
import { auditSealConformance, type SealedDatabase } from '#storage/conformance/audit-seal.ts'
import { auditSinkConformance } from '#storage/conformance/audit-sink-store.ts'
import { openStorage } from '#storage/open.ts'
import { onEachDatabase } from '#testing/databases.ts'
import { runSql } from '#testing/postgres.ts'

onEachDatabase('seals of the audit', (freshUrl) => {
  auditSealConformance(async () => databaseAt(await freshUrl()))
})

onEachDatabase('audit sinks', (freshUrl) => {
  auditSinkConformance(async () => databaseAt(await freshUrl()))
})

function databaseAt(url: string): SealedDatabase {
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
