import type { JsonObject } from '#kernel/json.ts'

/** Something that happened to one subject, reported as one Security Event Token (RFC 8417). */
export interface SecurityEvent {
  /** The transaction it belongs to. */
  readonly transaction: string
  /** `sub_id` of RFC 9493. */
  readonly subject: JsonObject
  /** Event URIs with their payloads. */
  readonly events: JsonObject
}

/** The name, signing and delivery of a stream of security events. */
export interface EventStreamOptions {
  /** Streams opened with the same name are one stream. */
  readonly name: string
  readonly issuer: string
  readonly audience: string
  /** The signing key of the installation. */
  readonly key: string
  /** Where events are pushed (RFC 8935); without it they wait for polls. */
  readonly push?: { readonly url: URL; readonly token?: string | undefined } | undefined
}

/** A poll of RFC 8936. */
export interface EventPoll {
  /** None: only acknowledges. */
  readonly max: number
  /** Ids of received tokens, which are not returned again. */
  readonly acknowledged: readonly string[]
  /** Ids of tokens that the receiver can't use, and why; they are not returned again. */
  readonly refused: ReadonlyMap<string, { readonly error: string; readonly description: string }>
  /** How long to wait for an event. */
  readonly waitMillis: number
  /** Ends the wait. */
  readonly signal: AbortSignal
}

/** The events that a poll returns. */
export interface PolledEvents {
  /** Signed tokens by their ids, oldest first. */
  readonly tokens: ReadonlyMap<string, string>
  readonly more: boolean
}
