import type { AuditStore } from '#audit/store/audit-store.ts'
import type { StsEndpointConfig } from '#config/configuration/configuration.ts'
import { createAt, createEach } from '#config/configuration/create-at.ts'
import type { EndpointName, TokenEndpoint } from '#config/configuration/token-endpoint.ts'
import type { IssuerDocuments, TokenKeys } from '#config/configuration/token-keys.ts'
import { consumerLimits } from '#config/kinds/sts-preset.ts'
import { type GrantSource, type KnownGrants, TokenGrants } from '#features/sts/grants/token-grants.ts'
import type { Subject } from '#identity/subject.ts'
import { type Awaitable, andThen } from '#kernel/awaitable.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { Logger } from '#kernel/logger.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import type { Scope } from '#kernel/scope.ts'
import type { IssuerHealth } from '#protocols/jwt/issuer-health.ts'
import { signedToken } from '#protocols/sts/signed-token.ts'
import { oauthRefusal } from '#protocols/sts/token-exchange.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { HostFor } from '#sdk/host/host.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'
import type { Rule, RuleDecision } from '#sdk/rule/rule.ts'
import { isCluster } from '#sdk/target/kubernetes-cluster.ts'
import type { LookupHost, Target } from '#sdk/target/target.ts'
import { ApiServerBreakers, type BreakerParts } from './api-server-breaker.ts'
import { type Admit, IssuerSubjects } from './issuer-subjects.ts'
import { SharedAudit } from './shared-audit.ts'
import type { IssuedToken, TokenCall } from './token-call.ts'
import { type TokenContent, tokenContent, workloadSource } from './token-content.ts'
import { type Workload, workloadSubject } from './workload.ts'
import { WorkloadRates } from './workload-rates.ts'
import { type Claimant, WorkloadValidation } from './workload-validation.ts'

/** What outlives a configuration. */
interface IssuingState {
  readonly rates: WorkloadRates
  readonly lastAnswers: Map<string, number>
  readonly refused: BoundedCache<true>
  readonly breakers: ApiServerBreakers
  readonly grants: KnownGrants
}

const rememberedRefusals = 20_000

export const createIssuingState = (
  clock: Clock,
  rateLimits: RateLimits,
  parts: Omit<BreakerParts, 'clock'> = {},
): IssuingState => ({
  lastAnswers: new Map(),
  refused: new BoundedCache(rememberedRefusals, clock),
  rates: new WorkloadRates(clock, rateLimits),
  breakers: new ApiServerBreakers({ clock, ...parts }),
  grants: new Set(),
})

/** The outcomes of an endpoint's exchanges, for metrics. */
type ExchangeOutcome = 'issued' | 'refused' | 'failed'

interface IssuingParts {
  readonly clock: Clock
  readonly log: Logger
  readonly audit: Pick<AuditStore, 'append'>
  readonly rateLimits: RateLimits
  readonly keys: TokenKeys
  readonly state: IssuingState
  readonly endpoints: ReadonlyMap<string, IssuingEndpoint>
  target(name: string): Target
  decide(subject: Subject, rules: readonly Rule[]): Awaitable<RuleDecision>
  /** `reason` is one of a few words; empty if a token was issued. */
  count?(endpoint: string, outcome: ExchangeOutcome, reason: string): void
  readonly watchIssuer?: IssuerHealth['watch'] | undefined
  /** Absent if no endpoint honors grants. */
  readonly grants?: GrantSource | undefined
}

interface IssuingEndpoint {
  readonly endpoint: TokenEndpoint
  readonly rules: readonly Rule[]
  readonly claims: Mapping
}

/** Sidecars return after two thirds of the lifetime, and have the last third for retries. */
const refreshShare = 2 / 3

