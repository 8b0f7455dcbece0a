import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { allowMethods } from '#sdk/api/routes.ts'
import type { AuthAttempt, AuthHost, AuthMechanism, AuthOutcome, LoginAttempt } from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import { claimAttributes, linkSubject } from '#sdk/login/linked-subject.ts'
import { GitHubApi, GitHubRefusal, type GitHubUser } from './github-api.ts'
import type { GitHubConfig } from './parameters.ts'

/** Fields of the profile that become attributes. Users choose most of them. */
const profileFields = [
  'login',
  'node_id',
  'name',
  'company',
  'blog',
  'location',
  'bio',
  'html_url',
  'avatar_url',
  'type',
]
const longestCode = 512

/** Sends users to GitHub, and accepts a code that only this login can use. */
export class GitHubLogin implements AuthMechanism {
  readonly #config: GitHubConfig
  readonly #host: AuthHost
  readonly #api: GitHubApi

  constructor(config: GitHubConfig, host: AuthHost) {
    this.#config = config
    this.#host = host
    this.#api = new GitHubApi(config)
  }

  async begin(attempt: AuthAttempt): Promise<AuthOutcome> {
    if (attempt.login === undefined) {
      return { kind: 'rejected', reason: 'a login at another site is for browsers', noCredential: true }
    }
    return this.#depart({ ...attempt, login: attempt.login })
  }

  async proceed(attempt: LoginAttempt): Promise<AuthOutcome> {
    const { request, pathInfo, login, state, root } = attempt
    if (pathInfo !== '') throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
    allowMethods(request.method, 'GET')
    const { query } = request
    if (!query.has('code') && !query.has('error')) return this.#depart(attempt)
    const [given, ...others] = query.getAll('state')
    if (given === undefined || others.length > 0 || !isSame(given, login.id)) {
      return rejected('the answer belongs to another login')
    }
    if (query.has('error')) return rejected(`GitHub says ${(query.get('error') ?? '').slice(0, 100)}`)
    const [code = '', ...more] = query.getAll('code')
    if (code === '' || code.length > longestCode || more.length > 0) return rejected('the code is not acceptable')
    const { verifier, redirectUri } = state
    if (typeof verifier !== 'string' || typeof redirectUri !== 'string') return rejected('the login did not begin here')
    try {
      const signal = this.#api.deadline()
      const accessToken = await this.#api.redeem({ code, verifier, redirectUri }, signal)
      return await this.#arrive(await this.#api.user(accessToken, signal), accessToken, root)
    } catch (error) {
      if (error instanceof GitHubRefusal) return rejected(error.message)
      throw error
    }
  }

  async close(): Promise<void> {
    this.#api.close()
  }

  #depart({ request, login }: Pick<LoginAttempt, 'request' | 'login'>): AuthOutcome {
    const { authorization, clientId, scope } = this.#config
    const verifier = randomBytes(32).toString('base64url')
    const redirectUri = `${request.origin}${login.uri}`
    const address = new URL(authorization)
    const query = {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope,
      state: login.id,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }
    for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value)
    return { kind: 'challenge', response: seeOther(address.href), state: { verifier, redirectUri } }
  }

  async #arrive({ profile, mail, orgs, teams }: GitHubUser, accessToken: string, root: string): Promise<AuthOutcome> {
    const { authorization, link, tokenSlot } = this.#config
    const { id, login } = profile
    if (!Number.isSafeInteger(id) || typeof login !== 'string' || login === '') {
      return rejected('/user has no id and login')
    }
    const chosen = profileFields.flatMap((name) => (typeof profile[name] === 'string' ? [[name, profile[name]]] : []))
    const claims: JsonObject = {
      ...Object.fromEntries(chosen),
      // The id stays when a login is renamed, or given to another user.
      iss: authorization.origin,
      sub: String(id),
      id: String(id),
      ...(mail === undefined ? {} : { mail: mail.address, email: mail.address, email_verified: mail.verified }),
      githubOrgs: [...orgs],
      githubTeams: [...teams],
    }
    const attributes = claimAttributes(claims)
    if (attributes === undefined) return rejected('two attributes differ in letter case only')
    const linked = await linkSubject(attributes, link, root, this.#host)
    if (linked.kind === 'refused') return rejected(linked.reason)
    return {
      kind: 'authenticated',
      subject: linked.subject,
      session: tokenSlot === undefined ? undefined : { slots: { [tokenSlot]: accessToken } },
    }
  }
}

const rejected = (reason: string): AuthOutcome => ({ kind: 'rejected', reason })

function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => createHash('sha256').update(text).digest())
  return a !== undefined && b !== undefined && timingSafeEqual(a, b)
}
