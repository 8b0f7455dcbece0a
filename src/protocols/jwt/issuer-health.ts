import type { Clock } from '#kernel/clock.ts'
import { withoutSecrets } from '#kernel/secret-values.ts'

/** The state of an outside issuer, as far as this process knows it. */
export interface IssuerCheck {
  readonly issuer: string
  /** `up` or `down` by the last load of its keys or metadata; `unchecked` before the first one. */
  readonly health: 'up' | 'down' | 'unchecked'
  /** When it was last loaded. */
  readonly time?: Date
  /** Why the load failed. */
  readonly problem?: string
}

const maxProblem = 500

/** Remembers whether the issuers that a configuration trusts could be reached. It asks none of them itself. */
export class IssuerHealth {
  readonly #issuers = new Map<string, IssuerCheck>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** To be called after each load, with the reason if it failed. */
  watch(issuer: string): (problem?: string) => void {
    if (!this.#issuers.has(issuer)) this.#issuers.set(issuer, { issuer, health: 'unchecked' })
    return (problem) => {
      const time = this.#clock()
      this.#issuers.set(
        issuer,
        problem === undefined
          ? { issuer, health: 'up', time }
          : { issuer, health: 'down', time, problem: withoutSecrets(problem).slice(0, maxProblem) },
      )
    }
  }

  list(): readonly IssuerCheck[] {
    return [...this.#issuers.values()].sort((a, b) => (a.issuer < b.issuer ? -1 : 1))
  }
}
