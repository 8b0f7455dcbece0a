import process from 'node:process'
import { report } from '#testing/run/run-report.ts'

/** Set by `npm test`, which uses nothing that npm does not bring, so that it does the same on every machine. */
export const onlyNpmVariable = 'GATEHOUSE_TEST_ONLY_NPM'

export const isOnlyNpm = (): boolean => process.env[onlyNpmVariable] === 'true'

/**
 * Reports that a real server is not available here, so that its tests are skipped: by name, at the end of the run. In
 * CI it throws, since no test may be skipped there.
 */
export function missingPart(name: string, cause: unknown): void {
  if (process.env['CI'] === 'true') throw new Error(`${name} is not available`, { cause })
  const reason = cause instanceof Error ? cause.message : String(cause)
  const part = `${name} (${reason.trim().split('\n').slice(-1).join(' ').slice(0, 300)})`
  if (!report({ kind: 'missing', part })) console.warn(`skipped: ${part}`)
}
