import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type {
  IssuerDocuments,
  PublicTokenKey,
  TokenIssuer,
  TokenKey,
  TokenKeys,
} from '#config/configuration/token-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import { digestOf, type TokenAlgorithm } from '#protocols/jwt/signing-key.ts'
import { discoveryDocument } from '#protocols/sts/discovery-document.ts'
import { localSigner, publicTokenKey } from '#protocols/sts/signed-token.ts'
import { spiffeBundle } from '#protocols/sts/spiffe.ts'
import { type KeyEventParts, KeyEvents } from './key-events.ts'
import {
  activateNow,
  admit,
  advance,
  emptyRing,
  type KeyRing,
  keyIn,
  mostKeys,
  type NewKey,
  publishedKeys,
  type RingKey,
  type RingPolicy,
  readRing,
  revoke,
  ringRecord,
  signsUnseenSeconds,
  wantsNext,
  withoutNext,
} from './key-ring.ts'
import type { KeyStore } from './key-store.ts'
import type { SecretBox } from './secret-box.ts'
import { type KeyCustodian, makePrivateKey, openPrivateKey, sealPrivateKey } from './token-key-pair.ts'

export interface RingParts extends KeyEventParts {
  readonly store: KeyStore
  /** Of owners `keyOwners`. */
  readonly box: SecretBox
  /**
   * The private key of that name in a file or a secret of the configuration; undefined if there is none. Rejects
   * with a reason for people if it can't sign with the algorithm.
   */
  givenKey(name: string, algorithm: TokenAlgorithm): Promise<KeyObject | undefined>
  /** Where the keys of an issuer are stored; undefined if the gateway stores them. */
  custodian?(issuer: TokenIssuer): KeyCustodian | undefined
}

/** Why the source of keys gives none; the endpoint continues with the keys it has. */
interface SourceProblem {
  readonly event: 'refused' | 'custodyFailed'
  readonly reason: string
}

/** An external key, or why there is none. */
type Offered = { readonly key: KeyObject } | 'unusable' | undefined

interface Held {
  readonly ring: KeyRing
  readonly at: number
}

const freshMillis = 10_000
/** A gateway that can read the ring follows a change within this time, even if nothing kept the ring fresh. */
export const followSeconds = 15
/** How long possibly outdated documents are still served, without caching. */
const servedUnseenMillis = 3_600_000
/** The cache lifetime of documents that are served, and of those published with a header. */
export const servedMaxAgeSeconds = 300
const swapAttempts = 12

/**
 * The rings of all configured endpoints, as stored. A read ring is used for a few seconds; a ring that can't be
 * read is used for as long as that is safe.
 */
export class TokenKeyRings implements TokenKeys {
  readonly #parts: RingParts
  #issuers: ReadonlyMap<string, TokenIssuer> = new Map()
  readonly #held = new Map<string, Held>()
  readonly #opened = new Map<string, Promise<TokenKey>>()
  readonly #problems = new Map<string, SourceProblem>()
  readonly events: KeyEvents
  readonly #loading = new Map<string, Promise<Held>>()

  constructor(parts: RingParts) {
    this.#parts = parts
    this.events = new KeyEvents(parts)
  }

