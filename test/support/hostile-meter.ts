import { appendFileSync } from 'node:fs'
import process from 'node:process'
import type { Tally } from '#testing/hostile-operations.ts'

/** What `npm run hostile` is told by a trial, a line of JSON each: how far it is and, at its end, what it did. */
export interface TrialReport {
  readonly row: string
  readonly values: number
  /** Each operation with how many values went through it, and its part of the time. */
  readonly operations?: readonly (readonly [operation: string, count: number, seconds: number])[]
}

/** Names the file for the reports; there are none without it. */
export const reportVariable = 'HOSTILE_REPORT'

/** Counts operations, and shares the time that passes among those that are under way. */
export class HostileMeter<O extends string> {
  readonly #row: string
  readonly #counts = new Map<O, number>()
  readonly #millis = new Map<O, number>()
  readonly #underWay = new Map<O, number>()
  #since = performance.now()

  constructor(row: string) {
    this.#row = row
  }

  /** Counted when it begins, so that what is bounded is not begun too often. Two operations in one call share its time. */
  async did<T>(operation: O | readonly O[], work: () => Promise<T>, values = 1): Promise<T> {
    const operations = typeof operation === 'string' ? [operation] : operation
    for (const one of operations) this.#counts.set(one, this.count(one) + values)
    this.#pass(operations, 1)
    try {
      return await work()
    } finally {
      this.#pass(operations, -1)
    }
  }

  count(operation: O): number {
    return this.#counts.get(operation) ?? 0
  }

  tally(): Tally<O> {
    return Object.fromEntries(this.#counts) as Tally<O>
  }

  tellProgress(values: number): void {
    this.#tell({ row: this.#row, values })
  }

  tellEnd(values: number): void {
    const operations = [...this.#counts].map(
      ([operation, count]) => [operation, count, (this.#millis.get(operation) ?? 0) / 1000] as const,
    )
    this.#tell({ row: this.#row, values, operations })
  }

  #tell(report: TrialReport): void {
    const file = process.env[reportVariable]
    if (file !== undefined) appendFileSync(file, `${JSON.stringify(report)}\n`)
  }

  #pass(operations: readonly O[], step: 1 | -1): void {
    const now = performance.now()
    const underWay = [...this.#underWay.values()].reduce((sum, calls) => sum + calls, 0)
    for (const [operation, calls] of this.#underWay) {
      if (calls === 0) continue
      const part = ((now - this.#since) * calls) / underWay
      this.#millis.set(operation, (this.#millis.get(operation) ?? 0) + part)
    }
    this.#since = now
    for (const operation of operations) this.#underWay.set(operation, (this.#underWay.get(operation) ?? 0) + step)
  }
}
