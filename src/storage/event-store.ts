import type { JsonObject } from '#kernel/json.ts'

/** A Security Event Token before it is signed. */
export interface StoredEvent {
  /** Its `jti`; unique. */
  readonly id: string
  readonly time: Date
  /** The signing key's name. */
  readonly key: string
  readonly claims: JsonObject
}

/** Who delivers a stream now, and how its receiver fared. */
export interface DeliveryTurn {
  /** Attempts in a row that failed before this turn. */
  readonly failures: number
}

/** Events on their way to receivers: kept until they are removed, in the order of their stream. */
export interface EventStore {
  /**
   * Behind everything that the stream has, all of them or none. Two who append to one stream at the same time wait for
   * each other, so that a reader never sees a later event before an earlier one.
   */
  append(stream: string, events: readonly StoredEvent[]): Promise<void>
  /** Oldest first. */
  read(stream: string, limit: number): Promise<readonly StoredEvent[]>
  /** Events of other streams, and ids that are unknown, are left alone. How many were removed. */
  remove(stream: string, ids: readonly string[]): Promise<number>
  /** Every stream that was ever appended to. */
  names(): Promise<readonly string[]>
  /** Drops the oldest of more than `keep` events, and those from before `since`. */
  trim(
    stream: string,
    limits: { readonly keep: number; readonly since: Date },
  ): Promise<{ readonly dropped: number; readonly oldest?: Date }>
  /**
   * Takes or prolongs the right to deliver the stream until then. Undefined while another has it, or while the receiver
   * is to be left alone, or where nothing was ever appended.
   */
  claim(
    stream: string,
    owner: string,
    times: { readonly now: Date; readonly until: Date },
  ): Promise<DeliveryTurn | undefined>
  /** Gives the right back, if it is still the owner's. */
  release(stream: string, owner: string, outcome: { readonly failures: number; readonly retryAt?: Date }): Promise<void>
}
