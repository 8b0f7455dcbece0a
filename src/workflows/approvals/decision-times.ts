import type { Clock } from '#kernel/clock.ts'
import type { ApprovalStore } from '#workflows/store/approval-store.ts'

const keptMillis = 5 * 60_000
/** Fewer decisions say nothing about the next one. */
const fewest = 5

/** How long decisions usually take, by workflow. Read from the latest decisions every few minutes. */
export class DecisionTimes {
  readonly #store: Pick<ApprovalStore, 'latestDecisions'>
  readonly #clock: Clock
  #known: { readonly medians: Promise<ReadonlyMap<string, number>>; readonly until: number } | undefined

  constructor(store: Pick<ApprovalStore, 'latestDecisions'>, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  async medianOf(workflow: string): Promise<number | undefined> {
    const now = this.#clock().getTime()
    if (this.#known === undefined || this.#known.until <= now) {
      const known = { medians: this.#read(), until: now + keptMillis }
      this.#known = known
      known.medians.catch(() => {
        if (this.#known === known) this.#known = undefined
      })
    }
    return (await this.#known.medians).get(workflow)
  }

  async #read(): Promise<ReadonlyMap<string, number>> {
    const times = new Map<string, number[]>()
    for (const { workflow, millis } of await this.#store.latestDecisions()) {
      const known = times.get(workflow)
      if (known === undefined) times.set(workflow, [millis])
      else known.push(millis)
    }
    const enough = [...times].filter(([, all]) => all.length >= fewest)
    return new Map(enough.map(([workflow, all]) => [workflow, median(all)]))
  }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = Math.floor(sorted.length / 2)
  const [before = 0, after = 0] = [sorted[middle - 1], sorted[middle]]
  return sorted.length % 2 === 1 ? after : Math.round((before + after) / 2)
}
