import type { Subject } from '#identity/subject.ts'
import type { GatewayRequest } from '#sdk/http.ts'

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
}
