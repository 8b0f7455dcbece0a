import { type Clock, systemClock } from '#kernel/clock.ts'

/** Keeps at most `limit` values, each until its expiry if it has one; removes the least recently used first. */
export class BoundedCache<V> {
  readonly #entries = new Map<string, { value: V; expires: number }>()
  readonly #limit: number
  readonly #clock: Clock

  constructor(limit: number, clock: Clock = systemClock) {
    this.#limit = limit
    this.#clock = clock
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    if (entry.expires <= this.#clock().getTime()) return undefined
    this.#entries.set(key, entry)
    return entry.value
  }

  set(key: string, value: V, expires?: Date): void {
    this.#entries.delete(key)
    if (this.#entries.size >= this.#limit) {
      const oldest = this.#entries.keys().next()
      if (!oldest.done) this.#entries.delete(oldest.value)
    }
    this.#entries.set(key, { value, expires: expires?.getTime() ?? Number.POSITIVE_INFINITY })
  }

  get size(): number {
    return this.#entries.size
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  /** Removes expired values; true if any are left. */
  sweep(): boolean {
    const now = this.#clock().getTime()
    for (const [key, { expires }] of this.#entries) if (expires <= now) this.#entries.delete(key)
    return this.#entries.size > 0
  }
}
