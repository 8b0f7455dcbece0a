import type { Identity } from '#identity/identity.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { OperatorChange } from '#sdk/auth/operator-change.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'

/** What a module may read and store in the session of a request. The secret in the cookie is not here. */
export interface SessionHandle {
  /** Public: identifies the session to its owner. A step-up keeps it. It is useless to others. */
  readonly id: string
  /** The chain that authenticated it last, and that chain's level. */
  readonly chain: string
  readonly level: number
  readonly started: Date
  /** When its owner last authenticated: at login, or at the latest step-up. */
  readonly authenticated: Date
  /** Its expiry if it is not used again. */
  readonly expires: Date
  /** The content of a slot, named after the module that uses it; undefined if it is empty. */
  read(slot: string): Promise<JsonValue | undefined>
  /**
   * Stores a value, at most 64 KiB of JSON, or removes it if it is undefined. Slots are encrypted in storage, so
   * that they may contain tokens; they survive a step-up, and end with the session. BAD_REQUEST beyond the limit;
   * does nothing for a session that has ended.
   */
  write(slot: string, value: JsonValue | undefined): Promise<void>
  /** The session ends when `SessionAccess.endMarked` is called with the same text. */
  mark(mark: string): Promise<void>
}

/** What a mechanism stores in the session that its chain leads to. */
export interface SessionContribution {
  readonly slots?: Readonly<Record<string, JsonValue>>
  readonly marks?: readonly string[] | undefined
  /** Sessions that start along with it. */
  readonly companions?: readonly CompanionSession[] | undefined
}

/**
 * A session of the same user that no cookie leads to: what a program has for itself outlives the session of the
 * browser. It is listed, checked and ended like any other.
 */
export interface CompanionSession {
  /** Its public id. */
  readonly id: string
  /** The application that it is shown with. */
  readonly application: string
  /** It expires after this time without use; the default idle time if 0. */
  readonly idleSeconds: number
}

/** One session as its owner sees it in a list. */
export interface SessionView {
  readonly id: string
  /** The application it was started at. */
  readonly application: string
  readonly chain: string
  readonly level: number
  readonly started: Date
  /** To within half a minute. */
  readonly lastUsed: Date
  readonly expires: Date
  /** Where it was started from: the address, and the shortened User-Agent. Untrusted text. */
  readonly address: string
  readonly agent: string
}

/** The sessions of all applications. */
export interface SessionAccess {
  /** Latest first, at most 100. */
  ofUser(user: Identity): Promise<readonly SessionView[]>
  /** False if the user has no such session. */
  end(user: Identity, id: string): Promise<boolean>
  /** Logs out everywhere; returns how many sessions ended. `except` is the id of one that stays. */
  endAll(user: Identity, options?: { readonly except?: string }): Promise<number>
  /** Ends one session of the user, or all of them, with audit entries; returns how many ended. */
  endByOperator(user: Identity, change: OperatorChange, id?: string): Promise<number>
  /** Ends the sessions with the mark, such as an external issuer's session id; returns how many. */
  endMarked(mark: string): Promise<number>
  /**
   * Whole minutes until the request's session of that application expires; undefined if there is none. Does not
   * extend it.
   */
  minutesLeft(application: string, request: Pick<GatewayRequest, 'headers' | 'host'>): Promise<number | undefined>
}
