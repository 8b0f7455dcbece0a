import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { sendJson } from '#testing/login/fake-issuer.ts'

export interface FakeGitHubAccount {
  readonly id: number
  readonly login: string
  readonly name?: string
  readonly emails?: readonly { email: string; primary: boolean; verified: boolean }[]
  readonly orgs?: readonly string[]
  /** `org/team` */
  readonly teams?: readonly string[]
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

const clientId = 'Iv1.client'
const clientSecret = 'gh-s3cret'

/**
 * A server with GitHub's OAuth endpoints and API, as far as a login needs them: codes work once, for their redirect
 * address and PKCE verifier; refused codes get status 200; lists have pages; calls without a user agent get 403.
 */
export class FakeGitHub {
  readonly clientId = clientId
  readonly clientSecret = clientSecret
  /** Method and path of every call to the API and the token endpoint. */
  readonly calls: string[] = []
  /** Answers that replace the server's own, by path. */
  readonly overrides = new Map<string, Answer>()
  readonly #server: Server
  readonly #codes = new Map<string, { account: FakeGitHubAccount; challenge: string; redirectUri: string }>()
  readonly #tokens = new Map<string, FakeGitHubAccount>()

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<FakeGitHub> {
    const server = createServer((request, response) => void github.#answer(request, response))
    const github = new FakeGitHub(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return github
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** The user consents on the page at `asked`: the address that the browser is sent back to. */
  consent(asked: URL, account: FakeGitHubAccount): URL {
    const query = asked.searchParams
    if (query.get('client_id') !== clientId) throw new Error('another client')
    const code = randomUUID()
    const redirectUri = query.get('redirect_uri') ?? ''
    this.#codes.set(code, { account, challenge: query.get('code_challenge') ?? '', redirectUri })
    const back = new URL(redirectUri)
    back.searchParams.set('code', code)
    back.searchParams.set('state', query.get('state') ?? '')
    return back
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url)
    this.calls.push(`${request.method} ${url.pathname}`)
    const override = this.overrides.get(url.pathname)
    if (override !== undefined) return void (await override(request, response))
    if (url.pathname === '/login/oauth/access_token') return this.#token(request, response)
    if (request.headers['user-agent'] === undefined) return sendJson(response, { message: 'no user agent' }, 403)
    const account = this.#tokens.get((request.headers.authorization ?? '').replace(/^Bearer /, ''))
    if (account === undefined) return sendJson(response, { message: 'Bad credentials' }, 401)
    const { id, login, name = null, emails = [], orgs = [], teams = [] } = account
    const page = Number(url.searchParams.get('page') ?? '1')
    const size = Number(url.searchParams.get('per_page') ?? '30')
    const paged = (items: readonly unknown[]) => sendJson(response, items.slice((page - 1) * size, page * size))
    switch (url.pathname) {
      case '/user':
        return sendJson(response, { id, login, name, company: 'o=evil', memberOf: ['admins'], type: 'User' })
      case '/user/emails':
        return paged(emails)
      case '/user/orgs':
        return paged(orgs.map((org) => ({ login: org })))
      case '/user/teams':
        return paged(
          teams.map((team) => {
            const [org, ...rest] = team.split('/')
            return { name: rest.join('/'), slug: rest.join('-'), organization: { login: org } }
          }),
        )
      default:
        return sendJson(response, { message: 'Not Found' }, 404)
    }
  }

  async #token(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = new URLSearchParams(await text(request))
    const refuse = (error: string) => sendJson(response, { error, error_description: 'no' })
    if (form.get('client_id') !== clientId || form.get('client_secret') !== clientSecret) {
      return refuse('incorrect_client_credentials')
    }
    const code = form.get('code') ?? ''
    const known = this.#codes.get(code)
    this.#codes.delete(code)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (known === undefined || known.challenge !== challenge) return refuse('bad_verification_code')
    if (known.redirectUri !== form.get('redirect_uri')) return refuse('redirect_uri_mismatch')
    const token = `gho_${randomUUID()}`
    this.#tokens.set(token, known.account)
    sendJson(response, { access_token: token, token_type: 'bearer', scope: 'read:org,read:user,user:email' })
  }
}
