import { GatewayError } from '#kernel/errors.ts'

export interface SubjectQueueLimits {
  /** Runs that may wait for one subject. */
  readonly perSubject: number
  /** Runs that may wait in all. */
  readonly total: number
  /** How long a run waits for its turn. */
  readonly waitMillis: number
}

const defaultLimits: SubjectQueueLimits = { perSubject: 64, total: 4096, waitMillis: 30_000 }

interface Waiter {
  start(): void
}

/**
 * Work on one subject happens in the order it was asked for, one at a time; different subjects do not wait for each
 * other. Subjects are logins, so letter case does not count. Throws TOO_MANY_REQUESTS when too much waits, or too long.
 * One queue serves the whole process, so that the order holds while a configuration is replaced by the next.
 */
export class SubjectQueue {
  readonly #busy = new Map<string, Waiter[]>()
  readonly #limits: SubjectQueueLimits
  #waiting = 0

  constructor(limits: Partial<SubjectQueueLimits> = {}) {
    this.#limits = { ...defaultLimits, ...limits }
  }

  async run<T>(subject: string, work: () => Promise<T>): Promise<T> {
    const key = subject.toLowerCase()
    const waiters = this.#busy.get(key)
    if (waiters === undefined) this.#busy.set(key, [])
    else await this.#turn(key, waiters)
    try {
      return await work()
    } finally {
      this.#next(key)
    }
  }

  /** How many subjects have work under way. */
  get size(): number {
    return this.#busy.size
  }

  #turn(key: string, waiters: Waiter[]): Promise<void> {
    if (waiters.length >= this.#limits.perSubject || this.#waiting >= this.#limits.total) {
      throw busy(`too many runs wait for "${key}"`)
    }
    this.#waiting++
    return new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        start: () => {
          clearTimeout(timer)
          this.#waiting--
          resolve()
        },
      }
      const timer = setTimeout(() => {
        waiters.splice(waiters.indexOf(waiter), 1)
        this.#waiting--
        reject(busy(`a run for "${key}" waited longer than ${this.#limits.waitMillis} ms`))
      }, this.#limits.waitMillis)
      waiters.push(waiter)
    })
  }

  #next(key: string): void {
    const waiter = this.#busy.get(key)?.shift()
    if (waiter === undefined) this.#busy.delete(key)
    else waiter.start()
  }
}

const busy = (detail: string): GatewayError =>
  new GatewayError('TOO_MANY_REQUESTS', detail, {
    publicText: 'Too many changes to this user are under way.',
    retryAfter: 5,
  })
