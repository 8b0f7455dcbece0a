import process from 'node:process'

let isHooked = false

/** For what the files of a worker share: Vitest ends workers by SIGTERM, which alone does not run handlers of `exit`. */
export function exitOnSigterm(): void {
  if (isHooked) return
  isHooked = true
  process.once('SIGTERM', () => process.exit())
}
