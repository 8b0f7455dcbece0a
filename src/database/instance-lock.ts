import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { GatewayError } from '#kernel/errors.ts'
import type { Closable } from '#kernel/scope.ts'
import { isBusy } from '#protocols/sql/sqlite.ts'
import { readAddress } from './databases.ts'
import { openingError } from './sqlite.ts'

interface InstanceLockOptions {
  /** As for the storage. PostgreSQL serves any number of gateways, so it needs no lock. */
  readonly url?: string
  readonly dataFolder: string
  /** How long to wait for a gateway that is shutting down. */
  readonly waitMillis?: number
}

const againMillis = 50
const damagedAdvice = 'Delete it'

/**
 * Locks the file of an embedded database for this gateway until it is closed. Throws CONFLICT if another gateway
 * has it: a second one would treat the runs of the first as those of a dead process. The operating system keeps the
 * lock, on a file beside the database, so that it ends with its process and commands can still use the database.
 */
export async function lockInstance({ url, dataFolder, waitMillis = 5_000 }: InstanceLockOptions): Promise<Closable> {
  const { dialect, address } = readAddress(url ?? `sqlite:${join(dataFolder, 'gatehouse.db')}`)
  if (dialect !== 'sqlite') return {}
  const file = `${address}.lock`
  const lock = open(file)
  try {
    const giveUp = performance.now() + waitMillis
    while (!isTaken(lock, file)) {
      if (performance.now() >= giveUp) {
        throw new GatewayError('CONFLICT', `another gateway uses ${address}; stop it, or choose another --data`)
      }
      await delay(againMillis)
    }
    // By its name: opening and closing the file again in this process would release the lock.
    chmodSync(file, 0o600)
    return lock
  } catch (error) {
    lock.close()
    throw error
  }
}

function open(file: string): DatabaseSync {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    createPrivately(file)
    return new DatabaseSync(file)
  } catch (error) {
    throw openingError(file, error, damagedAdvice)
  }
}

function isTaken(lock: DatabaseSync, file: string): boolean {
  try {
    lock.exec('pragma journal_mode = memory; begin exclusive')
    return true
  } catch (error) {
    if (isBusy(error)) return false
    throw openingError(file, error, damagedAdvice)
  }
}

/** SQLite would create it with the umask. An existing file is not opened, since closing it would release the lock. */
function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'EEXIST') throw error
  }
}
