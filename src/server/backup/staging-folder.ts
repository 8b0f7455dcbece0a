import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Commands that work in such a folder beside the database, and move the database out of it as their last step. */
const starts = { restore: '.restore-', import: '.import-' } as const
type StagingCommand = keyof typeof starts

export const stagingFolder = (command: StagingCommand, folder: string, id: string): string =>
  join(folder, `${starts[command]}${id}`)

const commandOf = (name: string): StagingCommand | undefined =>
  (Object.keys(starts) as StagingCommand[]).find((command) => name.startsWith(starts[command]))

/** The folder of a command that was killed, unless one is running. */
export const isLeftover = (name: string): boolean => commandOf(name) !== undefined

/** Throws an Error if a command has not come to its last step in this folder: an empty database would be created. */
export function refuseLeftover(dataFolder: string): void {
  if (!existsSync(dataFolder) || existsSync(join(dataFolder, 'gatehouse.db'))) return
  const leftover = readdirSync(dataFolder).find(isLeftover)
  if (leftover === undefined) return
  const command = commandOf(leftover)
  throw new Error(
    `${command === 'import' ? 'an import' : 'a restore'} to ${dataFolder} has not finished, so there is no database. If it was ended, run "gatehouse ${command}" again, or delete ${join(dataFolder, leftover)} to begin with an empty database`,
  )
}
