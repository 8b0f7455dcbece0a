import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, type JWTPayload, SignJWT } from 'jose'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { TokenReview } from '#protocols/kubernetes/cluster.ts'
import { createClusterKeySet, verifyServiceAccountToken } from '#protocols/kubernetes/service-account-token.ts'
import type { Target } from '#sdk/target/target.ts'
import type { AccountTokenVerifier } from '#sdk/target/token-review.ts'

export interface AccountOptions {
  readonly namespace?: string
  readonly account?: string
  readonly audiences?: readonly string[]
  readonly seconds?: number
  /** Undefined: bound to its own pod; null: to none. */
  readonly pod?: { readonly name: string; readonly uid: string } | null
  /** Overrides of the token's claims. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
  readonly key?: KeyObject
}

/** Creating keys takes longer than most tests, so clusters take turns with a few; neighbors never share one. */
const pool: { readonly privateKey: KeyObject; readonly publicKey: KeyObject }[] = []
let made = 0

function nextPair() {
  const place = made++ % 4
  const pair = pool[place] ?? generateKeyPairSync('rsa', { modulusLength: 2048 })
  pool[place] = pair
  return pair
}

const defaultIssuer = 'https://kubernetes.default.svc.cluster.local'

/**
 * A cluster without a network: it signs tokens, publishes its keys and reviews tokens like an API server, whose own
 * audience is its issuer.
 */
export class FakeCluster {
  readonly issuer: string
  readonly reviews: { readonly token: string; readonly audiences: readonly string[] }[] = []
  /** The API server does not answer; its keys may be known already. */
  away = false
  /** Simulates a server that ignores audiences. */
  ignoresAudiences = false
  /** Simulates another answer to a review. */
  reviewed: ((review: TokenReview) => TokenReview) | undefined
  /** Every review waits for it. */
  pause: Promise<void> | undefined
  /** Every request for its keys waits for it. */
  keysPause: Promise<void> | undefined
  readonly #deleted = new Set<string>()
  readonly #keys: { readonly privateKey: KeyObject; readonly publicKey: KeyObject }
  readonly #now: () => number

  constructor(now: () => number, issuer = defaultIssuer) {
    this.#now = now
    this.issuer = issuer
    this.#keys = nextPair()
  }

  get publicKey(): KeyObject {
    return this.#keys.publicKey
  }

  async token(options: AccountOptions = {}): Promise<string> {
    const { namespace = 'shop', account = 'cart', audiences = ['gatehouse-sts'], seconds = 3600 } = options
    const pod = options.pod === undefined ? { name: `${account}-0`, uid: randomUUID() } : options.pod
    const now = Math.floor(this.#now() / 1000)
    const claims: JWTPayload = {
      iss: this.issuer,
      sub: `system:serviceaccount:${namespace}:${account}`,
      aud: [...audiences],
      iat: now,
      nbf: now,
      exp: now + seconds,
      jti: randomUUID(),
      'kubernetes.io': {
        namespace,
        serviceaccount: { name: account, uid: `uid-${namespace}-${account}` },
        ...(pod === null ? {} : { pod, node: { name: 'node-1', uid: 'node-uid-1' } }),
      },
      ...options.claims,
    }
    const kid = await calculateJwkThumbprint(await exportJWK(this.publicKey))
    return new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', kid, ...options.header })
      .sign(options.key ?? this.#keys.privateKey)
  }

  deletePod(uid: string): void {
    this.#deleted.add(uid)
  }

  async #document(path: string): Promise<unknown> {
    await this.keysPause
    if (this.away) throw new Error('connection refused')
    if (path === '/.well-known/openid-configuration') return { issuer: this.issuer, jwks_uri: 'https://10.0.0.1/x' }
    const jwk = await exportJWK(this.publicKey)
    return { keys: [{ ...jwk, use: 'sig', alg: 'RS256', kid: await calculateJwkThumbprint(jwk) }] }
  }

  #review(token: string, audiences: readonly string[]): TokenReview {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as JWTPayload & {
      'kubernetes.io': { pod?: { name: string; uid: string }; node?: { name: string }; serviceaccount: { uid: string } }
    }
    const { pod, node, serviceaccount } = claims['kubernetes.io']
    const asked = audiences.length === 0 ? [this.issuer] : audiences
    const has = [claims.aud ?? []].flat()
    const confirmed = asked.filter((audience) => has.includes(audience))
    const gone = pod !== undefined && this.#deleted.has(pod.uid)
    const nobody = { username: '', uid: '', groups: [], extra: new Map(), audiences: [] }
    if (gone || (confirmed.length === 0 && !this.ignoresAudiences)) {
      return { ...nobody, authenticated: false, error: gone ? 'pod is gone' : 'token audiences are invalid' }
    }
    const [, , namespace] = (claims.sub ?? '').split(':')
    const extra = new Map<string, string[]>()
    const add = (name: string, value: string | undefined): void => {
      if (value !== undefined) extra.set(`authentication.kubernetes.io/${name}`, [value])
    }
    add('pod-name', pod?.name)
    add('pod-uid', pod?.uid)
    add('node-name', node?.name)
    add('credential-id', `JTI=${claims.jti}`)
    return {
      authenticated: true,
      error: undefined,
      username: claims.sub ?? '',
      uid: serviceaccount.uid,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      extra,
      audiences: this.ignoresAudiences ? [] : confirmed,
    }
  }

  /** The cluster as a Kubernetes target. */
  target(): Target {
    const clock = () => new Date(this.#now())
    const keys = createClusterKeySet((path) => this.#document(path), clock, silentLogger)
    const absent = async (): Promise<never> => {
      throw new GatewayError('NOT_SUPPORTED', 'a cluster holds no users')
    }
    const target: AccountTokenVerifier = {
      verifyAccountToken: (token) => verifyServiceAccountToken(token, keys, clock),
      hasKeys: () => keys.fresh(),
      reviewToken: async (token, audiences) => {
        this.reviews.push({ token, audiences })
        await this.pause
        if (this.away) throw new GatewayError('TARGET_UNREACHABLE', 'connection refused', { retryAfter: 2 })
        const review = this.#review(token, audiences)
        return this.reviewed?.(review) ?? review
      },
      findUser: absent,
      createUser: absent,
      syncUser: absent,
      deleteUser: absent,
    }
    return target
  }
}
