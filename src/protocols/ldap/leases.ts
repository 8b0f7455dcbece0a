/** So many at a time; the others wait in their order, each no longer than is said. */
export class Leases {
  readonly #most: number
  readonly #waitMillis: number
  readonly #refusal: (reason: string) => Error
  readonly #waiting: (() => void)[] = []
  #held = 0

  constructor(most: number, waitMillis: number, refusal: (reason: string) => Error) {
    this.#most = most
    this.#waitMillis = waitMillis
    this.#refusal = refusal
  }

  /** Rejects with the refusal when no turn came in time, or too many wait already. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#held < this.#most) this.#held++
    else await this.#turn()
    try {
      return await work()
    } finally {
      // Whoever waits takes the place over, so that nobody comes in between.
      const next = this.#waiting.shift()
      if (next === undefined) this.#held--
      else next()
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= maxWaiting) return Promise.reject(this.#refusal('too many calls are waiting'))
    return new Promise((resolve, reject) => {
      const turn = () => {
        clearTimeout(late)
        resolve()
      }
      const late = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1)
        reject(this.#refusal(`no free connection in ${this.#waitMillis} ms`))
      }, this.#waitMillis)
      this.#waiting.push(turn)
    })
  }
}

const maxWaiting = 1000
