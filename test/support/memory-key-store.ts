import type { Clock } from '#kernel/clock.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { KeyStore, StoredKeys } from '#storage/key-store.ts'

/** A KeyStore in memory, which can be made to fail. */
export class MemoryKeyStore implements KeyStore {
  readonly rows = new Map<string, StoredKeys & { worker?: string; lease?: number }>()
  readonly #clock: Clock
  /** Thrown by every call while it is set. */
  failure: Error | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async get(endpoint: string): Promise<StoredKeys | undefined> {
    this.#fail()
    return this.rows.get(endpoint)
  }

  async list(): Promise<readonly StoredKeys[]> {
    this.#fail()
    return [...this.rows.values()]
  }

  async swap(endpoint: string, version: number, ring: JsonObject): Promise<boolean> {
    this.#fail()
    const row = this.rows.get(endpoint)
    if ((row?.version ?? 0) !== version) return false
    const json = JSON.parse(JSON.stringify(ring)) as JsonObject
    const updated = this.#clock()
    this.rows.set(endpoint, { publications: {}, ...row, endpoint, version: version + 1, ring: json, updated })
    return true
  }

  async claim(endpoint: string, worker: string, leaseMillis: number): Promise<boolean> {
    this.#fail()
    const row = this.rows.get(endpoint)
    const now = this.#clock().getTime()
    if (row === undefined || ((row.lease ?? 0) > now && row.worker !== worker)) return false
    this.rows.set(endpoint, { ...row, worker, lease: now + leaseMillis })
    return true
  }

  async record(endpoint: string, worker: string, publications: JsonObject): Promise<boolean> {
    this.#fail()
    const row = this.rows.get(endpoint)
    if (row === undefined || row.worker !== worker || (row.lease ?? 0) <= this.#clock().getTime()) return false
    this.rows.set(endpoint, { ...row, publications })
    return true
  }

  async release(endpoint: string, worker: string): Promise<void> {
    this.#fail()
    const row = this.rows.get(endpoint)
    if (row?.worker === worker) this.rows.set(endpoint, { ...row, lease: 0 })
  }

  #fail(): void {
    if (this.failure !== undefined) throw this.failure
  }
}
