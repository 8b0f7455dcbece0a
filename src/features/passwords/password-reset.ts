import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type { PasswordHost } from '#features/passwords/host.ts'
import { passwordWriter } from '#features/passwords/rules/password-parameters.ts'
import type { PasswordWriter } from '#features/passwords/service/password-writer.ts'
import { networkOf } from '#kernel/address.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { type Rate, requireRate } from '#kernel/rate-limit.ts'
import { openPasswordRules, type PasswordRules } from '#protocols/passwords/password-rules.ts'
import { readJsonBody } from '#sdk/api/json-body.ts'
import { answerRoute, type Routes } from '#sdk/api/routes.ts'
import { servedBy } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import type { Theme } from '#sdk/http/page-look.ts'
import { readForm } from '#sdk/http/read-form.ts'
import { failureText, html, type Markup, page } from '#sdk/page/page.ts'
import { durationText, type TextKey, textsFor } from '#sdk/page/page-texts.ts'
import { maxPassword, maxToken, maxUser, passwordResetApi, requestSchema, setSchema } from './reset-api.ts'
import type { ResetSettings } from './reset-settings.ts'

const maxBody = 16 * 1024
/** Everyone is answered at a multiple of this, so that the time doesn't reveal whether the user exists. */
const answerEveryMillis = 500
/** Attempts to use links, per address; the links themselves can't be guessed. */
const uses = { burst: 30, perMinute: 30 }
const formContent = /^application\/x-www-form-urlencoded\s*(?:;|$)/i

export function createPasswordReset(settings: ResetSettings, host: PasswordHost): Filter {
  const { passwordMinChars: minChars, passwordMaxChars: maxChars, ...given } = settings.given
  const acceptUnchecked = given.breachListFailure === 'accept'
  const rules = openPasswordRules({ minChars, maxChars, breachListURL: given.breachListURL, acceptUnchecked }, host.log)
  const { title, userLabel, homeURL, linkMinutes } = given
  const pages = new ResetPages({ title, userLabel, homeURL, linkMinutes, minChars, maxChars, theme: settings.theme })
  return new PasswordReset(settings, host, rules, pages)
}

class PasswordReset implements Filter {
  readonly #settings: ResetSettings
  readonly #host: PasswordHost
  readonly #rules: PasswordRules
  readonly #pages: ResetPages
  readonly #writer: PasswordWriter
  readonly #scriptText = readFileSync(new URL('./set-page.js', import.meta.url), 'utf8')

  constructor(settings: ResetSettings, host: PasswordHost, rules: PasswordRules, pages: ResetPages) {
    this.#settings = settings
    this.#host = host
    this.#rules = rules
    this.#pages = pages
    const check = (password: string, values: Iterable<string>) =>
      rules.check({ password, repeated: password, values }, true)
    this.#writer = passwordWriter(settings.given, check, true)
  }

