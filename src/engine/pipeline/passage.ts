import type { Application, MatchedUrl } from '#engine/pipeline/routes.ts'
import type { LiveSession } from '#engine/session/live-session.ts'
import type { Subject } from '#identity/subject.ts'
import type { ErrorFormat } from '#sdk/filter/error-format.ts'
import type { LoggedCaller } from '#sdk/filter/exchange.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/filter/http.ts'

/** One request on its way through the steps. Steps add to it; none writes to the socket. */
export interface Passage {
  readonly request: GatewayRequest
  application?: Application
  url?: MatchedUrl
  session?: LiveSession
  subject?: Subject
  /** Who the filter found the caller to be, where the URL lets everyone in. */
  caller?: LoggedCaller
  /** Added to whatever answer is given in the end. */
  readonly headers: Record<string, string | string[]>
  errors: ErrorFormat
}

/** Answers by returning a response; passes on by returning nothing. */
export type Step = (passage: Passage) => GatewayResponse | undefined | Promise<GatewayResponse | undefined>

/** Adds a response header without losing an earlier one of the same name. */
export function addHeader(passage: Passage, name: string, value: string): void {
  const earlier = passage.headers[name]
  if (earlier === undefined) passage.headers[name] = value
  else passage.headers[name] = Array.isArray(earlier) ? [...earlier, value] : [earlier, value]
}
