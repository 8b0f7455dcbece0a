import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import { networkOf } from '#kernel/address.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { RateLimit } from '#kernel/rate-limit.ts'
import { readJsonBody } from '#modules/shared/http/json-body.ts'
import { mailText, passwordWriter } from '#modules/shared/passwords/password-parameters.ts'
import { openPasswordRules, type PasswordRules } from '#protocols/passwords/password-rules.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/filter/http.ts'
import { html, type Markup, page, type Theme } from '#sdk/filter/page.ts'
import type { PasswordWriter } from '#sdk/filter/password-changes.ts'
import { readForm } from '#sdk/filter/read-form.ts'
import type { ResetSettings } from './reset-settings.ts'

const maxBody = 16 * 1024
const maxUser = 256
const maxToken = 200
const maxPassword = 1_024
/** Everyone is answered at a multiple of this, so that the time doesn't reveal whether the user exists. */
const answerEveryMillis = 500
/** Attempts to use links, per address; the links themselves can't be guessed. */
const uses = { burst: 30, perMinute: 30 }
const rememberedAddresses = 20_000
const formContent = /^application\/x-www-form-urlencoded\s*(?:;|$)/i

const requestSchema = z.strictObject({ user: z.string().min(1).max(maxUser) })
const setSchema = z.strictObject({
  token: z.string().min(1).max(maxToken),
  newPassword: z.string().min(1).max(maxPassword),
})

type Handler = (exchange: Exchange) => Promise<GatewayResponse>

export function createPasswordReset(settings: ResetSettings, host: FilterHost): Filter {
  const { passwordMinChars: minChars, passwordMaxChars: maxChars, ...given } = settings.given
  const acceptUnchecked = given.breachListFailure === 'accept'
  const rules = openPasswordRules({ minChars, maxChars, breachListURL: given.breachListURL, acceptUnchecked }, host.log)
  const { title, userLabel, homeURL, linkMinutes } = given
  const pages = new ResetPages({ title, userLabel, homeURL, linkMinutes, minChars, maxChars, theme: settings.theme })
  return new PasswordReset(settings, host, rules, pages)
}

class PasswordReset implements Filter {
  readonly #settings: ResetSettings
  readonly #host: FilterHost
  readonly #rules: PasswordRules
  readonly #pages: ResetPages
  readonly #writer: PasswordWriter
  readonly #requests: RateLimit
  readonly #uses: RateLimit
  readonly #script = readFileSync(new URL('./set-page.js', import.meta.url), 'utf8')
  readonly #routes: Readonly<Record<string, Readonly<Record<string, Handler>>>>

  constructor(settings: ResetSettings, host: FilterHost, rules: PasswordRules, pages: ResetPages) {
    this.#settings = settings
    this.#host = host
    this.#rules = rules
    this.#pages = pages
    const check = (password: string, values: Iterable<string>) =>
      rules.check({ password, repeated: password, values }, true)
    this.#writer = passwordWriter(settings.given, check, true)
    this.#requests = new RateLimit(rememberedAddresses, host.clock)
    this.#uses = new RateLimit(rememberedAddresses, host.clock)
    this.#routes = {
      '': { GET: async ({ mount }) => pages.request(mount), POST: (exchange) => this.#request(exchange) },
      '/set': { GET: async ({ mount }) => pages.set(mount), POST: (exchange) => this.#set(exchange) },
      '/set.js': { GET: async () => this.#scriptAnswer() },
    }
  }

  async handle(exchange: Exchange): Promise<GatewayResponse> {
    const { method } = exchange.request
    const path = exchange.pathInfo.replace(/\/$/, '')
    const methods = Object.hasOwn(this.#routes, path) ? this.#routes[path] : undefined
    if (methods === undefined) throw new GatewayError('NOT_FOUND', `nothing at "${exchange.pathInfo}"`)
    const wanted = method === 'HEAD' ? 'GET' : method
    const handler = Object.hasOwn(methods, wanted) ? methods[wanted] : undefined
    if (handler === undefined) {
      throw new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow: Object.keys(methods).join(', ') } })
    }
    const { body, ...head } = await handler(exchange)
    return method === 'HEAD' || body === undefined ? head : { ...head, body }
  }

  close(): void {
    this.#rules.close()
  }

