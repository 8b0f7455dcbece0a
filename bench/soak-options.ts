import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

export interface SoakOptions {
  readonly minutes: number
  /** The file of the plot. */
  readonly plot: string
  /** Only the usage is wanted. */
  readonly help: boolean
  /** This is the process that does the work, in a session of its own. */
  readonly inner: boolean
}

export const soakUsage = `Usage: npm run soak -- [--minutes N] [--plot FILE]

docs/benchmarks.md explains what a soak does and prints.`

/** Throws with the usage if an argument is wrong. */
export function parseSoakOptions(args: readonly string[]): SoakOptions {
  const { minutes, ...others } = parse(args)
  if (!/^[1-9]\d{0,3}$/.test(minutes)) throw new Error(`--minutes must be a number from 1 to 9999\n${soakUsage}`)
  return { minutes: Number(minutes), ...others }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        minutes: { type: 'string', default: '30' },
        plot: { type: 'string', default: join(tmpdir(), 'gatehouse-soak.svg') },
        help: { type: 'boolean', default: false },
        inner: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n${soakUsage}`)
  }
}