/** Spreads the retries of sidecars. They wait ten seconds for a response. */
const busy = (reason: string): GatewayError =>
  new GatewayError('TOO_MANY_REQUESTS', `too many workloads ask at once: ${reason}`, {
    retryAfter: 1 + Math.floor(Math.random() * 5),
    keyword: 'slow_down',
    publicText: 'Too many workloads request tokens at once.',
  })

/** The token endpoints of the configuration. */
export class TokenIssuing {
  readonly #parts: IssuingParts
  readonly #validation: WorkloadValidation
  readonly #issuerSubjects: IssuerSubjects
  readonly #commits: SharedAudit
  /**
   * By endpoint, so that a cluster that does not answer delays its own workloads only. Serves a burst in order; more
   * concurrency would finish no sooner and use memory.
   */
  readonly #queue = new KeyedQueue({ width: 64, maxPerKey: 10_064, waitMillis: 8_000, refuse: busy })
  readonly #audit: DecisionAudit

  constructor(parts: IssuingParts) {
    this.#parts = parts
    this.#validation = new WorkloadValidation({ ...parts, ...parts.state })
    this.#issuerSubjects = new IssuerSubjects(parts)
    this.#commits = new SharedAudit(parts.audit)
    this.#audit = new DecisionAudit({ ...parts, audit: this.#commits })
  }

  /** The name of the endpoint whose tokens have this issuer and audience; undefined if there is none. */
  endpointOf({ issuer, audience }: EndpointName): string | undefined {
    for (const [name, { endpoint }] of this.#parts.endpoints) {
      if (endpoint.issuer === issuer && endpoint.audience === audience) return name
    }
    return undefined
  }

  /** Throws NOT_FOUND for an unknown endpoint. */
  async documents(endpoint: string): Promise<IssuerDocuments> {
    this.#find(endpoint)
    return this.#parts.keys.documents(endpoint)
  }

  /** Whether the key was revoked: its tokens must be replaced. Throws NOT_FOUND for an unknown endpoint. */
  async isRevoked(endpoint: string, kid: string): Promise<boolean> {
    this.#find(endpoint)
    return this.#parts.keys.isRevoked(endpoint, kid)
  }

  /** The workload of a token, as the endpoint sees it. Counts and audits nothing; throws as `exchange` does. */
  async validate(endpoint: string, token: string): Promise<Workload> {
    return this.#workload(token, this.#find(endpoint).endpoint, () => {})
  }

  /** By the issuer in the token, if the endpoint has it; else by the clusters. */
  #workload(token: string, endpoint: TokenEndpoint, admit: Admit): Awaitable<Workload> {
    if (endpoint.subjectIssuers.length === 0) return this.#validation.workload(token, endpoint, admit)
    return this.#issuerSubjects
      .workload(token, endpoint, admit)
      .then((ofIssuer) => ofIssuer ?? this.#validation.workload(token, endpoint, admit))
  }

  /** The claims that a token for this workload would have, whether or not a rule allows it. Signs nothing. */
  async preview(endpoint: string, workload: Workload): Promise<TokenContent> {
    return this.#content(this.#find(endpoint), workload, newId())
  }