  async #request({ request, mount }: Exchange): Promise<GatewayResponse> {
    const started = performance.now()
    if (!isForm(request)) {
      const { user } = await readJsonBody(request, requestSchema, maxBody)
      await this.#send(user, request, started)
      return { status: 202, headers: { 'cache-control': 'no-store' } }
    }
    return await this.#asPage(request, async () => {
      const user = (await readForm(request, maxBody)).get('user') ?? ''
      if (user.trim() === '' || user.length > maxUser) {
        return this.#pages.request(mount, 422, 'Enter your user name or mail address.')
      }
      await this.#send(user, request, started)
      return this.#pages.sent(mount)
    })
  }

  async #send(user: string, request: GatewayRequest, started: number): Promise<void> {
    const { given, lookup, linkText, publicURL } = this.#settings
    const { requestsPerMinute, linkMinutes, linksPerHour: perHour, root } = given
    if (requestsPerMinute > 0) {
      take(this.#requests, request, { burst: requestsPerMinute, perMinute: requestsPerMinute })
    }
    const filter = lookup.bind(() => [user.trim()])
    if (filter !== undefined) {
      await this.#host.passwords.requestReset({
        form: this.#host.name,
        filter,
        root,
        writer: this.#writer,
        validMillis: linkMinutes * 60_000,
        perHour,
        request,
        write: (secret) => {
          // Browsers don't send the part after # to servers, so it appears in no log.
          const places = { link: `${publicURL}/set#${secret}`, code: secret, minutes: String(linkMinutes) }
          const text = linkText.render({ key: (name) => places[name as keyof typeof places] })
          return mailText(given, { subject: given.linkSubject, text })
        },
      })
    }
    await wait(answerEveryMillis - ((performance.now() - started) % answerEveryMillis))
  }

  async #set({ request, mount }: Exchange): Promise<GatewayResponse> {
    if (!isForm(request)) {
      const { token, newPassword } = await readJsonBody(request, setSchema, maxBody)
      const outcome = await this.#reset(token, newPassword, request)
      if (outcome === 'changed') return { status: 204, headers: { 'cache-control': 'no-store' } }
      throw outcome === 'in use' ? inUse() : over()
    }
    return await this.#asPage(request, async () => {
      const form = await readForm(request, maxBody)
      const [token, password] = [(form.get('token') ?? '').trim(), form.get('password') ?? '']
      if (token === '' || token.length > maxToken) return this.#pages.over(mount)
      const again = (problem: string) => this.#pages.set(mount, { status: 422, problem, token })
      if (password === '' || password.length > maxPassword) return again('Enter a new password.')
      if (password !== form.get('repeated')) return again('The two passwords are different.')
      try {
        const outcome = await this.#reset(token, password, request)
        if (outcome === 'in use') throw inUse()
        return outcome === 'changed' ? this.#pages.changed() : this.#pages.over(mount)
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'WEAK_PASSWORD') throw error
        return again(error.publicText)
      }
    })
  }

  async #reset(secret: string, password: string, request: GatewayRequest) {
    take(this.#uses, request, uses)
    const { name: form, passwords } = this.#host
    return await passwords.reset({ form, secret, password, writer: this.#writer, request })
  }

  /** Shows failures as pages, too. */
  async #asPage(request: GatewayRequest, answer: () => Promise<GatewayResponse>): Promise<GatewayResponse> {
    if (!isOwnPage(request)) {
      return this.#pages.notice(403, 'Not allowed', 'Open the page of this site, and use the form on it.')
    }
    try {
      return await answer()
    } catch (thrown) {
      const error = asGatewayError(thrown)
      if (!error.isRefusal) this.#host.log.error('a password reset failed', { err: error, requestId: request.id })
      const made = this.#pages.notice(error.status, 'This didn’t work', `${error.publicText} (${request.id})`)
      if (error.retryAfter === undefined) return made
      return { ...made, headers: { ...made.headers, 'retry-after': String(error.retryAfter) } }
    }
  }

  #scriptAnswer(): GatewayResponse {
    const type = 'text/javascript; charset=utf-8'
    const headers = { 'content-type': type, 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' }
    return { status: 200, headers, body: this.#script }
  }
}

function take(limit: RateLimit, { remoteAddress }: GatewayRequest, rate: { burst: number; perMinute: number }): void {
  const retryAfter = limit.take(networkOf(remoteAddress), rate)
  if (retryAfter === undefined) return
  throw new GatewayError('TOO_MANY_REQUESTS', 'passwords are reset too often from one address', { retryAfter })
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

const inUse = (): GatewayError =>
  new GatewayError('CONFLICT', 'a reset link is being used', {
    publicText: 'The link is being used right now. Try again in two minutes.',
    retryAfter: 120,
  })

interface PageSettings {
  readonly title: string
  readonly userLabel: string
  readonly homeURL: string
  readonly linkMinutes: number
  readonly minChars: number
  readonly maxChars: number
  readonly theme: Theme
}

const alert = (problem: string | undefined): Markup | '' =>
  problem === undefined ? '' : html`<p id="problem" role="alert">${problem}</p>`

/** The pages of a password reset. They work without scripts, with the keyboard alone, and with password managers. */
class ResetPages {
  readonly #settings: PageSettings

  constructor(settings: PageSettings) {
    this.#settings = settings
  }

  request(mount: string, status = 200, problem?: string): GatewayResponse {
    const { title, userLabel, homeURL, linkMinutes } = this.#settings
    const described = problem === undefined ? '' : html` aria-invalid="true" aria-describedby="problem"`
    return this.#page(
      status,
      title,
      html`${alert(problem)}
<p>We send a link to the mail address of your account. It works for ${minutes(linkMinutes)}.</p>
<form method="post" action="${mount || '/'}">
<label for="user">${userLabel}</label>
<input id="user" name="user" type="text" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="256" required autofocus${described}>
<button type="submit">Send link</button>
</form>
<p><a href="${homeURL}">Back to sign-in</a></p>`,
    )
  }

  /** The same for every name, whether or not the user exists. */
  sent(mount: string): GatewayResponse {
    const { homeURL, linkMinutes } = this.#settings
    return this.#page(
      202,
      'Check your inbox',
      html`<p>If your account has a mail address, a link is on its way to it. The link works once, for ${minutes(linkMinutes)}.</p>
<p>No mail? Look in your spam folder, or <a href="${mount || '/'}">request another link</a>.</p>
<p><a href="${homeURL}">Back to sign-in</a></p>`,
    )
  }

  /** `token` is filled in again after a password that was not accepted. */
  set(mount: string, state: { readonly status?: number; readonly problem?: string; readonly token?: string } = {}) {
    const { minChars, maxChars } = this.#settings
    const { status = 200, problem, token = '' } = state
    const described = problem === undefined ? 'rules' : 'problem rules'
    const invalid = problem === undefined ? '' : html` aria-invalid="true"`
    return this.#page(
      status,
      'Set a new password',
      html`${alert(problem)}
<form method="post" action="${mount}/set">
<div data-token${token === '' ? '' : html` hidden`}>
<label for="token">Code from the mail</label>
<input id="token" name="token" type="text" autocomplete="one-time-code" autocapitalize="none" spellcheck="false" maxlength="200" required value="${token}">
</div>
<label for="password">New password</label>
<p id="rules">At least ${String(minChars)} characters.</p>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="${String(minChars)}" maxlength="${String(maxChars)}" required aria-describedby="${described}"${invalid}>
<label for="repeated">Repeat the new password</label>
<input id="repeated" name="repeated" type="password" autocomplete="new-password" minlength="${String(minChars)}" maxlength="${String(maxChars)}" required${invalid}>
<button type="submit">Set password</button>
</form>`,
      `${mount}/set.js`,
    )
  }

  changed(): GatewayResponse {
    return this.#page(
      200,
      'Password changed',
      html`<p>Your new password is set, and you are signed out everywhere.</p>
<p><a href="${this.#settings.homeURL}">Sign in</a></p>`,
    )
  }

  over(mount: string): GatewayResponse {
    return this.#page(
      410,
      'This link no longer works',
      html`<p>It was used already, has expired, or a newer link was sent. Your password wasn’t changed.</p>
<p><a href="${mount || '/'}">Request a new link</a></p>`,
    )
  }

  notice(status: number, title: string, text: string): GatewayResponse {
    return this.#page(status, title, html`<p>${text}</p>`)
  }

  /** Browsers send the address of these pages in no Referer header, not even to this site. */
  #page(status: number, title: string, content: Markup, script?: string): GatewayResponse {
    const { theme } = this.#settings
    const made = page(status, title, content, { theme, narrow: true, ...(script === undefined ? {} : { script }) })
    return { ...made, headers: { ...made.headers, 'referrer-policy': 'no-referrer' } }
  }
}

const minutes = (count: number): string => (count === 1 ? 'a minute' : `${count} minutes`)
