import { readAddress, type TransactionMeter } from '#database/databases.ts'
import { lockInstance } from '#database/instance-lock.ts'
import { settleAbandoned } from '#features/passwords/service/password-audit.ts'
import { systemClock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Scope } from '#kernel/scope.ts'
import { checkAuditKeys, loadAuditKeys } from '#keys/audit-keys.ts'
import { checkSecretKeys } from '#keys/secret-keys.ts'
import { refuseLeftover } from '#server/backup/staging-folder.ts'
import { openDataFolder } from '#server/composition/private-files.ts'
import { openRunWakeUp, openStorage, type Storage } from '#server/composition/stores.ts'
import type { RunWakeUp } from '#workflows/store/wake-up.ts'

interface DatabaseOptions {
  readonly dataFolder: string
  /** Undefined for the embedded database in the data folder. */
  readonly databaseUrl: string | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly log: Logger
  readonly meter?: TransactionMeter | undefined
}

/**
 * Opens the database of a gateway: checks the keys, makes the data folder private, locks the database and authenticates
 * its audit. `wakeUp` notifies the workers of all processes of new runs.
 */
export async function openDatabase(
  options: DatabaseOptions,
  scope: Scope,
): Promise<{ readonly storage: Storage; readonly wakeUp: RunWakeUp }> {
  const { log, dataFolder, databaseUrl, environment, meter } = options
  checkSecretKeys(environment)
  checkAuditKeys(environment)
  openDataFolder(dataFolder, { log, create: true, databaseUrl })
  const wakeUp = await openRunWakeUp(databaseUrl, log)
  const database = { dataFolder, ...(databaseUrl === undefined ? {} : { url: databaseUrl }) }
  scope.own(await lockInstance(database))
  // Before keys are created, which would be in the way of the next restore.
  if (databaseUrl === undefined) refuseLeftover(dataFolder)
  const auditKeys = await loadAuditKeys(options, 'gateway')
  const storage = scope.own(openStorage({ ...database, clock: systemClock, log, wake: wakeUp, auditKeys, meter }))
  await storage.ready()
  await authenticateAudit(storage, log)
  // Before the first request: end the sessions of users whose password a killed process was writing.
  const isAlone = databaseUrl === undefined || readAddress(databaseUrl).dialect === 'sqlite'
  await settleAbandoned(storage.passwordChanges, isAlone ? 'all' : 'expired')
  return { storage, wakeUp }
}

/** Runs before anything is written. A gateway with a forged audit continues to write to it, and logs an error. */
async function authenticateAudit({ audit }: Storage, log: Logger): Promise<void> {
  const { sealed, records, forged } = await audit.authenticate()
  if (sealed) log.info('the audit is authenticated from now on; existing records are sealed as they are', { records })
  if (forged.length > 0) {
    log.error('the audit was changed without its key; run "gatehouse audit verify"', { chains: forged })
  }
}
