import type { JsonObject } from '#kernel/json.ts'

/** The keys of one endpoint, as whoever wrote them last left them. */
export interface StoredKeys {
  readonly endpoint: string
  /** Counts the changes of `ring`. */
  readonly version: number
  readonly ring: JsonObject
  /** What became of publishing, by destination. */
  readonly publications: JsonObject
  readonly updated: Date
}

/**
 * The keys of token endpoints, a whole ring at a time: a change is made from the version that was read or not at all, so
 * that whatever holds of a ring holds for all processes. The private parts come sealed.
 */
export interface KeyStore {
  get(endpoint: string): Promise<StoredKeys | undefined>
  /** By name, at most 500. */
  list(): Promise<readonly StoredKeys[]>
  /** Version 0 is that of a ring which does not exist. False when another version stands there; nothing is changed then. */
  swap(endpoint: string, version: number, ring: JsonObject): Promise<boolean>
  /** The right to publish for a time, for one of all processes. A worker that has it gets it anew. */
  claim(endpoint: string, worker: string, leaseMillis: number): Promise<boolean>
  /** False when the right is another's by now; nothing is changed then. */
  record(endpoint: string, worker: string, publications: JsonObject): Promise<boolean>
  release(endpoint: string, worker: string): Promise<void>
}
