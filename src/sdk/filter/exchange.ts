import type { Subject } from '#identity/subject.ts'
import type { SessionHandle } from '#sdk/auth/session.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/filter/http.ts'

/** Who a request turned out to come from, for the access log. Holds no credential. */
export interface LoggedCaller {
  readonly subject: string
  /** The endpoint of the token service that was asked. */
  readonly endpoint: string
  readonly workload: Readonly<Record<string, string | undefined>>
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
  /** Set where the caller is known by a session of the application. */
  readonly session?: SessionHandle
  /** Names the caller in the access log, where only the filter finds out who it is. */
  identify?(caller: LoggedCaller): void
  /**
   * Makes sure that the session was authenticated at the chain's level or above, and not longer ago than asked. Gives the
   * answer to return when it was not: a browser is sent to log in and comes back to this address, others get a 401.
   * Absent where the application keeps no sessions.
   */
  requireLogin?(chain: string, options?: { readonly maxAgeSeconds?: number }): Promise<GatewayResponse | undefined>
}