  /**
   * Decides, signs and audits the decision; nothing is issued that could not be audited. No token is read before its
   * turn; a call that gets no turn is counted, and not audited. Throws a GatewayError whose keyword is that of
   * `oauthRefusal`: `invalid_grant` for a credential that is not accepted, ACCESS_DENIED with `access_denied` if no
   * rule allows the workload, TOO_MANY_REQUESTS and TARGET_UNREACHABLE with Retry-After.
   */
  async exchange(call: TokenCall): Promise<IssuedToken> {
    const found = this.#find(call.endpoint)
    const leave = await this.#queue.enter(call.endpoint).catch((error: unknown) => {
      this.#parts.count?.(call.endpoint, 'refused', 'busy')
      throw error
    })
    let who: Claimant | undefined
    try {
      const issued = await this.#issue(call, found, (claimant) => {
        who = claimant
        call.identified?.(claimant)
      })
      this.#parts.count?.(call.endpoint, 'issued', '')
      return issued
    } catch (thrown) {
      const error = asGatewayError(thrown)
      this.#parts.count?.(call.endpoint, error.isRefusal ? 'refused' : 'failed', reasonOf(error))
      await this.#audit.refused(call, who, error)
      throw error
    } finally {
      leave()
    }
  }

  async #issue(call: TokenCall, found: IssuingEndpoint, seen: (who: Claimant) => void): Promise<IssuedToken> {
    const { endpoint } = found
    const token = await call.subjectToken(endpoint.audience)
    const validated = this.#workload(token, endpoint, (claimant) => {
      seen(claimant)
      return this.#admit(endpoint, claimant)
    })
    const workload = validated instanceof Promise ? await validated : validated
    const allowed = await this.#allowance(found, workload)
    // A request has at most one token, so one id names both.
    const jti = call.requestId
    const content = await this.#content(found, workload, jti)
    const key = await this.#parts.keys.active(endpoint.name)
    return this.#commits.during(async () => {
      // A grant may have been deleted meanwhile.
      if ('grant' in allowed) this.#requireGrant(endpoint, workload)
      const signed = await signedToken(content.claims, key)
      if (signed.length > consumerLimits(endpoint.preset).mostTokenBytes) {
        throw oauthRefusal('invalid_target', 'The token would be longer than its consumer takes.')
      }
      await this.#audit.issued(call, workload, { jti, kid: key.kid, allowed, content })
      return {
        token: signed,
        expires: content.expires,
        expiresInSeconds: content.ttlSeconds,
        refreshAfterSeconds: Math.max(1, Math.floor(content.ttlSeconds * refreshShare)),
        workload: workload.username,
      }
    })
  }

  async #content({ endpoint, claims }: IssuingEndpoint, workload: Workload, jti: string): Promise<TokenContent> {
    const additional = await claims.apply(workloadSource(workload))
    return tokenContent(endpoint, workload, additional, jti, this.#parts.clock())
  }

  #find(name: string): IssuingEndpoint {
    const found = this.#parts.endpoints.get(name)
    if (found === undefined) throw new GatewayError('NOT_FOUND', `there is no token endpoint "${name}"`)
    return found
  }

  /** By pod or subject, since one account may have thousands of pods that start together. */
  #admit({ name, rateLimit }: TokenEndpoint, { source, username, podUid }: Claimant): Awaitable<void> {
    const key = JSON.stringify([name, source, username, podUid ?? ''])
    return andThen(this.#parts.state.rates.take(key, rateLimit), (retryAfter) => {
      if (retryAfter === undefined) return
      throw new GatewayError('TOO_MANY_REQUESTS', `${username} asks for more tokens than the endpoint's rate`, {
        retryAfter,
        keyword: 'slow_down',
        publicText: 'This workload asks for too many tokens.',
      })
    })
  }

  /** A rule that passes, or else a grant. Throws ACCESS_DENIED, or TARGET_UNREACHABLE if that isn't known. */
  async #allowance({ endpoint, rules }: IssuingEndpoint, workload: Workload): Promise<Allowance> {
    let unanswered: { readonly error: unknown } | undefined
    try {
      const decision = this.#parts.decide(workloadSubject(workload), rules)
      const { verdicts } = decision instanceof Promise ? await decision : decision
      const passed = verdicts.find((verdict) => verdict.passed)
      if (passed !== undefined) return { rule: `${passed.rule.scope} ${passed.rule.constraint}` }
    } catch (error) {
      if (endpoint.grants === undefined) throw error
      unanswered = { error }
    }
    return { grant: this.#requireGrant(endpoint, workload, unanswered) }
  }

  #requireGrant(
    { name, grants }: TokenEndpoint,
    workload: Workload,
    unanswered?: { readonly error: unknown } | undefined,
  ): string {
    const found = grants === undefined ? undefined : this.#parts.grants?.find(name, workload)
    if (found?.kind === 'granted') return found.grant
    if (unanswered !== undefined) throw unanswered.error
    if (found?.kind === 'unknown') throw new GatewayError('TARGET_UNREACHABLE', found.reason, { retryAfter: 5 })
    throw accessDenied(grants === undefined ? `no rule of "${name}"` : `no rule and no grant of "${name}"`, workload)
  }
}

