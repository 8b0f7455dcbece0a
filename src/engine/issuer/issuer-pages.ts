import type { Interaction, KoaContextWithOIDC, Provider } from 'oidc-provider'
import { type IssuerCall, presentCall } from '#engine/issuer/issuer-account.ts'
import type { Clock } from '#kernel/clock.ts'
import type { IssuerConfig } from '#sdk/auth/issuer.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import { html, notice, page } from '#sdk/filter/page.ts'

/** The response to a form may redirect to a login elsewhere, or back to the application. */
const leadingAnywhere = { narrow: true, formsLeadAnywhere: true }

/** The pages of one issuer that users see. None has a script. */
export class IssuerPages {
  readonly #mount: string
  readonly #label: (clientId: string) => string

  constructor(mount: string, label: (clientId: string) => string) {
    this.#mount = mount
    this.#label = label
  }

  failed(ctx: KoaContextWithOIDC, text: string): void {
    show(ctx, notice(ctx.status, 'Something went wrong', text, { narrow: true }))
  }

  askForCode(ctx: KoaContextWithOIDC, typed: string | undefined, problem: string | undefined): void {
    const code = typed ?? presentCall()?.userCode ?? ''
    const alert = problem === undefined ? '' : html`<p role="alert" id="problem">${problem}</p>`
    show(
      ctx,
      page(
        200,
        'Log in a device',
        html`${alert}<form method="post" action="${this.#mount}/device">
<input type="hidden" name="xsrf" value="${xsrf(ctx)}">
<label for="code">Code on the device</label>
<input id="code" name="user_code" value="${code}" required autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="20"${
          problem === undefined ? '' : html` aria-describedby="problem" aria-invalid="true"`
        }>
<button type="submit">Continue</button>
</form>`,
        leadingAnywhere,
      ),
    )
  }

  confirmCode(ctx: KoaContextWithOIDC, clientId: string, code: string, address: string | undefined): void {
    const fields = html`<input type="hidden" name="xsrf" value="${xsrf(ctx)}"><input type="hidden" name="user_code" value="${code}">`
    show(
      ctx,
      page(
        200,
        'Log in this device?',
        html`<p>Continue only if this is your device and it shows this code. It will act as you.</p>
<dl><dt>Application</dt><dd>${this.#label(clientId)}</dd><dt>Code</dt><dd><code>${code}</code></dd>${
          address === undefined ? '' : html`<dt>Requested from</dt><dd>${address}</dd>`
        }</dl>
<form method="post" action="${this.#mount}/device">${fields}<input type="hidden" name="confirm" value="yes"><button type="submit">Log in the device</button></form>
<form method="post" action="${this.#mount}/device">${fields}<input type="hidden" name="abort" value="yes"><button type="submit">No</button></form>`,
        leadingAnywhere,
      ),
    )
  }

  deviceDone(ctx: KoaContextWithOIDC): void {
    show(
      ctx,
      notice(200, 'The device is logged in', 'You can close this page and continue on the device.', { narrow: true }),
    )
  }

  confirmLogout(ctx: KoaContextWithOIDC): void {
    const client = ctx.oidc.client?.clientId
    const who = client === undefined ? 'An application' : this.#label(client)
    show(
      ctx,
      page(
        200,
        'Sign out?',
        html`<p>${who} asks to sign you out here. You are signed out of everything that you logged in to here.</p>
<form method="post" action="${this.#mount}/session/end/confirm"><input type="hidden" name="xsrf" value="${xsrf(ctx)}"><input type="hidden" name="logout" value="yes"><button type="submit">Sign out</button></form>`,
        leadingAnywhere,
      ),
    )
  }

  signedOut(ctx: KoaContextWithOIDC): void {
    show(ctx, notice(200, 'You are signed out', 'You can close this page.', { narrow: true }))
  }
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
    return parts.pages.failed(
      ctx,
      'This login has ended, or was begun in another browser. Begin again at the application.',
    )
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
