import { existsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { loadAuditKeys } from '#engine/keys/audit-keys.ts'
import { systemClock } from '#kernel/clock.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { openDataFolder } from '#server/private-files.ts'
import { openStorage, type Storage } from '#storage/open.ts'

/** Where a gateway keeps what it knows, as commands that look into it are told. */
export const databaseOptions = {
  data: { type: 'string', default: '.gatehouse' },
  database: { type: 'string' },
} as const

export const databaseUsage = `  --data DIR        the data folder of the gateway (.gatehouse)
  --database URL    postgres://... instead; also GATEHOUSE_DATABASE`

/**
 * Works on the database of a gateway, before it first runs, while it runs or after. Throws an Error where there is none,
 * unless one is to be made.
 */
export async function withDatabase<T>(
  place: { readonly data: string; readonly database?: string | undefined },
  work: (storage: Storage) => Promise<T>,
  absent: 'refuse' | 'make' = 'refuse',
): Promise<T> {
  const url = place.database ?? process.env['GATEHOUSE_DATABASE']
  closeToOthers(place.data, url, url === undefined && absent === 'make')
  if (url === undefined && absent === 'refuse' && !existsSync(join(place.data, 'gatehouse.db'))) {
    throw new Error(`there is no database in ${place.data}; give the gateway's --data or --database`)
  }
  const where = url === undefined ? { dataFolder: place.data } : { url }
  const auditKeys = await loadAuditKeys({ environment: process.env, dataFolder: place.data }, 'command')
  const storage = openStorage({ ...where, clock: systemClock, log: silentLogger, auditKeys })
  try {
    return await work(storage)
  } finally {
    await storage.close()
  }
}

/** Closes the data folder and an embedded database to other users; lines about it go to stderr. */
export function closeToOthers(data: string, url: string | undefined, create = false): void {
  const log: Pick<Logger, 'warn'> = {
    warn: (message, fields = {}) => {
      process.stderr.write(`gatehouse: ${message}: ${Object.values(fields).flat().join(', ')}\n`)
    },
  }
  openDataFolder(data, { log, create, databaseUrl: url })
}
