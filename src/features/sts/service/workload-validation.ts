import type { TokenEndpoint } from '#config/configuration/token-endpoint.ts'
import { Attributes } from '#identity/attributes.ts'
import { type Awaitable, andThen } from '#kernel/awaitable.ts'
import type { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { secretHash } from '#kernel/ids.ts'
import { withoutTokens } from '#kernel/text/redaction.ts'
import type { AccountTokenVerdict, TokenReview, VerifiedAccountToken } from '#protocols/kubernetes/cluster.ts'
import { longestSubjectToken, oauthRefusal } from '#protocols/sts/token-exchange.ts'
import { serviceAccountOf, workloadAttributes } from '#sdk/target/service-account.ts'
import type { Target } from '#sdk/target/target.ts'
import { verifiesAccountTokens } from '#sdk/target/token-review.ts'
import { type ApiServerBreakers, isUnreachable } from './api-server-breaker.ts'
import { ReviewCache } from './review-cache.ts'
import type { Workload } from './workload.ts'

interface ValidationParts {
  readonly clock: Clock
  /** The Kubernetes target of that name. */
  target(name: string): Target
  /** When each cluster last answered about a token, by name, in milliseconds. Outlives a configuration. */
  readonly lastAnswers: Map<string, number>
  /** Pods, and tokens without one, that an API server no longer knows: they stay refused while it is unavailable. */
  readonly refused: BoundedCache<true>
  readonly breakers: ApiServerBreakers
}

type Policy = Pick<
  TokenEndpoint,
  'clusters' | 'incomingAudience' | 'acceptApiServerAudience' | 'acceptTokensWithoutPod' | 'offlineSeconds'
>

interface Verified {
  readonly cluster: string
  readonly token: VerifiedAccountToken
}

type RefusedToken = Extract<AccountTokenVerdict, { kind: 'refused' }>

/** Not this cluster's token; another cluster may know it. */
class Foreign extends Error {
  readonly verdict: RefusedToken

  constructor(verdict: RefusedToken) {
    super(verdict.reason)
    this.verdict = verdict
  }
}

/** What is known of a token before the API server is asked. */
export type Claimant = Pick<Workload, 'source' | 'username' | 'podUid'> & { readonly podName?: string | undefined }

/** Cached keys are found faster; the keys of an unavailable cluster may take seconds to fail. */
const patienceMillis = 250
/** The minimum time for which a refusal of the API server counts while it is unavailable. */
const refusedMillis = 86_400_000
const compactJwt = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/
const extraNames = ['credential-id', 'node-name', 'node-uid', 'pod-name', 'pod-uid'] as const

/**
 * Identifies the workload of a token, first by its signature and then by the API server's review. Both are cached
 * for at most ten seconds, so that deleting a pod ends its tokens.
 */
export class WorkloadValidation {
  readonly #parts: ValidationParts
  readonly #verdicts: ReviewCache<Verified | RefusedToken>
  /** By cluster: one that does not answer takes no capacity from another. */
  readonly #reviews = new Map<string, ReviewCache<TokenReview>>()
  /** A review belongs to one token and one cluster, and so does its result. */
  readonly #workloads = new WeakMap<TokenReview, Workload>()

  constructor(parts: ValidationParts) {
    this.#parts = parts
    // Needs no call for each token: clusters return their keys occasionally.
    this.#verdicts = new ReviewCache({ clock: parts.clock, atOnce: Number.POSITIVE_INFINITY })
  }

  /**
   * Throws or rejects with `invalid_grant` for a token that is not accepted, and TARGET_UNREACHABLE if that can't be
   * decided. `admit` gets the claimed identity before the API server is asked, and may throw or reject.
   */
  workload(token: string, policy: Policy, admit: (claimant: Claimant) => Awaitable<void>): Awaitable<Workload> {
    if (token.length > longestSubjectToken) throw refusal('the subject token is too long')
    const hash = secretHash(token)
    const key = `${hash} ${policy.clusters.join(' ')}`
    const known = this.#verdicts.known(key)
    if (known !== undefined) return this.#reviewed(token, hash, known, policy, admit)
    if (!compactJwt.test(token)) throw refusal('the subject token is not a JWT')
    return this.#verdicts
      .ask(
        key,
        () => this.#firstToVerify(token, policy.clusters),
        (answer) => ('cluster' in answer ? answer.token.expires : undefined),
      )
      .then((verdict) => this.#reviewed(token, hash, verdict, policy, admit))
  }

  #reviewed(
    token: string,
    hash: string,
    verdict: Verified | RefusedToken,
    policy: Policy,
    admit: (claimant: Claimant) => Awaitable<void>,
  ): Awaitable<Workload> {
    if (!('cluster' in verdict)) throw verdict.expired === true ? expired() : refusal(verdict.reason)
    const { cluster, token: claims } = verdict
    if (claims.expires <= this.#parts.clock()) throw expired()
    const audiences = askedAudiences(claims, policy)
    const podUid = claims.extras.get('pod-uid')
    const podName = claims.extras.get('pod-name')
    return andThen(admit({ source: cluster, username: claims.username, podName, podUid }), () => {
      if (!policy.acceptTokensWithoutPod && (podUid === undefined || podName === undefined)) {
        throw refusal('the subject token is not bound to a pod')
      }
      const key = JSON.stringify([hash, cluster, audiences])
      const known = this.#reviewsOf(cluster).known(key)
      if (known !== undefined) return this.#workloadOf(known, cluster, audiences, claims)
      return this.#review(token, key, cluster, audiences, claims, policy).then((review) => {
        if (review !== 'away') return this.#workloadOf(review, cluster, audiences, claims)
        requireConfirmed(claims, audiences)
        return workloadOf(cluster, claims, offlineAttributes(claims), true)
      })
    })
  }

  #workloadOf(
    review: TokenReview,
    cluster: string,
    audiences: readonly string[],
    claims: VerifiedAccountToken,
  ): Workload {
    const known = this.#workloads.get(review)
    if (known !== undefined) return known
    const workload = workloadOf(cluster, claims, reviewedAttributes(review, audiences, claims), false)
    this.#workloads.set(review, workload)
    return workload
  }

  /**
   * Clusters may share the name of their issuer, as many do, so the signature decides. They are asked in order, and
   * a slow one does not delay the next.
   */
  async #firstToVerify(token: string, clusters: readonly string[]): Promise<Verified | RefusedToken> {
    const asked: Promise<Verified | RefusedToken>[] = []
    for (const cluster of clusters) {
      const verdict = this.#decisive(token, cluster)
      asked.push(verdict)
      const early = asked.length < clusters.length ? await soonOf(verdict, Promise.any(asked)) : undefined
      if (early !== undefined) return early
    }
    try {
      return await Promise.any(asked)
    } catch (thrown) {
      const reasons: unknown[] = thrown instanceof AggregateError ? thrown.errors : [thrown]
      const trouble = reasons.find((reason) => !(reason instanceof Foreign))
      if (trouble !== undefined) throw trouble
      const [first] = reasons
      return first instanceof Foreign
        ? first.verdict
        : { kind: 'refused', foreign: true, reason: 'there is no cluster' }
    }
  }

  /** Rejects with Foreign if another cluster may know more. */
  async #decisive(token: string, cluster: string): Promise<Verified | RefusedToken> {
    const verdict = await this.#verdictOf(token, cluster)
    if ('cluster' in verdict || !verdict.foreign) return verdict
    throw new Foreign(verdict)
  }

  async #verdictOf(token: string, cluster: string): Promise<Verified | RefusedToken> {
    const target = this.#parts.target(cluster)
    if (!verifiesAccountTokens(target)) throw new GatewayError('INTERNAL', `target "${cluster}" verifies no tokens`)
    const verify = () => target.verifyAccountToken(token)
    const breaker = target.hasKeys?.() === false ? this.#parts.breakers.of(cluster) : undefined
    const verdict = await (breaker?.through(() => breaker.call(verify)) ?? verify())
    return verdict.kind === 'verified' ? { cluster, token: verdict.token } : verdict
  }

  #reviewsOf(cluster: string): ReviewCache<TokenReview> {
    const known = this.#reviews.get(cluster) ?? new ReviewCache<TokenReview>({ clock: this.#parts.clock })
    this.#reviews.set(cluster, known)
    return known
  }

  async #review(
    token: string,
    key: string,
    cluster: string,
    audiences: readonly string[],
    claims: VerifiedAccountToken,
    { offlineSeconds }: Policy,
  ): Promise<TokenReview | 'away'> {
    const { lastAnswers, refused, clock } = this.#parts
    const breaker = this.#parts.breakers.of(cluster)
    const reviews = this.#reviewsOf(cluster)
    const podUid = claims.extras.get('pod-uid')
    // A pod may have other tokens. One for the API server itself can be refused for its audience alone.
    const subject = podUid === undefined || audiences.length === 0 ? key : JSON.stringify([cluster, podUid])
    const question = async (): Promise<TokenReview> => {
      const target = this.#parts.target(cluster)
      if (!verifiesAccountTokens(target)) throw new GatewayError('INTERNAL', `target "${cluster}" reviews no tokens`)
      const review = await target.reviewToken(token, audiences)
      lastAnswers.set(cluster, clock().getTime())
      if (isPositive(review)) refused.delete(subject)
      else refused.set(subject, true, new Date(Math.max(claims.expires.getTime(), clock().getTime() + refusedMillis)))
      return review
    }
    try {
      return await breaker.through((isProbe) =>
        reviews.ask(
          key,
          () => breaker.call(question, { unlessOpen: !isProbe }),
          (review) => (isPositive(review) ? claims.expires : undefined),
        ),
      )
    } catch (error) {
      const silent = clock().getTime() - (lastAnswers.get(cluster) ?? Number.NEGATIVE_INFINITY)
      const mayBeAway = offlineSeconds > 0 && silent <= offlineSeconds * 1000
      if (!isUnreachable(error) || !mayBeAway) throw error
      if (refused.get(subject) === true) throw refusal('the API server refused the subject token when it last answered')
      return 'away'
    }
  }
}

