import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { type HttpAnswer, type HttpPool, openHttpPool } from '#protocols/http/http-client.ts'
import type { GitHubConfig } from './parameters.ts'

/** For all calls of one login. */
const loginMillis = 20_000
const answerBytes = 1024 * 1024
const perPage = 100
/** Orgs and teams beyond these pages are not read, so that no one gets in by them. */
const maxPages = 10

/** GitHub's answer does not allow this login. The message is for the log, and has no token. */
export class GitHubRefusal extends Error {}

/** A user with orgs and teams, as GitHub reports them. */
export interface GitHubUser {
  readonly profile: JsonObject
  /** The primary address; undefined if the token does not permit reading it. */
  readonly mail: { readonly address: string; readonly verified: boolean } | undefined
  /** Logins of orgs. */
  readonly orgs: readonly string[]
  /** `org/team`, by the name of the team. */
  readonly teams: readonly string[]
}

/** The calls of a login to GitHub: over TLS or on this machine, without redirects, and within limits. */
export class GitHubApi {
  readonly #config: GitHubConfig
  readonly #pool: HttpPool = openHttpPool()

  constructor(config: GitHubConfig) {
    this.#config = config
  }

  close(): void {
    this.#pool.close()
  }

  /** A deadline for the calls of one login. */
  deadline(): AbortSignal {
    return AbortSignal.timeout(loginMillis)
  }

  /** Redeems a code, which GitHub accepts once. Throws GitHubRefusal, or TARGET_UNREACHABLE. */
  async redeem(
    { code, verifier, redirectUri }: { readonly code: string; readonly verifier: string; readonly redirectUri: string },
    signal: AbortSignal,
  ): Promise<string> {
    const { clientId, clientSecret, token } = this.#config
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: clientId,
      client_secret: clientSecret,
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }).toString()
    const headers = { ...commonHeaders, 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await this.#send('POST', token, { ...headers, accept: 'application/json' }, signal, body)
    const found = readObject(answer.body)
    // GitHub reports a refused code with status 200.
    const error = found?.['error']
    if (typeof error === 'string') throw new GitHubRefusal(`the token endpoint says ${error.slice(0, 100)}`)
    const accessToken = found?.['access_token']
    if (answer.status !== 200 || typeof accessToken !== 'string' || !/^[\w.~+/=-]{1,4096}$/.test(accessToken)) {
      throw new GitHubRefusal(`the token endpoint answered ${answer.status} without an access token`)
    }
    return accessToken
  }

  /** Reads who the token belongs to. Throws GitHubRefusal, or TARGET_UNREACHABLE. */
  async user(accessToken: string, signal: AbortSignal): Promise<GitHubUser> {
    const profile = readObject(await this.#get('/user', accessToken, signal))
    if (profile === undefined) throw new GitHubRefusal('/user is not a JSON object')
    const [emails, orgs, teams] = await Promise.all([
      this.#list('/user/emails', accessToken, signal),
      this.#list('/user/orgs', accessToken, signal),
      this.#list('/user/teams', accessToken, signal),
    ])
    const primary = emails.find(({ primary }) => primary === true)
    const address = primary?.['email']
    return {
      profile,
      mail: typeof address === 'string' ? { address, verified: primary?.['verified'] === true } : undefined,
      orgs: orgs.flatMap(({ login }) => (isOrgName(login) ? [login] : [])),
      teams: teams.flatMap(({ name, organization }) => {
        const org = isJsonObject(organization) ? organization['login'] : undefined
        return isOrgName(org) && typeof name === 'string' && name !== '' ? [`${org}/${name}`] : []
      }),
    }
  }

  /** All pages of a list. The address of a page is made here, and never taken from an answer. */
  async #list(path: string, accessToken: string, signal: AbortSignal): Promise<JsonObject[]> {
    const all: JsonObject[] = []
    for (let page = 1; page <= maxPages; page++) {
      const text = await this.#get(`${path}?per_page=${perPage}&page=${page}`, accessToken, signal)
      const items = readJson(text)
      if (!Array.isArray(items)) throw new GitHubRefusal(`${path} is not a JSON list`)
      all.push(...items.slice(0, perPage).filter(isJsonObject))
      if (items.length < perPage) break
    }
    return all
  }

  async #get(path: string, accessToken: string, signal: AbortSignal): Promise<string> {
    const url = new URL(this.#config.api.href.replace(/\/$/, '') + path)
    const headers = {
      ...commonHeaders,
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
      authorization: `Bearer ${accessToken}`,
    }
    const { status, body } = await this.#send('GET', url, headers, signal)
    if (status === 200) return body
    const [name] = path.split('?')
    throw new GitHubRefusal(`${name} answered ${status}: the token needs the scopes read:user, user:email and read:org`)
  }

  async #send(
    method: string,
    url: URL,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
    body?: string,
  ): Promise<HttpAnswer> {
    let answer: HttpAnswer
    try {
      answer = await this.#pool.send({ method, url, headers, body }, { signal, bytes: answerBytes })
    } catch (cause) {
      throw unreachable(`${url.origin} does not answer`, cause)
    }
    if (answer.status >= 500 || answer.status === 429) throw unreachable(`${url.origin} answered ${answer.status}`)
    return answer
  }
}

/** GitHub refuses calls without a user agent. */
const commonHeaders = { 'user-agent': 'gatehouse' }

const unreachable = (detail: string, cause?: unknown): GatewayError =>
  new GatewayError('TARGET_UNREACHABLE', detail, { retryAfter: 5, cause })

/** Without a slash, since `org/team` is one text. */
const isOrgName = (value: unknown): value is string => typeof value === 'string' && /^[\w.-]{1,100}$/.test(value)

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new GitHubRefusal('an answer is not JSON')
  }
}

function readObject(text: string): JsonObject | undefined {
  const value = readJson(text)
  return isJsonObject(value) ? value : undefined
}
