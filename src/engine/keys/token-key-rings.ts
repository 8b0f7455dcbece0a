import type { KeyObject } from 'node:crypto'
import {
  admit,
  advance,
  emptyRing,
  type KeyRing,
  keyIn,
  mostKeys,
  type NewKey,
  publishedKeys,
  type RingPolicy,
  signsUnseenSeconds,
  wantsNext,
  withoutNext,
} from '#engine/keys/key-ring.ts'
import { readRing, ringRecord } from '#engine/keys/ring-record.ts'
import { makePrivateKey, openPrivateKey, sealPrivateKey } from '#engine/keys/token-key-pair.ts'
import type { SecretBox } from '#engine/workflow/sealed-secret.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { discoveryDocument } from '#protocols/sts/discovery-document.ts'
import { publicTokenKey } from '#protocols/sts/public-token-key.ts'
import type { IssuerDocuments, PublicTokenKey, TokenIssuer, TokenKey, TokenKeys } from '#sdk/token-keys.ts'
import type { KeyStore } from '#storage/key-store.ts'

export interface RingParts {
  readonly store: KeyStore
  /** Of owners `keyOwners`. */
  readonly box: SecretBox
  readonly clock: Clock
  readonly log: Logger
  /** The private key of that name in a file or a secret of the configuration; undefined when there is none. */
  givenKey(name: string): Promise<KeyObject | undefined>
}

interface Held {
  readonly ring: KeyRing
  readonly at: number
}

const freshMillis = 10_000
/** Documents that may be behind are still served for so long, but nobody is to keep them. */
const servedUnseenMillis = 3_600_000
/** Of documents that are served, and published with a header. */
export const servedMaxAgeSeconds = 300
const swapAttempts = 12

/**
 * The rings of all configured endpoints, as they stand in the store. What is read is used for a few seconds; a ring that
 * cannot be read is used for as long as nothing can go wrong with it.
 */
export class TokenKeyRings implements TokenKeys {
  readonly #parts: RingParts
  #issuers: ReadonlyMap<string, TokenIssuer> = new Map()
  readonly #held = new Map<string, Held>()
  readonly #opened = new Map<string, Promise<KeyObject>>()
  readonly #loading = new Map<string, Promise<Held>>()

  constructor(parts: RingParts) {
    this.#parts = parts
  }

