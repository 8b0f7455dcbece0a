import type { Interaction, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { IssuerConfig } from '#config/configuration/issuer.ts'
import type { Clock } from '#kernel/clock.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import { html, notice, page } from '#sdk/page/page.ts'
import { type TextKey, textsFor } from '#sdk/page/page-texts.ts'
import { type IssuerCall, presentCall } from './issuer-account.ts'

/** The response to a form may redirect to a login elsewhere, or back to the application. */
const leadingAnywhere = { narrow: true, formsLeadAnywhere: true }

/** Errors of OAuth 2.0 and OpenID Connect that users see; others have a general text. */
const errorKeys: ReadonlyMap<string, TextKey> = new Map([
  ['invalid_request', 'issuer.invalidRequest'],
  ['invalid_client', 'issuer.invalidClient'],
  ['invalid_redirect_uri', 'issuer.invalidRedirect'],
  ['unauthorized_client', 'issuer.invalidClient'],
  ['access_denied', 'issuer.denied'],
  ['login_required', 'issuer.loginRequired'],
  ['server_error', 'error.internal'],
  ['temporarily_unavailable', 'error.shuttingDown'],
])

/** The request that the provider is answering. */
const reader = (): GatewayRequest | undefined => presentCall()?.exchange.request

/** The pages of one issuer that users see. None has a script. */
export class IssuerPages {
  readonly #mount: string
  readonly #label: (clientId: string) => string

  constructor(mount: string, label: (clientId: string) => string) {
    this.#mount = mount
    this.#label = label
  }

  failed(ctx: KoaContextWithOIDC, text: string): void {
    const request = reader()
    show(ctx, notice(ctx.status, textsFor(request)('error.title'), text, { request, narrow: true }))
  }

  /** An error of the provider: what it means for the user, and its own words for whoever maintains the application. */
  refused(ctx: KoaContextWithOIDC, error: string, description: string | undefined): void {
    const request = reader()
    const t = textsFor(request)
    const detail = description === undefined ? error : `${error}: ${description}`
    const content = html`<p>${t(errorKeys.get(error) ?? 'issuer.error')}</p><p><small lang="en">${detail}</small></p>`
    show(ctx, page(ctx.status, t('error.title'), content, { request, narrow: true }))
  }

  askForCode(ctx: KoaContextWithOIDC, typed: string | undefined, problem: TextKey | undefined): void {
    const request = reader()
    const t = textsFor(request)
    const code = typed ?? presentCall()?.userCode ?? ''
    const alert = problem === undefined ? '' : html`<p role="alert" id="problem">${t(problem)}</p>`
    const content = html`${alert}<form method="post" action="${this.#mount}/device">
<input type="hidden" name="xsrf" value="${xsrf(ctx)}">
<label for="code">${t('device.codeField')}</label>
<input id="code" name="user_code" value="${code}" required autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="20"${
      problem === undefined ? '' : html` aria-describedby="problem" aria-invalid="true"`
    }>
<button type="submit">${t('login.continue')}</button>
</form>`
    show(ctx, page(200, t('device.title'), content, { request, ...leadingAnywhere }))
  }

  confirmCode(ctx: KoaContextWithOIDC, clientId: string, code: string, address: string | undefined): void {
    const request = reader()
    const t = textsFor(request)
    const fields = html`<input type="hidden" name="xsrf" value="${xsrf(ctx)}"><input type="hidden" name="user_code" value="${code}">`
    const content = html`<p>${t('device.confirmText')}</p>
<dl><dt>${t('device.application')}</dt><dd>${this.#label(clientId)}</dd><dt>${t('device.code')}</dt><dd><code>${code}</code></dd>${
      address === undefined ? '' : html`<dt>${t('device.address')}</dt><dd>${address}</dd>`
    }</dl>
<form method="post" action="${this.#mount}/device">${fields}<input type="hidden" name="confirm" value="yes"><button type="submit">${t('device.confirm')}</button></form>
<form method="post" action="${this.#mount}/device">${fields}<input type="hidden" name="abort" value="yes"><button type="submit">${t('device.no')}</button></form>`
    show(ctx, page(200, t('device.confirmTitle'), content, { request, ...leadingAnywhere }))
  }

  deviceDone(ctx: KoaContextWithOIDC): void {
    const request = reader()
    const t = textsFor(request)
    show(ctx, notice(200, t('device.doneTitle'), t('device.done'), { request, narrow: true }))
  }

  confirmLogout(ctx: KoaContextWithOIDC): void {
    const request = reader()
    const t = textsFor(request)
    const client = ctx.oidc.client?.clientId
    const application = client === undefined ? t('logout.unnamed') : this.#label(client)
    const content = html`<p>${t('logout.ask', { application })}</p>
<form method="post" action="${this.#mount}/session/end/confirm"><input type="hidden" name="xsrf" value="${xsrf(ctx)}"><input type="hidden" name="logout" value="yes"><button type="submit">${t('logout.submit')}</button></form>`
    show(ctx, page(200, t('logout.askTitle'), content, { request, ...leadingAnywhere }))
  }

  signedOut(ctx: KoaContextWithOIDC): void {
    show(ctx, signedOutNotice(reader()))
  }
}

export function signedOutNotice(request: GatewayRequest | undefined): GatewayResponse {
  const t = textsFor(request)
  return notice(200, t('logout.doneTitle'), t('logout.close'), { request, narrow: true })
}

const xsrf = ({ oidc }: KoaContextWithOIDC): string => {
  const secret = oidc.session?.state?.['secret']
  return typeof secret === 'string' ? secret : ''
}

function show(ctx: KoaContextWithOIDC, { status, headers, body }: GatewayResponse): void {
  ctx.status = status
  for (const [name, value] of Object.entries(headers)) ctx.set(name, value)
  ctx.body = body
}

interface StepParts {
  readonly config: IssuerConfig
  readonly pages: IssuerPages
  readonly clock: Clock
}

/** Prompts that require a login after the application's request. */
const freshReasons = ['login_prompt', 'max_age']
/** A login by our chain satisfies these; other requirements of an application are not supported. */
const mendable = new Set(['no_session', 'level', ...freshReasons])
const stepPath = /^\/interaction\/([\w-]{1,64})$/

/** Whether the path is one where the user has to act before the provider continues. */
export const isStep = (path: string): boolean => stepPath.test(path)

/** Sends the browser to log in, and to the provider when it returns. */
export async function takeStep(provider: Provider, ctx: KoaContextWithOIDC, parts: StepParts): Promise<void> {
  const call = presentCall()
  if (call === undefined) throw new Error('a step outside of a request')
  let details: Interaction
  try {
    details = await provider.interactionDetails(ctx.req, ctx.res)
  } catch {
    ctx.status = 400
    return parts.pages.failed(ctx, textsFor(reader())('issuer.ended'))
  }
  const result = await resultOf(details, call, parts)
  if (result === undefined) {
    ctx.status = 204
    return
  }
  const address = await provider.interactionResult(ctx.req, ctx.res, result)
  ctx.redirect(address)
  ctx.status = 303
}

/** Undefined if `call.answer` redirects the user. */
async function resultOf(details: Interaction, call: IssuerCall, { config, clock }: StepParts) {
  const { name, reasons } = details.prompt
  if (name === 'consent') return { consent: {} }
  const trust = config.trusts.find(({ clientId }) => clientId === details.params['client_id'])
  const refused = { error: 'login_required', error_description: 'the requested login is not available' }
  if (trust === undefined || reasons.some((reason) => !mendable.has(reason))) return refused
  const isFresh = reasons.some((reason) => freshReasons.includes(reason))
  const seconds = Math.max(0, clock().getTime() / 1000 - details.iat)
  const answer = await call.exchange.requireLogin?.(trust.chain, isFresh ? { maxAgeSeconds: seconds } : {})
  if (answer !== undefined) {
    call.answer = answer
    return undefined
  }
  const { person } = call
  if (person === undefined) return refused
  return { login: { accountId: person.account.sub, ts: Math.floor(person.authenticated.getTime() / 1000) } }
}
