import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import type { Translate } from '#sdk/page/configured-texts.ts'

/** A request to the reports of a portal. */
export interface ReportCall {
  readonly exchange: Exchange
  /** After `reports`: empty, or starting with a slash, as received. */
  readonly path: string
  /** The ids of the orgs that the caller may see. A report without one of them does not exist for the caller. */
  readonly orgs: ReadonlySet<string>
  /** The caller, by the attribute that identifies users in the portal; for the log. */
  readonly login: string
  /** Names and descriptions in the caller's language. */
  readonly translate: Translate
  /** The login, for `currentUser`. Throws ACCESS_DENIED if it belongs to another user. */
  ownLogin(): Promise<string>
}

/** Answers every path of the reports, and throws NOT_FOUND for any other. */
export interface ReportEndpoint {
  answer(call: ReportCall): Promise<GatewayResponse>
}
