import { setTimeout as delay } from 'node:timers/promises'
import { type CrashPoint, crashPoints } from '#workflows/steps/workflow-services.ts'
import type { PlannedCrash, Replica } from './replica.ts'
import type { SeededRandom } from './seeded-random.ts'

export interface KillerOptions {
  readonly replicas: readonly Replica[]
  readonly random: SeededRandom
  /** Between two kills. */
  readonly pauseMillis: readonly [min: number, max: number]
  /** Between two restarts of the database. */
  readonly restartEveryMillis?: number
  restartDatabase?(): Promise<void>
  /** Until this many have died at each point, every life ends at one; afterwards every other. */
  readonly pointsFirst?: number
}

/** The share of processes that are killed before they are ready. */
const earlyShare = 0.15

/** Kills processes at random and at each named point, and starts them again; restarts the database now and then. */
export class Killer {
  restarts = 0
  readonly #options: KillerOptions
  #stopped = false
  #calm = false
  #lives = 0
  readonly #plans: CrashPoint[] = []

  constructor(options: KillerOptions) {
    this.#options = options
  }

  /** Every way to die, with its number of deaths. */
  get deaths(): Readonly<Record<'killed' | CrashPoint, number>> {
    const deaths = this.#options.replicas.flatMap((replica) => replica.deaths)
    const count = (how: string): number => deaths.filter((death) => death === how).length
    return {
      killed: count('killed'),
      'after-claim': count('after-claim'),
      'after-target-call': count('after-target-call'),
      'before-commit': count('before-commit'),
      'after-commit': count('after-commit'),
    }
  }

  /** Stops killing; dead processes still come back. */
  calm(): void {
    this.#calm = true
  }

  /** Stops killing and reviving. */
  stop(): void {
    this.#stopped = true
  }

  /** Every other life ends at the point with the fewest deaths; the others end at random. */
  plan(): PlannedCrash | undefined {
    if (this.#calm) return undefined
    const { random, pointsFirst } = this.#options
    const { deaths } = this
    const [point] = crashPoints.toSorted((a, b) => deaths[a] - deaths[b] || this.#planned(a) - this.#planned(b))
    const pending = point !== undefined && deaths[point] < (pointsFirst ?? 0)
    if (point === undefined || (!pending && this.#lives++ % 2 === 1)) return undefined
    this.#plans.push(point)
    return { point, count: random.between(1, pending ? 4 : 20) }
  }

  #planned(point: CrashPoint): number {
    return this.#plans.filter((planned) => planned === point).length
  }

  async run(): Promise<void> {
    await Promise.all([this.#kill(), this.#revive(), this.#restart()])
  }

  async #kill(): Promise<void> {
    const { replicas, random, pauseMillis } = this.#options
    while (!this.#stopped) {
      await delay(random.between(...pauseMillis))
      const victim = random.pick(replicas)
      const early = random.next() < earlyShare
      // A process that is to die at a point is not killed, so that it gets there.
      if (this.#stopped || this.#calm || victim.planned) continue
      if (early || (await victim.ready(20_000))) victim.kill()
    }
  }

  /** Restarts dead processes. */
  async #revive(): Promise<void> {
    const { replicas } = this.#options
    while (!this.#stopped) {
      for (const replica of replicas) if (!replica.alive) replica.start(this.plan())
      await delay(50)
    }
  }

  async #restart(): Promise<void> {
    const { restartEveryMillis, restartDatabase } = this.#options
    if (restartEveryMillis === undefined || restartDatabase === undefined) return
    for (let next = Date.now() + restartEveryMillis; !this.#stopped; await delay(50)) {
      if (Date.now() < next || this.#calm) continue
      await restartDatabase()
      this.restarts++
      next = Date.now() + restartEveryMillis
    }
  }
}