const isPositive = ({ authenticated, error }: TokenReview): boolean => authenticated && error === undefined

/** The first result that arrives soon; undefined if none does, or the first one to settle has none. */
async function soonOf<T>(...promises: readonly Promise<T>[]): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, patienceMillis, undefined)
  try {
    return await Promise.race([...promises.map((promise) => promise.catch(() => undefined)), late])
  } finally {
    clearTimeout(timer)
  }
}

export function workloadOf(
  source: string,
  { username, extras, expires }: VerifiedAccountToken,
  attributes: Attributes,
  offline: boolean,
): Workload {
  const namespace = attributes.first('namespace') ?? ''
  const account = attributes.first('saname') ?? ''
  return {
    source,
    namespace,
    account,
    username,
    podUid: extras.get('pod-uid'),
    attributes: workloadAttributes(source, namespace, account, attributes.claimed()),
    expires,
    offline,
  }
}

/** The audiences that the API server reviews; none means its own. */
function askedAudiences(claims: VerifiedAccountToken, policy: Policy): readonly string[] {
  const own = claims.audiences.includes(policy.incomingAudience)
  if (policy.acceptApiServerAudience) return own ? [policy.incomingAudience] : []
  if (!own) {
    const wanted = `The subject token is for another audience; wanted: ${policy.incomingAudience}.`
    throw refusal('the subject token is for another audience', wanted)
  }
  if (claims.audiences.includes(claims.issuer)) {
    throw refusal(
      'the subject token is good for the API server too',
      'The subject token is for another audience as well.',
    )
  }
  return [policy.incomingAudience]
}

