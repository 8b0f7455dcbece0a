import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** A restore works in such a folder within the data folder, and moves the database out of it as its last step. */
export const restoreFolderStart = '.restore-'

/** The folder of a restore that was killed, unless one is running. */
export const isRestoreLeftover = (name: string): boolean => name.startsWith(restoreFolderStart)

/** Throws an Error if a restore to this folder has not come to its last step: an empty database would be created. */
export function refuseUnfinishedRestore(dataFolder: string): void {
  if (!existsSync(dataFolder) || existsSync(join(dataFolder, 'gatehouse.db'))) return
  const leftover = readdirSync(dataFolder).find(isRestoreLeftover)
  if (leftover === undefined) return
  throw new Error(
    `a restore to ${dataFolder} has not finished, so there is no database. If it was ended, run "gatehouse restore" again, or delete ${join(dataFolder, leftover)} to begin with an empty database`,
  )
}
