import { decodeJwt } from 'jose/jwt/decode'
import { Dn } from '#identity/dn.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import { GatewayError } from '#kernel/errors.ts'
import { secretHash } from '#kernel/ids.ts'
import type { Issues } from '#kernel/issues.ts'
import { bearerRefusals, readBearer } from '#protocols/jwt/bearer.ts'
import { longestToken, otherAudience } from '#protocols/jwt/token-verifier.ts'
import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import { type AuthMechanism, type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import {
  linkedForMillis,
  linkParameters,
  linkSubject,
  mockName,
  parseSubjectLink,
  type SubjectLink,
} from '#sdk/login/linked-subject.ts'
import { list, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { serviceAccountOf } from '#sdk/target/service-account.ts'
import { reviewsTokens } from '#sdk/target/token-review.ts'

const parameters = {
  ...linkParameters,
  uidAttr: text({ about: 'The attribute, of those above, that identifies the caller.', fallback: 'sub' }),
  k8sTarget: text({
    about: 'The [Kubernetes target](../targets/targets.Kubernetes.md) whose API server reviews the tokens.',
    required: true,
    reference: 'target',
  }),
  audience: list({
    about:
      'The audiences of this service; the token must be for one of them. Without it, any token for the API server is accepted.',
    requirement: 'no, but warned about',
  }),
  realm: text({ about: 'The realm named in `WWW-Authenticate`.', fallback: 'kubernetes' }),
  scope: text({ about: 'The scope named in `WWW-Authenticate`.' }),
}

type Config = ReturnType<typeof parse>

/** A Kubernetes service-account token, reviewed by its cluster's API server. */
export default defineAuthMechanism({
  className: 'auth.OAuth2K8sServiceAccount',
  aliases: ['com.tremolosecurity.proxy.auth.OAuth2K8sServiceAccount'],
  parameters,
  parse,
  callers: () => 'programs',
  create: createMechanism,
})

function parse(params: Params, issues: Issues, context: ParseContext) {
  const given = readParameters(parameters, params, issues, context)
  if (given.audience.length === 0) {
    issues.warning(
      params.pathOf('audience'),
      'without "audience", any token for the API server is accepted, not only those made for this service',
    )
  }
  return { ...given, link: parseSubjectLink(given, params, issues) }
}

/** How long, and of how many tokens, a cluster's positive answer is remembered. */
const reviewMillis = 10_000
const rememberedTokens = 10_000
/** How many different tokens are reviewed at once. */
const mostReviews = 100

type Answer = { readonly outcome: AuthOutcome; readonly root: string }

function createMechanism(config: Config, host: AuthHost): AuthMechanism {
  const { audience: audiences, k8sTarget, link } = config
  const remembered = new BoundedCache<Answer>(rememberedTokens, host.clock)
  const reviewing = new Map<string, Promise<AuthOutcome>>()
  const refusals = bearerRefusals(config.realm, config.scope)
  const refuse = (reason: string) => refusals.badToken(reason, 'The token was not accepted')

  async function review(token: string, hash: string, root: string): Promise<AuthOutcome> {
    const expires = expiryOf(token)
    const now = host.clock().getTime()
    if (expires === undefined) return refuse('the token is not a service-account token')
    if (expires <= now) return refuse('the token is expired')
    const target = host.targets.get(k8sTarget)
    if (!reviewsTokens(target)) throw new GatewayError('INTERNAL', `target "${k8sTarget}" cannot review tokens`)
    const account = serviceAccountOf(await target.reviewToken(token, audiences), audiences)
    if (account.kind === 'refused') {
      const isOther = account.otherAudience === true || isForOthers(token, audiences)
      return isOther ? refusals.badToken(account.reason, otherAudience(audiences)) : refuse(account.reason)
    }
    const linked = await linkSubject(account.attributes, link, root, host)
    if (linked.kind === 'refused') return refuse(linked.reason)
    const username = account.attributes.first('username') ?? ''
    const otherNames = linked.found ? [] : otherMockNames(root, link, username)
    const outcome: AuthOutcome = { kind: 'authenticated', subject: { ...linked.subject, otherNames } }
    const keep = link.lookup === undefined ? reviewMillis : linkedForMillis
    remembered.set(hash, { outcome, root }, new Date(Math.min(expires, now + keep)))
    return outcome
  }

  /** Callers with the same token share one review, so none of them may end it. */
  function sharedReview(token: string, hash: string, root: string): Promise<AuthOutcome> {
    const key = `${hash} ${root}`
    const running = reviewing.get(key)
    if (running !== undefined) return running
    if (reviewing.size >= mostReviews) {
      throw new GatewayError('TARGET_UNREACHABLE', `more than ${mostReviews} token reviews at once`, { retryAfter: 1 })
    }
    const started = review(token, hash, root).finally(() => reviewing.delete(key))
    reviewing.set(key, started)
    return started
  }

  return {
    async begin({ request, root }) {
      const bearer = readBearer(request.headers)
      if (bearer.kind === 'none') return refusals.noToken
      if (bearer.kind === 'malformed') return refusals.badHeader(bearer.reason)
      if (bearer.token.length > longestToken) return refuse('the token is too long')
      const hash = secretHash(bearer.token)
      const known = remembered.get(hash)
      if (known?.root === root) return known.outcome
      return sharedReview(bearer.token, hash, root)
    },
  }
}

/** Rules may name the mock entry by `sub` or by `username`, which have the same value. */
function otherMockNames(root: string, link: SubjectLink, username: string): Dn[] {
  const base = Dn.parse(root)
  return ['sub', 'username']
    .filter((type) => type !== link.uidAttr.toLowerCase())
    .map((type) => mockName(base, link, type, username))
}

/** Whether the token, which is not verified, names none of the audiences. It decides only the text of a refusal. */
function isForOthers(token: string, audiences: readonly string[]): boolean {
  const named = [decodeJwt(token).aud ?? []].flat()
  return audiences.length > 0 && named.length > 0 && !named.some((audience) => audiences.includes(audience))
}

/**
 * When the token says it expires, in milliseconds. It is not verified, and serves only to avoid calls to the cluster
 * and to forget the answer in time. Undefined if it isn't a JWT. Old tokens of a Secret never expire.
 */
function expiryOf(token: string): number | undefined {
  try {
    const { exp } = decodeJwt(token)
    return exp === undefined ? Number.POSITIVE_INFINITY : exp * 1000
  } catch {
    return undefined
  }
}
