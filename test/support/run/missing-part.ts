import { appendFileSync } from 'node:fs'
import process from 'node:process'

/** The file in which `test/run.ts` collects the parts that were missing in a run. */
export const missingPartsFile = 'GATEHOUSE_TEST_MISSING_PARTS'

/**
 * Reports that a real server is not available here, so that its tests are skipped: by name, at the end of the run. In
 * CI it throws, since no test may be skipped there.
 */
export function missingPart(name: string, cause: unknown): void {
  if (process.env['CI'] === 'true') throw new Error(`${name} could not be had`, { cause })
  const reason = cause instanceof Error ? cause.message : String(cause)
  const line = `${name} (${reason.trim().split('\n').slice(-1).join(' ').slice(0, 300)})`
  const file = process.env[missingPartsFile]
  if (file === undefined) console.warn(`skipped: ${line}`)
  else appendFileSync(file, `${line}\n`)
}
