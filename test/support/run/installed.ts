import { existsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { missingPart } from '#testing/run/missing-part.ts'

/** Whether the PATH has a program. One that it lacks is reported as missing, and its tests are skipped. */
export function isInstalled(program: string): boolean {
  const found = (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, program)))
  if (!found) missingPart(program, new Error('it is not installed'))
  return found
}