  static readonly #api = servedBy<PasswordReset, keyof typeof passwordResetApi.description.operations>(
    passwordResetApi,
    {
      showRequestPage: async (reset, exchange) => reset.#pages.request(exchange),
      requestReset: (reset, exchange) => reset.#request(exchange),
      showSetPage: async (reset, exchange) => reset.#pages.set(exchange),
      setPassword: (reset, exchange) => reset.#set(exchange),
    },
  )

  async handle(exchange: Exchange): Promise<GatewayResponse> {
    const path = exchange.pathInfo.replace(/\/$/, '')
    if (path !== '/set.js') return await PasswordReset.#api.answer(this, exchange, path)
    return await answerRoute(PasswordReset.#script, this, exchange, path)
  }

  /** What the page loads is no operation. */
  static readonly #script: Routes<PasswordReset> = { 'GET /set.js': async (reset) => reset.#scriptAnswer() }

  close(): void {
    this.#rules.close()
  }

  async #request(exchange: Exchange): Promise<GatewayResponse> {
    const { request } = exchange
    const started = performance.now()
    if (!isForm(request)) {
      const { user } = await readJsonBody(request, requestSchema, maxBody)
      await this.#send(user, request, started)
      return { status: 202, headers: { 'cache-control': 'no-store' } }
    }
    return await this.#asPage(request, async () => {
      const user = (await readForm(request, maxBody)).get('user') ?? ''
      if (user.trim() === '' || user.length > maxUser) {
        return this.#pages.request(exchange, 422, textsFor(request)('reset.noUser'))
      }
      await this.#send(user, request, started)
      return this.#pages.sent(exchange)
    })
  }

  async #send(user: string, request: GatewayRequest, started: number): Promise<void> {
    const { given, lookup, links } = this.#settings
    const { requestsPerMinute } = given
    if (requestsPerMinute > 0) {
      const rate = { burst: requestsPerMinute, perMinute: requestsPerMinute }
      await this.#take('password reset requests from one address', request, rate)
    }
    const filter = lookup.bind(() => [user.trim()])
    if (filter !== undefined) {
      await this.#host.passwords.requestReset({ ...links, form: this.#host.name, filter, request })
    }
    await wait(answerEveryMillis - ((performance.now() - started) % answerEveryMillis))
  }

  async #set(exchange: Exchange): Promise<GatewayResponse> {
    const { request } = exchange
    const t = textsFor(request)
    if (!isForm(request)) {
      const { token, newPassword } = await readJsonBody(request, setSchema, maxBody)
      const outcome = await this.#reset(token, newPassword, request)
      if (outcome === 'changed') return { status: 204, headers: { 'cache-control': 'no-store' } }
      throw outcome === 'in use' ? inUse() : over()
    }
    return await this.#asPage(request, async () => {
      const form = await readForm(request, maxBody)
      const [token, password] = [(form.get('token') ?? '').trim(), form.get('password') ?? '']
      if (token === '' || token.length > maxToken) return this.#pages.over(exchange)
      const again = (problem: string) => this.#pages.set(exchange, { status: 422, problem, token })
      if (password === '' || password.length > maxPassword) return again(t('reset.noPassword'))
      if (password !== form.get('repeated')) return again(t('reset.different'))
      try {
        const outcome = await this.#reset(token, password, request)
        if (outcome === 'in use') throw inUse(t('reset.inUse'))
        return outcome === 'changed' ? this.#pages.changed(exchange) : this.#pages.over(exchange)
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'WEAK_PASSWORD') throw error
        return again(error.publicText)
      }
    })
  }

  async #reset(secret: string, password: string, request: GatewayRequest) {
    await this.#take('uses of password reset links from one address', request, uses)
    const { name: form, passwords } = this.#host
    return await passwords.reset({ form, secret, password, writer: this.#writer, request })
  }

  async #take(limit: string, { remoteAddress }: GatewayRequest, rate: Rate): Promise<void> {
    const { name, rateLimits } = this.#host
    await requireRate(rateLimits, limit, JSON.stringify([name, networkOf(remoteAddress)]), rate)
  }

  /** Shows failures as pages, too. */
  async #asPage(request: GatewayRequest, answer: () => Promise<GatewayResponse>): Promise<GatewayResponse> {
    if (!isOwnPage(request)) {
      return this.#pages.notice(request, 403, 'foreign.title', textsFor(request)('reset.foreign'))
    }
    try {
      return await answer()
    } catch (thrown) {
      const error = asGatewayError(thrown)
      if (!error.isRefusal) this.#host.log.error('a password reset failed', { err: error, requestId: request.id })
      const text = `${failureText(error, request)} (${request.id})`
      const made = this.#pages.notice(request, error.status, 'reset.failed', text)
      if (error.retryAfter === undefined) return made
      return { ...made, headers: { ...made.headers, 'retry-after': String(error.retryAfter) } }
    }
  }

  #scriptAnswer(): GatewayResponse {
    const type = 'text/javascript; charset=utf-8'
    const headers = { 'content-type': type, 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' }
    return { status: 200, headers, body: this.#scriptText }
  }
}

const isForm = (request: GatewayRequest): boolean => formContent.test(header(request, 'content-type') ?? '')

/** No other site may send the form. With `no-referrer`, browsers give an opaque origin. */
function isOwnPage(request: GatewayRequest): boolean {
  const site = header(request, 'sec-fetch-site')
  if (site !== undefined) return site === 'same-origin'
  const origin = header(request, 'origin')
  return origin === undefined || origin === 'null' || origin === request.origin
}

const over = (): GatewayError =>
  new GatewayError('NOT_FOUND', 'a reset link that was used or replaced, or has expired', {
    publicText: 'The link was used already or has expired. Request a new one.',
  })

const inUse = (publicText = textsFor()('reset.inUse')): GatewayError =>
  new GatewayError('CONFLICT', 'a reset link is being used', {
    publicText,
    retryAfter: 120,
  })

interface PageSettings {
  readonly title: string | undefined
  readonly userLabel: string | undefined
  readonly homeURL: string
  readonly linkMinutes: number
  readonly minChars: number
  readonly maxChars: number
  readonly theme: Theme | undefined
}

