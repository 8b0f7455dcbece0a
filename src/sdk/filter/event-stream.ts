import type { JsonObject } from '#kernel/json.ts'

/** Something that happened to one subject, to be told as one Security Event Token (RFC 8417). */
export interface SecurityEvent {
  /** The transaction it belongs to. */
  readonly transaction: string
  /** `sub_id` of RFC 9493. */
  readonly subject: JsonObject
  /** Event URIs with their payloads. */
  readonly events: JsonObject
}

export interface EventStreamOptions {
  /** Those who open the same name share one stream. */
  readonly name: string
  readonly issuer: string
  readonly audience: string
  /** The signing key of the installation. */
  readonly key: string
  /** Where events are pushed to (RFC 8935); without it they wait until they are polled. */
  readonly push?: { readonly url: URL; readonly token?: string }
}

export interface EventStream {
  /** Settles when the events are durable, in this order and behind all before them. */
  append(events: readonly SecurityEvent[]): Promise<void>
  close(): Promise<void>
}

/** A poll of RFC 8936. */
export interface EventPoll {
  /** None: only acknowledges. */
  readonly max: number
  /** Ids of tokens that were received; they are not given again. */
  readonly acknowledged: readonly string[]
  /** Ids of tokens that the receiver cannot use, and why; they are not given again. */
  readonly refused: ReadonlyMap<string, { readonly error: string; readonly description: string }>
  /** How long to wait for an event where there is none. */
  readonly waitMillis: number
  /** Ends the wait. */
  readonly signal: AbortSignal
}

export interface PolledEvents {
  /** Signed tokens by their ids, oldest first. */
  readonly tokens: ReadonlyMap<string, string>
  readonly more: boolean
}

/** Throws TOO_MANY_REQUESTS when too many wait for the stream. */
export type PollEvents = (stream: string, poll: EventPoll) => Promise<PolledEvents>
