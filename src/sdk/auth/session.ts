import type { Identity } from '#identity/identity.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { GatewayRequest } from '#sdk/filter/http.ts'

/** What a module may know and keep of the session a request belongs to. The secret in the cookie is not here. */
export interface SessionHandle {
  /** Public: names the session to its owner. It stays the same through a step-up, and is worth nothing to anybody else. */
  readonly id: string
  /** The chain that authenticated it last, and that chain's level. */
  readonly chain: string
  readonly level: number
  readonly started: Date
  /** When its owner last proved who they are: at login, or at the latest step-up. */
  readonly authenticated: Date
  /** When it ends if it is not used again. */
  readonly expires: Date
  /** What was kept in a slot, named after the module that keeps it; undefined when there is nothing. */
  read(slot: string): Promise<JsonValue | undefined>
  /**
   * Keeps a value, at most 64 KiB of JSON, or removes it where it is undefined. Slots are sealed in storage, so that
   * they may hold tokens; they survive a step-up, and end with the session. BAD_REQUEST past the limit; nothing is kept
   * of a session that has ended.
   */
  write(slot: string, value: JsonValue | undefined): Promise<void>
  /** The session ends when `SessionAccess.endMarked` is called with the same text. */
  mark(mark: string): Promise<void>
}

/** What a mechanism puts into the session that its chain leads to. */
export interface SessionContribution {
  readonly slots?: Readonly<Record<string, JsonValue>>
  readonly marks?: readonly string[]
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
  /** Where it was started from: the address, and the browser's own words, cut short. Untrusted text. */
  readonly address: string
  readonly agent: string
}

/** The sessions of all applications. */
export interface SessionAccess {
  /** Latest first, at most 100. */
  ofUser(user: Identity): Promise<readonly SessionView[]>
  /** False when the user has no such session. */
  end(user: Identity, id: string): Promise<boolean>
  /** Logs out everywhere; how many sessions ended. `except` is the id of one that stays. */
  endAll(user: Identity, options?: { readonly except?: string }): Promise<number>
  /** Ends the sessions that carry the mark, such as an outside issuer's session id; how many. */
  endMarked(mark: string): Promise<number>
  /** Whole minutes until the request's session of that application ends; undefined when there is none. Does not extend it. */
  minutesLeft(application: string, request: Pick<GatewayRequest, 'headers' | 'host'>): Promise<number | undefined>
}
