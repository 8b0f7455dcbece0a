import { decodeJwt } from 'jose/jwt/decode'
import type { SubjectIssuer, TokenEndpoint } from '#config/configuration/token-endpoint.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { DiscoveredKeySet, type DiscoveryTimes, fetchJsonTrusting } from '#protocols/jwt/discovered-key-set.ts'
import type { IssuerHealth } from '#protocols/jwt/issuer-health.ts'
import type { KeySet } from '#protocols/jwt/keys.ts'
import { createTokenVerifier, TokenRejected, type VerifiedToken } from '#protocols/jwt/token-verifier.ts'
import { verifyServiceAccountToken } from '#protocols/kubernetes/service-account-token.ts'
import { longestSubjectToken } from '#protocols/sts/token-exchange.ts'
import type { Workload } from './workload.ts'
import { type Claimant, offlineAttributes, refusal, workloadOf } from './workload-validation.ts'

interface IssuerSubjectParts {
  readonly clock: Clock
  readonly log: Logger
  /** How long keys are cached; the default if absent. */
  readonly times?: DiscoveryTimes
  readonly watchIssuer?: IssuerHealth['watch'] | undefined
}

export type Admit = (claimant: Claimant) => Awaitable<void>
type Policy = Pick<TokenEndpoint, 'subjectIssuers' | 'clusters' | 'acceptTokensWithoutPod'>

const longestSubject = 1024

/** No key of the issuer signed the token, although the token names it: another issuer of that name may know it. */
class Foreign extends Error {}

/**
 * Identifies the subject of a token by the keys of an OpenID Connect issuer. Nothing checks whether the subject
 * still exists, so a token is valid until it expires. It can be exchanged several times: its `jti` is not stored.
 */
export class IssuerSubjects {
  readonly #parts: IssuerSubjectParts
  /** By name, created for the first token. */
  readonly #keys = new Map<string, KeySet>()

  constructor(parts: IssuerSubjectParts) {
    this.#parts = parts
  }