const alert = (problem: string | undefined): Markup | '' =>
  problem === undefined ? '' : html`<p id="problem" role="alert">${problem}</p>`

type PageCall = Pick<Exchange, 'request' | 'mount'>

/** The pages of a password reset. They work without scripts, with the keyboard alone, and with password managers. */
class ResetPages {
  readonly #settings: PageSettings

  constructor(settings: PageSettings) {
    this.#settings = settings
  }

  request({ request, mount }: PageCall, status = 200, problem?: string): GatewayResponse {
    const t = textsFor(request)
    const { title = t('login.forgot'), userLabel = t('reset.user'), homeURL } = this.#settings
    const described = problem === undefined ? '' : html` aria-invalid="true" aria-describedby="problem"`
    return this.#page(
      request,
      status,
      title,
      html`${alert(problem)}
<p>${t('reset.text', { time: this.#time(request) })}</p>
<form method="post" action="${mount || '/'}">
<label for="user">${userLabel}</label>
<input id="user" name="user" type="text" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="256" required autofocus${described}>
<button type="submit">${t('reset.send')}</button>
</form>
<p><a href="${homeURL}">${t('reset.back')}</a></p>`,
    )
  }

  /** The same for every name, whether or not the user exists. */
  sent({ request, mount }: PageCall): GatewayResponse {
    const t = textsFor(request)
    return this.#page(
      request,
      202,
      t('reset.sentTitle'),
      html`<p>${t('reset.sent', { time: this.#time(request) })}</p>
<p>${t('reset.noMail')} <a href="${mount || '/'}">${t('reset.another')}</a></p>
<p><a href="${this.#settings.homeURL}">${t('reset.back')}</a></p>`,
    )
  }

  /** `token` is filled in again after a password that was not accepted. */
  set(
    { request, mount }: PageCall,
    state: { readonly status?: number; readonly problem?: string; readonly token?: string } = {},
  ) {
    const t = textsFor(request)
    const { minChars, maxChars } = this.#settings
    const { status = 200, problem, token = '' } = state
    const described = problem === undefined ? 'rules' : 'problem rules'
    const invalid = problem === undefined ? '' : html` aria-invalid="true"`
    return this.#page(
      request,
      status,
      t('reset.setTitle'),
      html`${alert(problem)}
<form method="post" action="${mount}/set">
<div data-token${token === '' ? '' : html` hidden`}>
<label for="token">${t('reset.code')}</label>
<input id="token" name="token" type="text" autocomplete="one-time-code" autocapitalize="none" spellcheck="false" maxlength="200" required value="${token}">
</div>
<label for="password">${t('reset.newPassword')}</label>
<p id="rules">${t('reset.rules', { count: String(minChars) })}</p>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="${String(minChars)}" maxlength="${String(maxChars)}" required aria-describedby="${described}"${invalid}>
<label for="repeated">${t('reset.repeated')}</label>
<input id="repeated" name="repeated" type="password" autocomplete="new-password" minlength="${String(minChars)}" maxlength="${String(maxChars)}" required${invalid}>
<button type="submit">${t('reset.set')}</button>
</form>`,
      `${mount}/set.js`,
    )
  }

  changed({ request }: PageCall): GatewayResponse {
    const t = textsFor(request)
    return this.#page(
      request,
      200,
      t('reset.changedTitle'),
      html`<p>${t('reset.changed')}</p>
<p><a href="${this.#settings.homeURL}">${t('login.title')}</a></p>`,
    )
  }

  over({ request, mount }: PageCall): GatewayResponse {
    const t = textsFor(request)
    return this.#page(
      request,
      410,
      t('reset.overTitle'),
      html`<p>${t('reset.over')}</p>
<p><a href="${mount || '/'}">${t('reset.again')}</a></p>`,
    )
  }

  notice(request: GatewayRequest, status: number, title: TextKey, text: string): GatewayResponse {
    return this.#page(request, status, textsFor(request)(title), html`<p>${text}</p>`)
  }

  /** How long a link works. */
  #time(request: GatewayRequest): string {
    return durationText(this.#settings.linkMinutes * 60, request)
  }

  /** Browsers send the address of these pages in no Referer header, not even to this site. */
  #page(request: GatewayRequest, status: number, title: string, content: Markup, script?: string): GatewayResponse {
    const { theme } = this.#settings
    const options = { request, theme, narrow: true, ...(script === undefined ? {} : { script }) }
    const made = page(status, title, content, options)
    return { ...made, headers: { ...made.headers, 'referrer-policy': 'no-referrer' } }
  }
}
