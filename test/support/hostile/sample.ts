import process from 'node:process'

const given = process.env['HOSTILE_VALUES']

/** The number of hostile values in the full form, which `npm run siege -- values` runs; undefined in `npm test`. */
export const fullValues: number | undefined = given === undefined ? undefined : Number(given)

/** How many random inputs a test tries: a part of them in `npm test`, whose next run tries others. */
export const sampled = (part: number, all: number): number => (fullValues === undefined ? part : all)

/** Of the hostile values of this process. `HOSTILE_SEED` repeats those of another run. */
export const hostileSeed: number = Number(process.env['HOSTILE_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

/** Adds to a failure how to repeat it. */
export async function withSeed(trial: () => Promise<unknown>): Promise<void> {
  try {
    await trial()
  } catch (error) {
    const repeat = `repeat it with HOSTILE_SEED=${hostileSeed}`
    if (!(error instanceof Error)) throw new Error(repeat, { cause: error })
    error.message = `${error.message} (${repeat})`
    throw error
  }
}
