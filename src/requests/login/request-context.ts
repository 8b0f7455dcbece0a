import type { Subject } from '#identity/subject.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { Established } from '#requests/routing/chain.ts'
import type { Application, MatchedUrl, ResultActions } from '#requests/routing/routes.ts'
import type { LiveSession } from '#requests/sessions/sessions.ts'
import type { AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import type { LoggedCaller } from '#sdk/filter/exchange.ts'
import type { ErrorFormat } from '#sdk/http/error-format.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'

/** One request on its way through the steps. Steps add to it; none writes to the socket. */
export interface RequestContext {
  readonly request: GatewayRequest
  application?: Application
  url?: MatchedUrl
  session?: LiveSession
  subject?: Subject
  /** What the chain established for this request, if the application keeps no sessions. */
  established?: Pick<Established, 'session' | 'renewals'>
  /** The caller that the filter found, if the URL lets everyone in. */
  caller?: LoggedCaller
  /** Headers for every response. */
  readonly headers: Record<string, string | string[]>
  errors: ErrorFormat
}

/** Answers by returning a response; passes on by returning nothing. */
export type Step = (context: RequestContext) => Awaitable<GatewayResponse | undefined>

/** Adds a response header without losing an earlier one of the same name. */
export function addHeader(context: RequestContext, name: string, value: string): void {
  const earlier = context.headers[name]
  if (earlier === undefined) context.headers[name] = value
  else context.headers[name] = Array.isArray(earlier) ? [...earlier, value] : [earlier, value]
}

/** What a mechanism answered: only a browser can be asked for input. */
export function asked(outcome: AuthOutcome, mayAsk: boolean, context: RequestContext): AuthOutcome {
  if (outcome.kind === 'include' && outcome.cookie !== undefined) addHeader(context, 'set-cookie', outcome.cookie)
  if (outcome.kind !== 'challenge' || mayAsk) return outcome
  return { kind: 'rejected', reason: 'a login is needed, and the request is not for a page', noCredential: true }
}

/**
 * What a ResultGroup does after authentication or authorization: cookies and headers are added to the response, a
 * redirect replaces it. A value that is absent or invalid in a header is left out.
 */
export function applyResults(actions: ResultActions | undefined, context: RequestContext): GatewayResponse | undefined {
  if (actions === undefined) return undefined
  let redirect: string | undefined
  for (const action of actions) {
    if (action.type === 'redirect') {
      redirect = resolve(action.source, action.value, context.subject)
      continue
    }
    const equals = action.value.indexOf('=')
    const name = equals < 0 ? action.value : action.value.slice(0, equals)
    const value = resolve(action.source, action.value.slice(equals + 1), context.subject)
    if (value === undefined) continue
    if (action.type === 'header') addHeader(context, name.toLowerCase(), value)
    else addHeader(context, 'set-cookie', `${name}=${encodeURIComponent(value)}; Path=/; HttpOnly; SameSite=Lax`)
  }
  if (redirect === undefined) return undefined
  return { status: 302, headers: { location: redirect, 'cache-control': 'no-store' } }
}

function resolve(source: 'static' | 'user', value: string, subject: Subject | undefined): string | undefined {
  const found = source === 'static' ? value : subject?.attributes.first(value)
  return found !== undefined && /^[\t\x20-\x7e\x80-\xff]+$/.test(found) ? found : undefined
}
