import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { loadAuditKeys } from '#engine/keys/audit-keys.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
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
  if (url === undefined && absent === 'make') mkdirSync(place.data, { recursive: true, mode: 0o700 })
  else if (url === undefined && !existsSync(join(place.data, 'gatehouse.db'))) {
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