  /** Replaces the configured endpoints. */
  configure(issuers: readonly TokenIssuer[]): void {
    this.#issuers = new Map(issuers.map((issuer) => [issuer.endpoint, issuer]))
    for (const known of [this.#held, this.#problems]) {
      for (const endpoint of known.keys()) if (!this.#issuers.has(endpoint)) known.delete(endpoint)
    }
  }

  get issuers(): readonly TokenIssuer[] {
    return [...this.#issuers.values()]
  }

  async active(endpoint: string): Promise<TokenKey> {
    const issuer = this.#issuer(endpoint)
    let key = keyIn((await this.#usable(issuer)).ring, 'active')
    // A running load may have begun before the configuration changed.
    for (let again = 0; again < 2 && (key?.longest ?? 0) < issuer.maxTokenSeconds; again++) {
      key = keyIn((await this.#load(issuer)).ring, 'active')
    }
    if (key === undefined || key.longest < issuer.maxTokenSeconds) {
      throw new GatewayError('INTERNAL', `no key of endpoint "${endpoint}" can sign`)
    }
    return this.#signer(issuer, key)
  }

  /** Why the endpoint's source of keys gave none when this process last looked. */
  problem(endpoint: string): SourceProblem | undefined {
    return this.#problems.get(endpoint)
  }

  async published(endpoint: string): Promise<readonly PublicTokenKey[]> {
    return (await this.documents(endpoint)).keys.keys
  }

  async documents(endpoint: string): Promise<IssuerDocuments> {
    const issuer = this.#issuer(endpoint)
    const held = this.#held.get(endpoint)
    if (held !== undefined && this.#age(held) < freshMillis) return documentsOf(issuer, held.ring)
    try {
      return documentsOf(issuer, (await this.#load(issuer)).ring)
    } catch (error) {
      if (held === undefined || this.#age(held) > servedUnseenMillis) throw error
      this.#parts.log.warn('documents of an issuer are served as they were', { endpoint, error })
      return { ...documentsOf(issuer, held.ring), maxAgeSeconds: 0 }
    }
  }

  async isRevoked(endpoint: string, kid: string): Promise<boolean> {
    return (await this.#usable(this.#issuer(endpoint))).ring.revoked.includes(kid)
  }

  /** The stored ring, after creating, importing or deleting a key if that is due. */
  async tend(endpoint: string): Promise<KeyRing> {
    const issuer = this.#issuer(endpoint)
    return this.#change(issuer, async (ring, now) => {
      if (issuer.custody?.leave === false) return this.#inCustody(issuer, ring, now)
      const given = await this.#given(issuer, ring)
      if (given === 'unusable') return advance(ring, issuerPolicy(issuer), now)
      if (given !== undefined)
        return advance(await this.#withGiven(issuer, ring, given.key, now), issuerPolicy(issuer), now)
      const ours = ring.keys.some((key) => key.given) ? { ...ring, keys: ring.keys.map(made) } : ring
      return this.#advanced(issuer, ours, now)
    })
  }

  /** Changes the stored ring by a pure function. */
  async update(
    endpoint: string,
    change: (ring: KeyRing, policy: RingPolicy, now: number) => KeyRing,
  ): Promise<KeyRing> {
    const issuer = this.#issuer(endpoint)
    return this.#change(issuer, async (ring, now) => change(ring, issuerPolicy(issuer), now))
  }

  /**
   * Creates the next key. CONFLICT if one waits, or if keys are configured. With `join`, returns the ring if one waits or
   * was just activated: operators who act at the same time cause one rotation.
   */
  async rotate(endpoint: string, by?: string, others: 'refuse' | 'join' = 'refuse'): Promise<KeyRing> {
    const issuer = this.#issuer(endpoint)
    await this.#assertOurs(issuer)
    return this.#change(
      issuer,
      async (ring, now) => {
        if (others === 'join' && (keyIn(ring, 'next') !== undefined || isJustRotated(ring, now))) return ring
        if (keyIn(ring, 'next') !== undefined)
          throw refused(`endpoint "${endpoint}" has a next key already; wait until it signs, or use --now`)
        if (ring.keys.length >= mostKeys)
          throw refused(`endpoint "${endpoint}" has ${mostKeys} keys; one must go first`)
        return admit(ring, await this.#make(issuer), issuerPolicy(issuer), now)
      },
      by,
    )
  }

  /**
   * Lets the next key sign at once, though copies of the documents may lack it. Names the key, so that one which another
   * operator created meanwhile, and which may be unpublished, doesn't sign: CONFLICT then. Idempotent.
   */
  async activate(endpoint: string, kid: string, by?: string): Promise<KeyRing> {
    const issuer = this.#issuer(endpoint)
    return this.#change(
      issuer,
      async (ring, now) => {
        if (keyIn(ring, 'active')?.kid === kid) return ring
        if (keyIn(ring, 'next')?.kid === kid) return activateNow(ring, issuerPolicy(issuer), now)
        throw refused(`${kid} isn't the next key of endpoint "${endpoint}" any more; check with gatehouse keys list`)
      },
      by,
    )
  }

  /**
   * Deletes a key of any source at once, and never uses it again. The next key signs instead, or a new one.
   * NOT_FOUND if the endpoint has no such key.
   */
  async revoke(endpoint: string, kid: string, by?: string): Promise<KeyRing> {
    const issuer = this.#issuer(endpoint)
    const policy = issuerPolicy(issuer)
    return this.#change(
      issuer,
      async (ring, now) => {
        if (!ring.keys.some((key) => key.kid === kid)) {
          throw new GatewayError('NOT_FOUND', `endpoint "${endpoint}" has no key ${kid}`)
        }
        const left = revoke(ring, kid, policy, now)
        return keyIn(left, 'active') === undefined ? admit(left, await this.#make(issuer), policy, now) : left
      },
      by,
    )
  }

  /** Throws CONFLICT if the key is configured. */
  async #assertOurs({ endpoint, keypair, algorithm, custody }: TokenIssuer): Promise<void> {
    if (custody?.leave === false) return
    if ((await this.#parts.givenKey(keypair, algorithm)) !== undefined) {
      throw refused(`the key "${keypair}" of endpoint "${endpoint}" is given: replace it where it is kept`)
    }
  }

  async #change(
    issuer: TokenIssuer,
    change: (ring: KeyRing, now: number) => Promise<KeyRing>,
    by?: string,
  ): Promise<KeyRing> {
    const { store, clock } = this.#parts
    const { endpoint } = issuer
    for (let attempt = 0; attempt < swapAttempts; attempt++) {
      const at = clock().getTime()
      const stored = await store.get(endpoint)
      const ring = stored === undefined ? emptyRing : readRing(endpoint, stored.ring)
      const wanted = await change(ring, at)
      if (wanted !== ring && !(await store.swap(endpoint, stored?.version ?? 0, ringRecord(wanted)))) continue
      this.#hold(endpoint, { ring: wanted, at })
      await this.events.ringChanged(endpoint, ring, wanted, by)
      return wanted
    }
    throw new GatewayError('CONFLICT', `the keys of endpoint "${endpoint}" are being changed by others`)
  }

  async #advanced(issuer: TokenIssuer, ring: KeyRing, now: number): Promise<KeyRing> {
    const policy = issuerPolicy(issuer)
    const later = advance(ring, policy, now)
    // A key that another service stores is followed by one of ours.
    const active = keyIn(later, 'active')
    const isElsewhere = active !== undefined && active.custody !== null && keyIn(later, 'next') === undefined
    const isDue = wantsNext(later, policy, now) || (isElsewhere && later.keys.length < mostKeys)
    return isDue ? admit(later, await this.#make(issuer), policy, now) : later
  }

  async #withGiven(issuer: TokenIssuer, ring: KeyRing, given: KeyObject, now: number): Promise<KeyRing> {
    const { kid } = publicTokenKey(given)
    const active = keyIn(ring, 'active')
    if (active?.kid === kid) {
      const kept = active.given ? ring : { ...ring, keys: ring.keys.map((key) => (key === active ? taken(key) : key)) }
      return withoutNext(kept)
    }
    if (keyIn(ring, 'next')?.kid === kid) return ring
    return admit(ring, await this.#sealed(issuer, given, true), issuerPolicy(issuer), now)
  }

  /** An unusable file stops an endpoint that has no key, and no other. */
  async #given(issuer: TokenIssuer, ring: KeyRing): Promise<Offered> {
    const { endpoint, keypair, algorithm } = issuer
    try {
      const key = await this.#parts.givenKey(keypair, algorithm)
      if (key !== undefined) {
        const { kid, alg } = publicTokenKey(key)
        if (alg !== algorithm) throw new Error(`the key "${keypair}" signs ${alg}, and the algorithm is ${algorithm}`)
        if (ring.revoked.includes(kid)) throw new Error(`the key "${keypair}" was revoked (${kid}); replace it`)
      }
      this.#problems.delete(endpoint)
      return key && { key }
    } catch (cause) {
      this.#problems.set(endpoint, { event: 'refused', reason: reasonOf(cause) })
      if (keyIn(ring, 'active') !== undefined) return 'unusable'
      throw new GatewayError('INTERNAL', `the given key of endpoint "${endpoint}" cannot be used: ${reasonOf(cause)}`, {
        cause,
      })
    }
  }

  /**
   * The newest version of the key in its service is the next one, even if an operator created it; it is replaced
   * there when due.
   */
  async #inCustody(issuer: TokenIssuer, ring: KeyRing, now: number): Promise<KeyRing> {
    const { endpoint, algorithm } = issuer
    const policy = issuerPolicy(issuer)
    const later = advance(ring, policy, now)
    try {
      const custodian = this.#custodian(issuer)
      const { version, publicKey } = await custodian.latest(algorithm)
      const { kid } = publicTokenKey(publicKey)
      const known = later.keys.some((key) => key.kid === kid && key.state !== 'retiring')
      const isNew = !known && !later.revoked.includes(kid) && later.keys.length < mostKeys
      this.#problems.delete(endpoint)
      if (isNew) return admit(later, inCustody(custodian, version, publicKey), policy, now)
      return wantsNext(later, policy, now) ? admit(later, await this.#make(issuer), policy, now) : later
    } catch (cause) {
      this.#problems.set(endpoint, { event: 'custodyFailed', reason: reasonOf(cause) })
      if (keyIn(ring, 'active') === undefined) throw cause
      return later
    }
  }

  #custodian(issuer: TokenIssuer): KeyCustodian {
    const custodian = this.#parts.custodian?.(issuer)
    if (custodian !== undefined) return custodian
    throw new GatewayError(
      'INTERNAL',
      `the service that keeps the key of endpoint "${issuer.endpoint}" is not configured`,
    )
  }

  async #make(issuer: TokenIssuer): Promise<NewKey> {
    if (issuer.custody?.leave === false) {
      const custodian = this.#custodian(issuer)
      const { version, publicKey } = await custodian.rotate(issuer.algorithm)
      return inCustody(custodian, version, publicKey)
    }
    return this.#sealed(issuer, await makePrivateKey(issuer.algorithm), false)
  }

  async #sealed({ endpoint }: TokenIssuer, key: KeyObject, given: boolean): Promise<NewKey> {
    const jwk = publicTokenKey(key)
    const sealed = await sealPrivateKey(this.#parts.box, key, endpoint, jwk.kid)
    return { kid: jwk.kid, alg: jwk.alg, jwk, sealed, given, custody: null }
  }

  async #usable(issuer: TokenIssuer): Promise<Held> {
    const held = this.#held.get(issuer.endpoint)
    const age = held === undefined ? Number.POSITIVE_INFINITY : this.#age(held)
    if (held === undefined || age > signsUnseenSeconds * 1000) return this.#load(issuer)
    if (age < freshMillis) return held
    const loading = this.#load(issuer).catch((error: unknown) => {
      this.#parts.log.warn('the keys of an endpoint could not be read', { endpoint: issuer.endpoint, error })
      return held
    })
    return age < followSeconds * 1000 ? held : loading
  }

  /** One at a time per endpoint. Creates a missing ring. */
  #load(issuer: TokenIssuer): Promise<Held> {
    const { endpoint } = issuer
    let loading = this.#loading.get(endpoint)
    if (loading === undefined) {
      loading = this.#loadNow(issuer).finally(() => this.#loading.delete(endpoint))
      this.#loading.set(endpoint, loading)
    }
    return loading
  }

  async #loadNow(issuer: TokenIssuer): Promise<Held> {
    const { endpoint } = issuer
    const policy = issuerPolicy(issuer)
    if ((await this.#parts.store.get(endpoint)) === undefined) await this.tend(endpoint)
    else await this.#change(issuer, async (ring, now) => advance(ring, policy, now))
    const held = this.#held.get(endpoint)
    if (held === undefined) throw new GatewayError('NOT_FOUND', `endpoint "${endpoint}" is gone`)
    return held
  }

  #hold(endpoint: string, held: Held): void {
    if (!this.#issuers.has(endpoint)) return
    const known = this.#held.get(endpoint)
    if (known === undefined || known.at <= held.at) this.#held.set(endpoint, held)
  }

  async #signer(issuer: TokenIssuer, ringKey: RingKey): Promise<TokenKey> {
    const { endpoint } = issuer
    const { kid, alg, sealed, custody } = ringKey
    if (custody !== null) {
      const custodian = this.#custodian(issuer)
      return {
        kid,
        alg,
        sign: async (content) => verified(await custodian.sign(custody, alg, content), content, ringKey),
      }
    }
    if (sealed === null) throw new GatewayError('INTERNAL', `no key of endpoint "${endpoint}" can sign`)
    let opened = this.#opened.get(sealed)
    if (opened === undefined) {
      this.#forgetOpened()
      opened = openPrivateKey(this.#parts.box, sealed, endpoint, kid).then((key) => localSigner(kid, alg, key))
      this.#opened.set(sealed, opened)
      opened.catch(() => this.#opened.delete(sealed))
    }
    return opened
  }

  #forgetOpened(): void {
    const needed = new Set([...this.#held.values()].flatMap(({ ring }) => ring.keys.map(({ sealed }) => sealed)))
    for (const sealed of this.#opened.keys()) if (!needed.has(sealed)) this.#opened.delete(sealed)
  }

  #issuer(endpoint: string): TokenIssuer {
    const issuer = this.#issuers.get(endpoint)
    if (issuer === undefined) throw new GatewayError('NOT_FOUND', `there is no token endpoint "${endpoint}"`)
    return issuer
  }

  /** After the clock was set back, everything counts as old. */
  #age({ at }: Held): number {
    const age = this.#parts.clock().getTime() - at
    return age < 0 ? Number.POSITIVE_INFINITY : age
  }
}

/** Whether the active key replaced another so recently that not all gateways sign with it yet. */
export function isJustRotated(ring: KeyRing, now: number): boolean {
  const activated = keyIn(ring, 'active')?.activated ?? Number.NEGATIVE_INFINITY
  return keyIn(ring, 'retiring') !== undefined && Math.abs(now - activated) < followSeconds * 1000
}

const issuerPolicy = ({ algorithm, maxTokenSeconds, rotateSeconds }: TokenIssuer): RingPolicy => ({
  algorithm,
  maxTokenSeconds,
  rotateSeconds,
})

export function documentsOf(issuer: TokenIssuer, ring: KeyRing): IssuerDocuments {
  const keys = publishedKeys(ring)
  const algorithms = keys.flatMap(({ alg }) => (alg === undefined ? [] : [alg]))
  const discovery = discoveryDocument({ issuer: issuer.issuer, algorithms, claims: issuer.claims })
  const bundle = issuer.isTrustDomain ? { bundle: spiffeBundle(keys, servedMaxAgeSeconds) } : {}
  return { discovery, keys: { keys }, ...bundle, maxAgeSeconds: servedMaxAgeSeconds }
}

const inCustody = ({ name: key }: KeyCustodian, version: number, publicKey: KeyObject): NewKey => {
  const jwk = publicTokenKey(publicKey)
  return { kid: jwk.kid, alg: jwk.alg, jwk, sealed: null, given: false, custody: { key, version } }
}

/**
 * The signature, if the published key verifies it: the key in the service may have been replaced under the same
 * name.
 */
function verified(signature: Buffer, content: Buffer, { kid, alg, jwk, custody }: RingKey): Promise<Buffer> {
  const key = { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' } as const
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  verify(digestOf(alg), content, key, signature, (error, isValid) => {
    if (error === null && isValid) return resolve(signature)
    const text = `version ${custody?.version} of ${custody?.key} signs with another key than the published one (${kid})`
    reject(new GatewayError('INTERNAL', text, error === null ? {} : { cause: error }))
  })
  return promise
}

const reasonOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown))

const made = <K extends { given: boolean }>(key: K): K => ({ ...key, given: false })
const taken = <K extends { given: boolean }>(key: K): K => ({ ...key, given: true })

const refused = (text: string): GatewayError => new GatewayError('CONFLICT', text, { publicText: text })
