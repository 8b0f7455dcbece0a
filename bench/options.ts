import { parseArgs } from 'node:util'

export interface BenchOptions {
  readonly words: readonly string[]
  /** Sizes of directories; 0 for none. */
  readonly sizes: readonly number[]
  readonly turns: number
  readonly quick: boolean
  /** Only the usage is wanted. */
  readonly help: boolean
  /** Where to write the rows of the table, for another process. */
  readonly rows: string | undefined
}

const usualSizes = [5000, 10_000, 100_000, 1_000_000]
const usualTurns = 3

export const usage = `Usage: npm run bench -- [PART …] [SIZE …] [--quick]
       npm run bench -- before COMMIT [PART …] [SIZE …] [--turns N] [--quick]
       npm run bench -- peers [--turns N] [--quick]

docs/benchmarks.md explains the parts and what they print.`

/** Throws with the usage if an argument is wrong. */
export function parseOptions(args: readonly string[]): BenchOptions {
  const { values, positionals } = parse(args)
  if (!/^[1-9]\d?$/.test(values.turns)) throw new Error(`--turns must be a number from 1 to 99\n${usage}`)
  const [before] = positionals
  if (before === 'peers' && positionals.length > 1) throw new Error(`peers takes no parts or sizes\n${usage}`)
  // A short commit can consist of digits.
  const isSize = (word: string, i: number): boolean => /^\d{1,9}$/.test(word) && !(i === 1 && before === 'before')
  const sizes = positionals.filter(isSize).map(Number)
  return {
    words: positionals.filter((word, i) => !isSize(word, i)),
    sizes: sizes.length > 0 ? sizes : usualSizes,
    turns: Number(values.turns),
    quick: values.quick,
    help: values.help,
    rows: values.rows,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        turns: { type: 'string', default: String(usualTurns) },
        quick: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
        rows: { type: 'string' },
      },
      allowPositionals: true,
    })
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n${usage}`)
  }
}