  /** From now on these, and no others. */
  configure(issuers: readonly TokenIssuer[]): void {
    this.#issuers = new Map(issuers.map((issuer) => [issuer.endpoint, issuer]))
    for (const endpoint of this.#held.keys()) if (!this.#issuers.has(endpoint)) this.#held.delete(endpoint)
  }

  get issuers(): readonly TokenIssuer[] {
    return [...this.#issuers.values()]
  }

  async active(endpoint: string): Promise<TokenKey> {
    const issuer = this.#issuer(endpoint)
    let key = keyIn((await this.#usable(issuer)).ring, 'active')
    // A load that was under way may have begun before the configuration said so.
    for (let again = 0; again < 2 && (key?.longest ?? 0) < issuer.maxTokenSeconds; again++) {
      key = keyIn((await this.#load(issuer)).ring, 'active')
    }
    if (key === undefined || key.sealed === null || key.longest < issuer.maxTokenSeconds) {
      throw new GatewayError('INTERNAL', `no key of endpoint "${endpoint}" can sign`)
    }
    return { kid: key.kid, alg: key.alg, privateKey: await this.#open(endpoint, key.kid, key.sealed) }
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

  /** The ring as it stands in the store now, with a key made, taken over or forgotten where that is due. */
  async tend(endpoint: string): Promise<KeyRing> {
    const issuer = this.#issuer(endpoint)
    return this.#change(issuer, async (ring, now) => {
      const given = await this.#given(issuer, ring)
      if (given === 'unusable') return advance(ring, issuerPolicy(issuer), now)
      if (given !== undefined)
        return advance(await this.#withGiven(issuer, ring, given, now), issuerPolicy(issuer), now)
      const ours = ring.keys.some((key) => key.given) ? { ...ring, keys: ring.keys.map(made) } : ring
      return this.#advanced(issuer, ours, now)
    })
  }

  /** Changes the ring by a pure function, from whatever stands in the store. */
  async update(
    endpoint: string,
    change: (ring: KeyRing, policy: RingPolicy, now: number) => KeyRing,
  ): Promise<KeyRing> {
    const issuer = this.#issuer(endpoint)
    return this.#change(issuer, async (ring, now) => change(ring, issuerPolicy(issuer), now))
  }

  /** Makes the key that is to follow. CONFLICT where one waits already, or where keys are given. */
  async rotate(endpoint: string): Promise<KeyRing> {
    const issuer = this.#issuer(endpoint)
    if ((await this.#parts.givenKey(issuer.keypair)) !== undefined) {
      throw refused(`the key "${issuer.keypair}" of endpoint "${endpoint}" is given: replace it where it is kept`)
    }
    return this.#change(issuer, async (ring, now) => {
      if (keyIn(ring, 'next') !== undefined) throw refused(`endpoint "${endpoint}" has a next key already`)
      if (ring.keys.length >= mostKeys) throw refused(`endpoint "${endpoint}" has ${mostKeys} keys; one must go first`)
      return admit(ring, await this.#make(issuer), issuerPolicy(issuer), now)
    })
  }

  async #change(issuer: TokenIssuer, change: (ring: KeyRing, now: number) => Promise<KeyRing>): Promise<KeyRing> {
    const { store, clock } = this.#parts
    const { endpoint } = issuer
    for (let attempt = 0; attempt < swapAttempts; attempt++) {
      const at = clock().getTime()
      const stored = await store.get(endpoint)
      const ring = stored === undefined ? emptyRing : readRing(endpoint, stored.ring)
      const wanted = await change(ring, at)
      if (wanted !== ring && !(await store.swap(endpoint, stored?.version ?? 0, ringRecord(wanted)))) continue
      this.#hold(endpoint, { ring: wanted, at })
      return wanted
    }
    throw new GatewayError('CONFLICT', `the keys of endpoint "${endpoint}" are being changed by others`)
  }

  async #advanced(issuer: TokenIssuer, ring: KeyRing, now: number): Promise<KeyRing> {
    const policy = issuerPolicy(issuer)
    const later = advance(ring, policy, now)
    return wantsNext(later, policy, now) ? admit(later, await this.#make(issuer), policy, now) : later
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

  /** A file that cannot be used stops an endpoint that has no key, and no other. */
  async #given(issuer: TokenIssuer, ring: KeyRing): Promise<KeyObject | 'unusable' | undefined> {
    const { givenKey, log } = this.#parts
    try {
      const key = await givenKey(issuer.keypair)
      if (key === undefined) return undefined
      const { alg } = publicTokenKey(key)
      if (alg === issuer.algorithm) return key
      throw new Error(`it signs ${alg}, and the endpoint says ${issuer.algorithm}`)
    } catch (cause) {
      const { endpoint, keypair } = issuer
      const error = new GatewayError('INTERNAL', `the given key "${keypair}" of endpoint "${endpoint}" is of no use`, {
        cause,
      })
      if (keyIn(ring, 'active') === undefined) throw error
      log.error('a given key cannot be used; the endpoint goes on with the one it has', { endpoint, keypair, error })
      return 'unusable'
    }
  }

  async #make(issuer: TokenIssuer): Promise<NewKey> {
    return this.#sealed(issuer, await makePrivateKey(issuer.algorithm), false)
  }

  async #sealed({ endpoint }: TokenIssuer, key: KeyObject, given: boolean): Promise<NewKey> {
    const jwk = publicTokenKey(key)
    const sealed = await sealPrivateKey(this.#parts.box, key, endpoint, jwk.kid)
    return { kid: jwk.kid, alg: jwk.alg, jwk, sealed, given }
  }

  async #usable(issuer: TokenIssuer): Promise<Held> {
    const held = this.#held.get(issuer.endpoint)
    const age = held === undefined ? Number.POSITIVE_INFINITY : this.#age(held)
    if (held === undefined || age > signsUnseenSeconds * 1000) return this.#load(issuer)
    if (age >= freshMillis) {
      this.#load(issuer).catch((error: unknown) => {
        this.#parts.log.warn('the keys of an endpoint could not be read', { endpoint: issuer.endpoint, error })
      })
    }
    return held
  }

  /** One at a time for an endpoint. An endpoint that has no ring gets one. */
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

  async #open(endpoint: string, kid: string, sealed: string): Promise<KeyObject> {
    let opened = this.#opened.get(sealed)
    if (opened === undefined) {
      this.#forgetOpened()
      opened = openPrivateKey(this.#parts.box, sealed, endpoint, kid)
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

  /** A clock that was set back makes everything old. */
  #age({ at }: Held): number {
    const age = this.#parts.clock().getTime() - at
    return age < 0 ? Number.POSITIVE_INFINITY : age
  }
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
  return { discovery, keys: { keys }, maxAgeSeconds: servedMaxAgeSeconds }
}

const made = <K extends { given: boolean }>(key: K): K => ({ ...key, given: false })
const taken = <K extends { given: boolean }>(key: K): K => ({ ...key, given: true })

const refused = (text: string): GatewayError => new GatewayError('CONFLICT', text, { publicText: text })
