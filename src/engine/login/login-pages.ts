import type { LoginAudit, LoginMeter } from '#engine/login/login-audit.ts'
import type { ChainRunner } from '#engine/pipeline/chain.ts'
import { applyResults, type RequestContext } from '#engine/pipeline/request-context.ts'
import type { LiveSession, Sessions } from '#engine/session/sessions.ts'
import type { Logger } from '#kernel/logger.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import { html, notice, page } from '#sdk/filter/page.ts'

export const signedOutPath = '/auth/signed-out'

/** No link unless its target is known. */
const link = (address: string | undefined, text: string) =>
  address === undefined ? '' : html`<p><a href="${address}">${text}</a></p>`

export const signedOut = (back: string | undefined): GatewayResponse =>
  page(
    200,
    'You are signed out',
    html`<p>Close the browser window if others use this computer.</p>${link(back, 'Sign in again')}`,
  )

export const unknownLogin = (back: string | undefined): GatewayResponse =>
  page(
    400,
    'This login has ended',
    html`<p>It took too long, is already complete, or was started in another browser. Start again from the page you wanted to see. Your browser must accept cookies.</p>${link(back, 'Start again')}`,
  )

export const takenStep = (address: string): GatewayResponse =>
  page(409, 'You already completed this step', html`<p><a href="${address}">Continue the login</a></p>`)

export const foreignPost = (): GatewayResponse => notice(403, 'Not allowed', 'Log in at the page that this site shows.')

export const refusedLogin = (status: 401 | 403, again: string): GatewayResponse =>
  page(
    status,
    'You could not be signed in',
    html`<p role="alert">${status === 403 ? 'You signed in, but you do not have access.' : 'The login was not accepted.'}</p>
<p><a href="${again}">Try again</a></p>`,
    { narrow: true },
  )

/** Instead of a redirect, if the browser would not send the cookie after one that another site began. */
export const goOn = (address: string): GatewayResponse =>
  page(200, "You're signed in", html`<p><a href="${address}">Continue</a></p>`, { refresh: address, narrow: true })

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
