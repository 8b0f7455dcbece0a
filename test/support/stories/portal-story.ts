import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expectDescribed } from '#testing/gateway/api-contract.ts'
import type { GatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'

/** The users of the quickstart: one with an account, a manager, an administrator. */
export const demoPasswords = { ada: 'lovelace-1815', grace: 'hopper-1906', alan: 'turing-1912' } as const
export type DemoLogin = keyof typeof demoPasswords

/** A copy of the quickstart whose registration form has no limits; the caller removes it. */
export function unlimitedQuickstart(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-quickstart-'))
  cpSync('examples/quickstart', folder, { recursive: true })
  const file = join(folder, 'portal.yaml')
  const anchor = '            userName.displayName: Login\n'
  const limits = ['submitsPerMinute', 'submitsPerValuePerHour', 'readsPerMinute']
  const text = readFileSync(file, 'utf8')
  if (!text.includes(anchor)) throw new Error('the form of the quickstart has changed')
  writeFileSync(file, text.replace(anchor, anchor + limits.map((name) => `            ${name}: "0"\n`).join('')))
  return folder
}

export interface PortalAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Undefined without JSON. */
  readonly json: ReturnType<typeof JSON.parse>
}

/** A logged-in user, who calls the APIs of the portal by cookie like a page of the same site. */
export class PortalPerson {
  readonly browser: PlainBrowser
  readonly #url: string

  constructor(url: string, browser: PlainBrowser) {
    this.#url = url
    this.browser = browser
  }

  static async logIn({ url }: Pick<GatewayProcess, 'url'>, login: DemoLogin): Promise<PortalPerson> {
    const browser = new PlainBrowser(url)
    const { status } = await browser.logIn('/main/user', login, demoPasswords[login])
    if (status !== 303) throw new Error(`${login} did not get in: ${status}`)
    return new PortalPerson(url, browser)
  }

  /** The same cookies at another replica. */
  at({ url }: Pick<GatewayProcess, 'url'>): PortalPerson {
    return new PortalPerson(url, this.browser.at(url))
  }

  get cookie(): string {
    return [...this.browser.jar].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  get(path: string): Promise<PortalAnswer> {
    return this.send('GET', path)
  }

  /** A body that is a text is sent unchanged. */
  async send(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = { 'x-requested-with': 'test' },
  ): Promise<PortalAnswer> {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: { cookie: this.cookie, accept: 'application/json', ...type, ...headers },
      redirect: 'manual',
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    expectDescribed({ method, path, status: response.status, type: response.headers.get('content-type'), text })
    const isJson = /json/.test(response.headers.get('content-type') ?? '') && text !== ''
    return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined }
  }
}
