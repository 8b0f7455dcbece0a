import { once } from 'node:events'
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'

/** A browser without scripts: cookies, forms and redirects, one at a time so that tests can check in between. */
export class PlainBrowser {
  readonly jar = new Map<string, string>()
  readonly #origin: string

  constructor(origin: string) {
    this.#origin = origin
  }

  /** The same browser, at another address of the same site. */
  at(origin: string): PlainBrowser {
    const other = new PlainBrowser(origin)
    for (const [name, value] of this.jar) other.jar.set(name, value)
    return other
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Visit> {
    return this.#send('GET', path, { accept: 'text/html', 'sec-fetch-mode': 'navigate', ...headers })
  }

  post(path: string, form: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}) {
    const common = { 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'same-origin', origin: this.#origin }
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    return this.#send('POST', path, { ...common, ...type, ...headers }, new URLSearchParams(form).toString())
  }

  /** Opens a page, follows redirects, and fills in the form at the end. */
  async logIn(path: string, user: string, pwd: string): Promise<Visit> {
    const begun = await this.get(path)
    const page = await this.get(begun.location)
    return this.post(page.action, { user, pwd })
  }

  /** Follows redirects on this host, and logs in if required; the last answer redirects elsewhere or nowhere. */
  async follow(address: string, user: string, pwd: string): Promise<Visit> {
    let visit = await this.get(address)
    for (let i = 0; i < 12; i++) {
      const leadsHere = visit.location.startsWith('/') || visit.location.startsWith(this.#origin)
      if (visit.action.startsWith('/auth/formLogin')) visit = await this.post(visit.action, { user, pwd })
      else if (leadsHere) visit = await this.get(visit.location)
      else return visit
    }
    throw new Error('redirected for ever')
  }

  /** Not by `fetch`, which sets its own Sec-Fetch headers. */
  async #send(method: string, path: string, headers: Record<string, string>, body = ''): Promise<Visit> {
    const cookie = [...this.jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const url = new URL(path, this.#origin)
    const request = url.protocol === 'https:' ? tlsRequest : plainRequest
    const asked = request(url, {
      method,
      ca: testServerCertificate,
      headers: { ...headers, ...(cookie === '' ? {} : { cookie }) },
    })
    asked.end(body)
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    for (const line of response.headers['set-cookie'] ?? []) {
      const [pair = ''] = line.split(';')
      const equals = pair.indexOf('=')
      if (/Max-Age=0/i.test(line)) this.jar.delete(pair.slice(0, equals))
      else this.jar.set(pair.slice(0, equals), pair.slice(equals + 1))
    }
    const answer = await text(response)
    const told = new Headers()
    for (const [name, value] of Object.entries(response.headers)) told.set(name, String(value))
    return {
      status: response.statusCode ?? 0,
      headers: told,
      body: answer,
      location: response.headers.location ?? '',
      action: /<form method="post" action="([^"]+)"/.exec(answer)?.[1]?.replaceAll('&amp;', '&') ?? '',
    }
  }
}

export interface Visit {
  readonly status: number
  readonly headers: Headers
  readonly body: string
  /** The target of the redirect; empty if there is none. */
  readonly location: string
  /** The address that the page's form posts to; empty without one. */
  readonly action: string
}
