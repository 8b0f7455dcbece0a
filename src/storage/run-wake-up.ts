import type { Logger } from '#kernel/logger.ts'
import { readAddress } from '#storage/client/databases.ts'
import { InProcessWakeUp } from '#storage/sql/in-process-wake-up.ts'
import type { WakeUp } from '#storage/sql/wake-up.ts'

/** Carries the word that runs may be claimed from the transaction that makes them ready to the workers. */
export interface RunWakeUp extends WakeUp {
  /** Calls `wake` from now on. Rejects when other processes cannot be heard; this one is, all the same. */
  start(wake: () => void): Promise<void>
  close(): Promise<void>
}

/** For the database at that address; the embedded one when there is none. Nothing is connected to before `start`. */
export async function openRunWakeUp(url: string | undefined, log: Logger): Promise<RunWakeUp> {
  const { dialect, address } = url === undefined ? { dialect: 'sqlite', address: '' } : readAddress(url)
  if (dialect === 'sqlite') return new InProcessWakeUp()
  const { PgBossWakeUp } = await import('#storage/sql/pg-boss-wake-up.ts')
  return new PgBossWakeUp(address, log)
}