/** While the API server's own audiences can't be queried, its issuer is the only one, as by default. */
function requireConfirmed(claims: VerifiedAccountToken, asked: readonly string[]): void {
  if (asked.length > 0 || claims.audiences.includes(claims.issuer)) return
  throw refusal('the subject token is for another audience', 'The subject token is for another audience.')
}

/** The signature and the API server must agree on the pod and the account. */
function reviewedAttributes(
  review: TokenReview,
  audiences: readonly string[],
  claims: VerifiedAccountToken,
): Attributes {
  const account = serviceAccountOf(review, audiences)
  if (account.kind === 'refused') throw refusal(account.reason)
  const { attributes } = account
  const differs = (name: string, said: string | undefined): boolean => attributes.first(name) !== said
  if (review.username !== claims.username) throw refusal('token and review name different accounts')
  if (differs('pod-uid', claims.extras.get('pod-uid'))) throw refusal('token and review name different pods')
  return attributes
}

export function offlineAttributes({ username, uid, extras }: VerifiedAccountToken): Attributes {
  const [, , namespace = '', account = ''] = username.split(':')
  const attributes = Attributes.from({
    sub: [username],
    username: [username],
    uid: uid === '' ? [] : [uid],
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    namespace: [namespace],
    saname: [account],
  })
  for (const name of extraNames) {
    const value = extras.get(name)
    attributes.set(name, value === undefined ? [] : [value])
  }
  return attributes
}

const expired = (): GatewayError => refusal('the subject token is expired', 'The subject token is expired.')

/** The detail may quote the API server, and so the token; it is for the log and the audit. */
export const refusal = (detail: string, description = 'The subject token is not accepted.'): GatewayError =>
  oauthRefusal('invalid_grant', description, withoutTokens(detail))
