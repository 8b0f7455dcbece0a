import type { Tally } from '#testing/hostile/hostile-operations.ts'

/** Counts how many hostile values passed through each operation. */
export class OperationCount<O extends string> {
  readonly #counts = new Map<O, number>()

  /** Counts before the work starts, so that concurrent calls stay within a bound. */
  did<T>(operation: O | readonly O[], work: () => Promise<T>, values = 1): Promise<T> {
    for (const one of [operation].flat() as O[]) this.#counts.set(one, this.count(one) + values)
    return work()
  }

  count(operation: O): number {
    return this.#counts.get(operation) ?? 0
  }

  tally(): Tally<O> {
    return Object.fromEntries(this.#counts) as Tally<O>
  }
}
