import type { Subject } from '#identity/subject.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { CompanionSession, SessionHandle } from '#sdk/auth/session.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'

/** The caller of a request, for the access log. Has no credential. */
export interface LoggedCaller {
  readonly subject: string
  /** The called endpoint of the token service. */
  readonly endpoint: string
  readonly workload: Readonly<Record<string, string | undefined>>
}

/** A caller that the chain authenticated for one request, at an application that keeps no sessions. */
export interface SessionlessCaller {
  /** What the mechanisms would have stored in a session. */
  readonly slots: Readonly<Record<string, JsonValue>>
  /** Starts a session of the caller that no cookie leads to. */
  startCompanion(companion: CompanionSession, authenticated: Date): Promise<void>
}

/** A request on its way through the filters of one URL, authenticated and authorized. */
export interface Exchange {
  readonly request: GatewayRequest
  /** The name of the Application. */
  readonly application: string
  /** The URL's uri without a trailing slash: where the filter is mounted. */
  readonly mount: string
  /** What follows the mount: empty, or starting with a slash. */
  readonly pathInfo: string
  readonly subject: Subject
  /** Set if a session of the application authenticates the caller. */
  readonly session?: SessionHandle | undefined
  /** Set if a chain authenticated the caller, and the application keeps no sessions. */
  readonly sessionless?: SessionlessCaller | undefined
  /** Names the caller in the access log, if only the filter knows it. */
  identify?(caller: LoggedCaller): void
  /**
   * Requires that the session was authenticated at the chain's level or above, and not longer ago than requested.
   * Otherwise returns the response: a browser is sent to log in and returns to this URL, others get a 401. Absent
   * if the application keeps no sessions.
   */
  requireLogin?(chain: string, options?: { readonly maxAgeSeconds?: number }): Promise<GatewayResponse | undefined>
  /**
   * The caller by the credentials of this request alone: no session counts, and no user is asked. Throws AUTH_REQUIRED,
   * AUTH_REJECTED or ACCESS_DENIED.
   */
  authenticate?(chain: string): Promise<Subject>
}
