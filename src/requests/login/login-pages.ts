import type { Logger } from '#kernel/logger.ts'
import type { ChainRunner } from '#requests/routing/chain.ts'
import type { LiveSession, Sessions } from '#requests/sessions/sessions.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import { html, type Markup, notice, page } from '#sdk/page/page.ts'
import { textsFor } from '#sdk/page/page-texts.ts'
import type { LoginAudit, LoginMeter } from './login-audit.ts'
import { applyResults, type RequestContext } from './request-context.ts'

export const signedOutPath = '/auth/signed-out'
/** Where OpenUnison's programs for the command line send the browser at the end of a login, successful or not. */
export const cliLoginPath = '/auth/forms/cli-login-finished.jsp'

/** No link unless its target is known. */
const link = (address: string | undefined, text: string): Markup =>
  address === undefined ? html`` : html`<p><a href="${address}">${text}</a></p>`

export function signedOut(request: GatewayRequest, back: string | undefined): GatewayResponse {
  const t = textsFor(request)
  const content = html`<p>${t('logout.done')}</p>${link(back, t('logout.again'))}`
  return page(200, t('logout.doneTitle'), content, { request, narrow: true })
}

export function cliLoginDone(request: GatewayRequest): GatewayResponse {
  const t = textsFor(request)
  return page(200, t('cliLogin.doneTitle'), html`<p>${t('cliLogin.done')}</p>`, { request, narrow: true })
}

/** A logout that another site began. What follows may be another site, such as that of the login. */
export function askLogout(request: GatewayRequest): GatewayResponse {
  const t = textsFor(request)
  const content = html`<p>${t('logout.foreign')}</p>
<form action="${request.path}"><button type="submit">${t('logout.submit')}</button></form>`
  return page(200, t('logout.askTitle'), content, { request, narrow: true, formsLeadAnywhere: true })
}

export function unknownLogin(request: GatewayRequest, back: string | undefined): GatewayResponse {
  const t = textsFor(request)
  const content = html`<p>${t('login.ended')}</p>${link(back, t('login.endedAgain'))}`
  return page(400, t('login.endedTitle'), content, { request, narrow: true })
}

export function takenStep(request: GatewayRequest, address: string): GatewayResponse {
  const t = textsFor(request)
  return page(409, t('login.completed'), link(address, t('login.completedContinue')), { request, narrow: true })
}

export function foreignPost(request: GatewayRequest): GatewayResponse {
  const t = textsFor(request)
  return notice(403, t('foreign.title'), t('login.foreign'), { request, narrow: true })
}

export function refusedLogin(request: GatewayRequest, status: 401 | 403, again: string): GatewayResponse {
  const t = textsFor(request)
  const content = html`<p role="alert">${t(status === 403 ? 'login.denied' : 'login.refused')}</p>
${link(again, t('login.again'))}`
  return page(status, t('login.refusedTitle'), content, { request, narrow: true })
}

/** Instead of a redirect, if the browser would not send the cookie after one that another site began. */
export function continuePage(request: GatewayRequest, address: string): GatewayResponse {
  const t = textsFor(request)
  return page(200, t('login.done'), link(address, t('login.continue')), { request, refresh: address, narrow: true })
}

interface LogoutParts {
  readonly sessions: Sessions
  readonly chains: ChainRunner
  readonly loginAudit: LoginAudit
  readonly loginMeter: LoginMeter
  readonly log: Logger
}

/** Ends the session, if there is one, and returns where the browser goes: a fixed page, independent of the request. */
export type Logout = (session: LiveSession | undefined, context: RequestContext) => Promise<string>

export const createLogout =
  ({ sessions, chains, loginAudit, loginMeter, log }: LogoutParts): Logout =>
  async (session, context) => {
    const { request, application, url } = context
    let elsewhere: string | undefined
    if (session !== undefined) {
      const { chain: name, uid } = session.subject
      const chain = chains.get(name)
      for (const { mechanism } of chain === undefined ? [] : chains.reachable(chain)) {
        try {
          elsewhere ??= await mechanism.afterLogout?.(session.handle, request)
        } catch (err) {
          log.warn('post-logout redirect rejected: not registered', { err, requestId: request.id })
        }
      }
      await sessions.end(session)
      loginMeter.counted(name, 'signed-out')
      await loginAudit.note({
        action: 'delete',
        request,
        login: uid,
        chain: name,
        application: application?.name ?? '',
        sessionId: session.handle.id,
      })
    }
    const configured = applyResults(url?.url.results.azSuccess, context)?.headers['location']
    if (elsewhere !== undefined && /^[\x21-\x7e]+$/.test(elsewhere)) return elsewhere
    return typeof configured === 'string' ? configured : signedOutPath
  }
