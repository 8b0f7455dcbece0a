import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Configuration } from '#config/configuration/configuration.ts'
import { createAt, createEach } from '#config/configuration/create-at.ts'
import { type IssuerConfig, issuersByName } from '#config/configuration/issuer.ts'
import type { TokenKeys } from '#config/configuration/token-keys.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { Scope } from '#kernel/scope.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import { signedToken } from '#protocols/sts/signed-token.ts'
import type { CompanionSession } from '#sdk/auth/session.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { ChangeSubject } from '#sdk/filter/subject-filter.ts'
import type { HostFor } from '#sdk/host/host.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import type { LookupHost } from '#sdk/target/target.ts'
import { type ServiceTokenCall, type ServiceTokens, serviceTokenSeconds } from '#sdk/target-module/service-tokens.ts'
import { type IssuerMeter, noIssuerMeter } from './issuer-audit.ts'
import { IssuerServer, type IssuerServerParts } from './issuer-server.ts'
import type { IssuerStore } from './issuer-store.ts'
import type { MintedTokens, RefreshTokenState, TokenMinting } from './token-minting.ts'

/** What own issuers need that outlives a configuration. */
export interface IssuerServices {
  readonly issuer: {
    readonly store: IssuerStore
    readonly secrets: SecretBox
    readonly meter?: IssuerMeter | undefined
  }
  readonly audit: Pick<AuditStore, 'append'>
  readonly tokenKeys?: TokenKeys
  readonly clock: Clock
}

interface IssuersParts {
  readonly configuration: Configuration
  readonly services: IssuerServices
  readonly decide: IssuerServerParts['decide']
  readonly present: IssuerServerParts['present']
  readonly use: IssuerServerParts['use']
}

/** The own issuers of a configuration. Modules may refer to it before it is started. */
export class Issuers implements ServiceTokens {
  readonly #parts: IssuersParts
  /** By every name of an issuer. */
  #servers: ReadonlyMap<string, IssuerServer> = new Map()

  constructor(parts: IssuersParts) {
    this.#parts = parts
  }

  /** Starts each issuer with its mappers; the library is loaded at the first request. */
  async start(
    host: HostFor<LookupHost & Pick<FilterHost, 'keys' | 'sessions' | 'rateLimits'>>,
    scope: Scope,
  ): Promise<void> {
    const { configuration, services, decide, present, use } = this.#parts
    const started = new Map<IssuerConfig, IssuerServer>()
    await createEach(configuration.issuers, async (config) => {
      const { tokenKeys, audit, issuer } = services
      if (tokenKeys === undefined) throw new Error(`${config.at}: an issuer needs keys, and there is no store of them`)
      const own = host(config.name, 'idp.OpenIDConnect', config.at)
      const claims = scope.own(await createAt(config.at, () => config.claims.create(own)))
      const changes: ChangeSubject[] = []
      for (const { className, create } of config.subjectFilters ?? []) {
        changes.push(await createAt(config.at, async () => create(host(config.name, className, config.at))))
      }
      const server = new IssuerServer({
        config,
        claims,
        changeSubject: async (subject) => {
          let changed = subject
          for (const change of changes) changed = await change(changed)
          return changed
        },
        audit,
        rateLimits: own.rateLimits,
        tokenKeys,
        store: issuer.store,
        box: issuer.secrets,
        keys: own.keys,
        sessions: own.sessions,
        clock: own.clock,
        log: own.log,
        decide,
        present,
        use,
        meter: issuer.meter ?? noIssuerMeter,
        level: ({ chain }) => configuration.chains.get(chain)?.level ?? Number.POSITIVE_INFINITY,
      })
      started.set(config, server)
    })
    this.#servers = new Map(
      Array.from(issuersByName(configuration.issuers)).flatMap(([name, config]) => {
        const server = started.get(config)
        return server === undefined ? [] : [[name, server]]
      }),
    )
  }

  /** Answers a request to the issuer's URL. */
  async handle(issuer: string, exchange: Exchange): Promise<GatewayResponse> {
    return this.#server(issuer).handle(exchange)
  }

  /**
   * Issues tokens for a logged-in user, as if the application had requested them; audited before they are returned.
   * Undefined if no rule of the issuer allows the user.
   */
  async mint(call: TokenMinting): Promise<MintedTokens | undefined> {
    return this.#server(call.issuer).mint(call)
  }

  /** A session for tokens that do not end with the browser's. The caller starts it, before the tokens are used. */
  companion(issuer: string): CompanionSession {
    const { application } = this.#server(issuer)
    const { cookies } = this.#parts.configuration.applications.find(({ name }) => name === application) ?? {}
    return { id: newId(), application, idleSeconds: cookies?.idleSeconds ?? 0 }
  }

  async refreshState(issuer: string, refreshToken: string): Promise<RefreshTokenState> {
    return this.#server(issuer).refreshState(refreshToken)
  }

  async serviceToken({ issuer, subject, audience, host }: ServiceTokenCall) {
    const { configuration, services } = this.#parts
    const config = configuration.issuers.find(({ name }) => name === issuer)
    if (config === undefined || services.tokenKeys === undefined) {
      throw new GatewayError('INTERNAL', `there is no identity provider "${issuer}"`)
    }
    const now = Math.floor(services.clock().getTime() / 1000)
    const claims = new Map<string, JsonValue>([
      ['iss', host === undefined ? config.keys.issuer : `https://${host}${config.mount}`],
      ['sub', subject],
      ['aud', audience],
      ['iat', now],
      ['nbf', now],
      ['exp', now + serviceTokenSeconds],
      ['jti', newId()],
    ])
    const token = await signedToken(claims, await services.tokenKeys.active(config.keys.endpoint))
    return { token, expires: new Date((now + serviceTokenSeconds) * 1000) }
  }

  #server(name: string): IssuerServer {
    const server = this.#servers.get(name)
    if (server === undefined) throw new GatewayError('INTERNAL', `there is no identity provider "${name}"`)
    return server
  }
}