  /**
   * Undefined for a token that a cluster of the endpoint may know. Throws the refusal of a token that is not
   * accepted, and TARGET_UNREACHABLE if the issuer's keys are not available. `admit` is called once the signature
   * is verified, and may throw.
   */
  async workload(token: string, policy: Policy, admit: Admit): Promise<Workload | undefined> {
    const { subjectIssuers, clusters, acceptTokensWithoutPod } = policy
    if (subjectIssuers.length === 0) return undefined
    if (token.length > longestSubjectToken) throw refusal('the subject token is too long')
    const iss = issuerOf(token)
    let unanswered: GatewayError | undefined
    let foreign: Foreign | undefined
    let refused: GatewayError | undefined
    for (const issuer of subjectIssuers) {
      if (issuer.issuer !== iss) continue
      try {
        return issuer.kubernetes
          ? await this.#account(token, issuer, acceptTokensWithoutPod, admit)
          : await this.#subject(token, issuer, admit)
      } catch (error) {
        if (error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE') unanswered ??= error
        else if (error instanceof Foreign) foreign ??= error
        // The same issuer may be listed again, for another audience.
        else if (error instanceof GatewayError && error.keyword === 'invalid_grant') refused ??= error
        else throw error
      }
    }
    if (unanswered !== undefined) throw unanswered
    if (refused !== undefined) throw refused
    if (clusters.length > 0) return undefined
    if (foreign !== undefined) throw refusal(foreign.message)
    throw refusal('the subject token is of no issuer of the endpoint', 'The subject token is from another issuer.')
  }

  async #subject(token: string, issuer: SubjectIssuer, admit: Admit): Promise<Workload> {
    const rules = {
      issuer: issuer.issuer,
      audiences: [issuer.audience],
      allowNoIat: false,
      notBeforeMinutes: 0,
      clockTolerance: issuer.clockToleranceSeconds,
    }
    let verified: VerifiedToken
    try {
      verified = await createTokenVerifier(rules, this.#keysOf(issuer), this.#parts.clock).verify(token)
    } catch (error) {
      if (!(error instanceof TokenRejected)) throw error
      if (error.foreign) throw new Foreign(error.message, { cause: error })
      throw refusal(error.message, `${error.description.replace(/^The token/, 'The subject token')}.`)
    }
    const { claims, expires } = verified
    const { sub } = claims
    if (typeof sub !== 'string' || sub === '' || sub.length > longestSubject) {
      throw refusal('the subject token has no usable "sub"', 'The subject token has no usable sub.')
    }
    const username = `${issuer.name}:${sub}`
    await admit({ source: issuer.name, username, podUid: undefined })
    this.#requireLife(expires)
    return {
      source: issuer.name,
      namespace: undefined,
      account: undefined,
      username,
      podUid: undefined,
      attributes: issuerAttributes(issuer, claims),
      expires,
      offline: false,
      byIssuer: true,
    }
  }

  async #account(token: string, issuer: SubjectIssuer, withoutPod: boolean, admit: Admit): Promise<Workload> {
    const keys = this.#keysOf(issuer)
    const named = { find: keys.find.bind(keys), fresh: keys.fresh.bind(keys), issuer: issuer.issuer }
    const verdict = await verifyServiceAccountToken(token, named, this.#parts.clock)
    if (verdict.kind === 'refused') {
      if (verdict.foreign) throw new Foreign(verdict.reason)
      throw refusal(verdict.reason)
    }
    const { token: claims } = verdict
    if (!claims.audiences.includes(issuer.audience)) {
      throw refusal('the subject token is for another audience', 'The subject token is for another audience.')
    }
    if (claims.audiences.includes(claims.issuer)) {
      throw refusal(
        'the subject token is good for the API server too',
        'The subject token is for another audience as well.',
      )
    }
    const podUid = claims.extras.get('pod-uid')
    await admit({ source: issuer.name, username: claims.username, podUid })
    this.#requireLife(claims.expires)
    if (!withoutPod && (podUid === undefined || !claims.extras.has('pod-name'))) {
      throw refusal('the subject token is not bound to a pod')
    }
    return { ...workloadOf(issuer.name, claims, offlineAttributes(claims), false), byIssuer: true }
  }

  /** The tolerance is for clocks that differ; a token issued for an expired one would have no lifetime left. */
  #requireLife(expires: Date): void {
    if (expires <= this.#parts.clock()) throw refusal('the subject token is expired', 'The subject token is expired.')
  }

  /** With the pinned algorithms only: a key for another one is not found. */
  #keysOf(issuer: SubjectIssuer): KeySet {
    const known = this.#keys.get(issuer.name)
    if (known !== undefined) return known
    const { clock, log, times } = this.#parts
    const all = new DiscoveredKeySet({
      issuer: issuer.issuer,
      jwksUri: issuer.jwksUri,
      clock,
      log,
      loaded: this.#parts.watchIssuer?.(issuer.issuer),
      times,
      fetch: issuer.authorities === undefined ? undefined : fetchJsonTrusting(issuer.authorities),
    })
    const pinned: KeySet = {
      find: async (algorithm, kid) =>
        issuer.algorithms.includes(algorithm) ? await all.find(algorithm, kid) : undefined,
      fresh: () => all.fresh(),
    }
    this.#keys.set(issuer.name, pinned)
    return pinned
  }
}

/** The token's own, unverified claim about its issuer: it only decides whose keys are tried. */
function issuerOf(token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch {
    throw refusal('the subject token is not a JWT')
  }
}

/** The attributes of a subject of an issuer: its name, `sub`, and the claims that the configuration lists. */
export function issuerAttributes(
  { name, claims: listed }: Pick<SubjectIssuer, 'name' | 'claims'>,
  claims: Readonly<Record<string, unknown>>,
): Attributes {
  const attributes = new Attributes()
  for (const claim of ['sub', ...listed]) {
    const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined
    attributes.setClaim(claim, (Array.isArray(value) ? value : [value]).flatMap(claimText))
  }
  attributes.setClaim('issuer', [name])
  attributes.setClaim('token_sub', [`${name}:${attributes.first('sub') ?? ''}`])
  return attributes
}

function claimText(value: unknown): string[] {
  if (value === null || value === undefined) return []
  return [typeof value === 'string' ? value : JSON.stringify(value)]
}