/** What allowed a token, for the audit. */
type Allowance = { readonly rule: string } | { readonly grant: string }

const accessDenied = (nothing: string, { username, namespace }: Workload): GatewayError =>
  new GatewayError('ACCESS_DENIED', `${nothing} allows ${username}`, {
    keyword: 'access_denied',
    publicText:
      namespace === undefined
        ? 'No rule of this endpoint allows the subject.'
        : 'No rule of this endpoint allows the service account.',
  })

const reasonOf = ({ keyword, code }: GatewayError): string => keyword ?? code.toLowerCase()

interface AuditParts {
  readonly audit: SharedAudit
  readonly rateLimits: RateLimits
  readonly clock: Clock
  readonly log: Logger
}

type Call = Pick<TokenCall, 'endpoint' | 'requestId' | 'remoteAddress'>

/**
 * The identity of a refused caller is not proven, and anonymous callers must not fill the audit: beyond this number
 * they are only counted.
 */
const strangers = { burst: 100, perMinute: 600 }
const longestReason = 500

/**
 * One row for every decision. The details that people filter by are JSON in the row's reason. Issuances outnumber
 * everything else, so their rows are easy to store compactly: one id for row, token and request, and the reason
 * starts with what all tokens of a pod share.
 */
export class DecisionAudit {
  readonly #parts: AuditParts
  readonly #uncounted = new Map<string, number>()

  constructor(parts: AuditParts) {
    this.#parts = parts
  }

  /** Rejects if the row could not be written; then no token may be issued. */
  issued(
    call: Call,
    workload: Workload,
    issued: { readonly jti: string; readonly kid: string; readonly allowed: Allowance; readonly content: TokenContent },
  ): Promise<void> {
    const { jti, kid, allowed, content } = issued
    const recurring = {
      kid,
      ...allowed,
      sub: content.subject,
      ...(workload.namespace === undefined ? { issuer: workload.source } : { cluster: workload.source }),
      pod: workload.attributes.first('pod-name'),
      podUid: workload.podUid,
      node: workload.attributes.first('node-name'),
      review: workload.byIssuer === true ? 'keys' : workload.offline ? 'offline' : 'online',
      remote: call.remoteAddress,
    }
    const own = { ttl: content.ttlSeconds, credential: workload.attributes.first('credential-id') }
    const start = JSON.stringify(recurring).slice(0, -1)
    const reason = `${start},${JSON.stringify(own).slice(1)}`
    const row = this.#row(jti, call, workload.username, 'issue', reason)
    return this.#parts.audit.append({ ...row, value: jti, recurring: start.length })
  }

