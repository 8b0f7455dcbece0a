import { GatewayError } from '#kernel/errors.ts'
import { LogoutTokens } from '#modules/auth-mechanisms/openid-connect/logout-token.ts'
import { sessionMark } from '#modules/auth-mechanisms/openid-connect/outside-session.ts'
import type { OpenIdConnectConfig } from '#modules/auth-mechanisms/openid-connect/parameters.ts'
import { DiscoveredKeySet } from '#protocols/jwt/discovered-key-set.ts'
import { longestToken, TokenRejected } from '#protocols/jwt/token-verifier.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/filter/http.ts'
import { readForm } from '#sdk/filter/read-form.ts'
import type { ModuleHost } from '#sdk/module/host.ts'

export const backChannelPath = '/backchannel-logout'
export const frontChannelPath = '/frontchannel-logout'

const longestSid = 255

/** Ends sessions when the issuer says that theirs ended. Undefined is answered to what is for another client. */
export class IssuerLogouts {
  readonly #config: OpenIdConnectConfig
  readonly #host: Pick<ModuleHost, 'sessions' | 'log'>
  readonly #tokens: LogoutTokens | undefined

  constructor(config: OpenIdConnectConfig, host: ModuleHost) {
    this.#config = config
    this.#host = host
    if (config.endpoints !== undefined) return
    const keys = new DiscoveredKeySet({ issuer: config.issuer, clock: host.clock, log: host.log })
    this.#tokens = new LogoutTokens(config, keys, host.clock)
  }

  async serve(request: GatewayRequest, pathInfo: string): Promise<GatewayResponse | undefined> {
    if (pathInfo === backChannelPath) return this.#backChannel(request)
    return pathInfo === frontChannelPath ? this.#frontChannel(request) : undefined
  }

  async #backChannel(request: GatewayRequest): Promise<GatewayResponse | undefined> {
    const tokens = this.#tokens
    if (tokens === undefined) return undefined
    if (request.method !== 'POST') {
      throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: 'POST' } })
    }
    const sent = (await readForm(request, 2 * longestToken)).getAll('logout_token')
    const [token = ''] = sent
    if (sent.length > 1 || !tokens.isOurs(token)) return undefined
    try {
      const { kind, value } = await tokens.read(token)
      await this.#end(kind, value, request)
      return answer(200)
    } catch (error) {
      if (!(error instanceof TokenRejected)) throw error
      this.#host.log.warn('a logout token of an issuer was rejected', {
        requestId: request.id,
        reason: error.message,
      })
      return answer(400, { error: 'invalid_request', error_description: error.description })
    }
  }

  /** A session id is known to the issuer and the browser alone, and whoever knows it can do no more with it than this. */
  async #frontChannel(request: GatewayRequest): Promise<GatewayResponse | undefined> {
    if (request.method !== 'GET') {
      throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: 'GET' } })
    }
    const [issuer, sid] = [request.query.get('iss'), request.query.get('sid')]
    if (issuer !== this.#config.issuer || sid === null || sid === '' || sid.length > longestSid) return undefined
    await this.#end('sid', sid, request)
    return answer(200)
  }

  async #end(kind: 'sid' | 'sub', value: string, request: GatewayRequest): Promise<void> {
    const ended = await this.#host.sessions.endMarked(sessionMark(this.#config, kind, value))
    const { issuer } = this.#config
    this.#host.log.info('an issuer ended sessions with a logout token', {
      requestId: request.id,
      issuer,
      sessions: ended,
    })
  }
}

const answer = (status: number, body?: object): GatewayResponse => ({
  status,
  headers: { 'cache-control': 'no-store', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
  ...(body === undefined ? {} : { body: JSON.stringify(body) }),
})
