import { setTimeout as delay } from 'node:timers/promises'
import { type CrashPoint, crashPoints } from '#engine/workflow/crash-point.ts'
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
  /** Until so many have died at each point, every life ends at one; afterwards every other. */
  readonly pointsFirst?: number
}

/** Now and then somebody is killed before it is ready. */
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

  /** Every way to die, and how often somebody died so. */
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

  /** From now on nobody is killed; whoever is dead still comes back. */
  calm(): void {
    this.#calm = true
  }

  /** Nobody is to be killed any more. */
  stop(): void {
    this.#stopped = true
  }

  /** Every other life ends at the point where the fewest have died; the others are left to the dice. */
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
      // Whoever is to die at a point is left alone, so that it gets there.
      if (this.#stopped || this.#calm || victim.planned) continue
      if (early || (await victim.ready(20_000))) victim.kill()
    }
  }

  /** Whoever is dead comes back. */
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