  /** Never rejects: the refusal is final even if it could not be audited, and the log has it then. */
  async refused(call: Call, who: Claimant | undefined, error: GatewayError): Promise<void> {
    const { audit, rateLimits, log } = this.#parts
    const { endpoint } = call
    let more = 0
    if (who === undefined) {
      const wait = await rateLimits.take('refused tokens of strangers', endpoint, strangers).catch(() => 1)
      more = this.#uncounted.get(endpoint) ?? 0
      if (wait !== undefined) {
        this.#uncounted.set(endpoint, more + 1)
        return
      }
      this.#uncounted.delete(endpoint)
    }
    const reason = {
      error: error.keyword ?? error.code,
      why: error.message.slice(0, longestReason),
      ...(who === undefined || who.username.startsWith('system:serviceaccount:')
        ? { cluster: who?.source }
        : { issuer: who.source }),
      podUid: who?.podUid,
      remote: call.remoteAddress,
      ...(more === 0 ? {} : { alsoRefused: more }),
    }
    try {
      await audit.append(this.#row(newId(), call, who?.username ?? '', 'refuse', JSON.stringify(reason)))
    } catch (err) {
      log.error('a refused token could not be audited', { ...call, reason, err })
    }
  }

  #row(id: string, call: Call, username: string, action: 'issue' | 'refuse', reason: string): AuditEntry {
    return {
      id,
      time: this.#parts.clock(),
      requestor: username,
      subject: username,
      workflow: { id: call.requestId, name: 'sts' },
      target: call.endpoint,
      kind: 'token',
      action,
      attribute: 'jti',
      requestId: call.requestId,
      reason,
    }
  }
}

/** What the token service needs that outlives a configuration. */
export interface TokenServices {
  readonly clock: Clock
  readonly log: Logger
  readonly audit: Pick<AuditStore, 'append'>
  readonly rateLimits: RateLimits
  readonly tokenKeys?: TokenKeys
  readonly issuing?: IssuingState
  readonly countExchange?: IssuingParts['count'] | undefined
  /** Watches grants and writes their status from the start; commands look once, on demand. */
  readonly keepsGrants?: boolean | undefined
}

interface TokenServiceParts extends Pick<IssuingParts, 'target' | 'decide' | 'watchIssuer'> {
  readonly services: TokenServices
  readonly endpoints: readonly StsEndpointConfig[]
  readonly host: HostFor<LookupHost>
  readonly scope: Scope
}

/** The token endpoints with the grants that they honor. */
export interface TokenService {
  readonly issuing: TokenIssuing
  /** Absent if no endpoint honors any. */
  readonly grants: TokenGrants | undefined
}

/** Undefined if no endpoint is configured. */
export async function createTokenService(parts: TokenServiceParts): Promise<TokenService | undefined> {
  const { services, endpoints, host, scope, target, decide } = parts
  if (endpoints.length === 0) return undefined
  if (services.tokenKeys === undefined) throw new Error('token endpoints need keys, and there is no store of them')
  const issuing = new Map<string, IssuingEndpoint>()
  await createEach(endpoints, async ({ endpoint, rules, claims, at }) => {
    const mapping = scope.own(await createAt(at, () => claims.create(host(endpoint.name, 'sts', at))))
    issuing.set(endpoint.name, { endpoint, rules, claims: mapping })
  })
  const state = services.issuing ?? createIssuingState(services.clock, services.rateLimits)
  const grants = createGrants(parts, state.grants)
  const tokens = new TokenIssuing({
    clock: services.clock,
    log: services.log,
    audit: services.audit,
    rateLimits: services.rateLimits,
    keys: services.tokenKeys,
    state,
    endpoints: issuing,
    target,
    decide,
    grants,
    watchIssuer: parts.watchIssuer,
    ...(services.countExchange === undefined ? {} : { count: services.countExchange }),
  })
  return { issuing: tokens, grants }
}

/** Undefined if no endpoint honors grants. */
function createGrants({ services, endpoints, target, scope }: TokenServiceParts, known: KnownGrants) {
  const all = endpoints.map(({ endpoint }) => endpoint)
  const names = new Set(all.flatMap(({ grants, clusters }) => (grants === undefined ? [] : clusters)))
  if (names.size === 0) return undefined
  const clusters = [...names].flatMap((name) => {
    const cluster = target(name)
    if (!isCluster(cluster) || cluster.watches === undefined) return []
    return [{ name, address: cluster.calls?.address ?? '', objects: cluster.objects, watches: cluster.watches }]
  })
  const grants = scope.own(new TokenGrants({ ...services, clusters, endpoints: all, known }))
  if (services.keepsGrants === true) grants.start()
  return grants
}
