import * as z from 'zod'
import type { PublicTokenKey } from '#config/configuration/token-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { type TokenAlgorithm, tokenAlgorithms } from '#protocols/jwt/signing-key.ts'

type KeyState = 'next' | 'active' | 'retiring'

/** All times are milliseconds since 1970; `null` has not happened. */
export interface RingKey {
  readonly kid: string
  readonly alg: TokenAlgorithm
  readonly state: KeyState
  readonly jwk: PublicTokenKey
  /** The private part, encrypted; deleted when the key stops signing. Null for a key that another service stores. */
  readonly sealed: string | null
  /** The version and key of another service; null for our own key. */
  readonly custody: KeyCustody | null
  /** Comes from a file or a secret, whose owner replaces it. */
  readonly given: boolean
  readonly created: number
  /** Since when the published documents have contained it, without a gap. */
  readonly visible: number | null
  readonly activated: number | null
  /** The longest lifetime, in seconds, of a token that it may have signed. */
  readonly longest: number
  /** When nothing that it signed can be valid any more. */
  readonly gone: number | null
}

export interface KeyCustody {
  /** The mount and the name of the key, such as `transit/aws`. */
  readonly key: string
  readonly version: number
}

/** The lifetime of copies of the documents that may be in use now. */
interface CacheInForce {
  readonly seconds: number
  /** The longest lifetime that was served since `shorterSince`. */
  readonly current: number
  /** Since when all responses have a lifetime shorter than `seconds`; null while they do not. */
  readonly shorterSince: number | null
}

/** The keys of one endpoint. One is active, at most one is next, and none is deleted that a valid token needs. */
export interface KeyRing {
  readonly keys: readonly RingKey[]
  readonly cache: CacheInForce | null
  /** When the documents were last read. */
  readonly looked: number | null
  /** Kids of the last revoked keys, which are never accepted again from any source. */
  readonly revoked: readonly string[]
}

export interface RingPolicy {
  readonly algorithm: TokenAlgorithm
  readonly maxTokenSeconds: number
  /** 0: never automatically. */
  readonly rotateSeconds: number
}

/** What the published documents contained. */
export interface Sighting {
  /** When the response had been read, not before. */
  readonly at: number
  readonly kids: ReadonlySet<string>
  /** How long copies of it may be used. */
  readonly cacheSeconds: number
}

export type NewKey = Pick<RingKey, 'kid' | 'alg' | 'jwk' | 'sealed' | 'given' | 'custody'>

/** Some consumers refresh their copies only this often, despite the response headers. */
export const leastWaitSeconds = 15 * 60
/** The clocks of gateways differ, and one may serve documents that are this old. */
export const marginSeconds = 120
/** A gateway that can't read the ring signs with the key it knows for this long. */
export const signsUnseenSeconds = 300
/** Consumers accept a token for this long after its expiry. */
export const skewSeconds = 300
/** An older sighting proves nothing about now. */
const sightingSeconds = 300
/** The maximum number of published keys; rotation waits until one is gone. */
export const mostKeys = 4
/** How many revoked keys are remembered. An older one is long gone from its source. */
const mostRevoked = 50

export const emptyRing: KeyRing = { keys: [], cache: null, looked: null, revoked: [] }

export const keyIn = (ring: KeyRing, state: KeyState): RingKey | undefined =>
  ring.keys.find((key) => key.state === state)

/**
 * The first key of a ring signs at once, since no copy exists without it; any other becomes next and replaces the
 * previous next key.
 */
export function admit(ring: KeyRing, key: NewKey, policy: RingPolicy, now: number): KeyRing {
  const known = ring.keys.find(({ kid }) => kid === key.kid)
  if (known !== undefined && known.state !== 'retiring') return ring
  const fresh = { ...key, created: known?.created ?? now, visible: null, gone: known?.gone ?? null }
  if (keyIn(ring, 'active') === undefined) {
    const active: RingKey = { ...fresh, state: 'active', activated: now, longest: policy.maxTokenSeconds }
    return { ...ring, keys: [active, ...ring.keys.filter(({ kid }) => kid !== key.kid)] }
  }
  const next: RingKey = { ...fresh, state: 'next', activated: null, longest: known?.longest ?? 0 }
  const others = withoutNext(ring).keys.filter(({ kid }) => kid !== key.kid)
  return { ...ring, keys: [...others, next] }
}

/** A next key that never signed is deleted; one that signed before continues retiring. */
export function withoutNext(ring: KeyRing): KeyRing {
  const next = keyIn(ring, 'next')
  if (next === undefined) return ring
  if (next.gone !== null) return replace(ring, { ...next, state: 'retiring', sealed: null })
  return { ...ring, keys: ring.keys.filter((key) => key !== next) }
}

/** A key counts from the first time it is seen; one that is missed starts again. */
export function observe(ring: KeyRing, { at, kids, cacheSeconds }: Sighting): KeyRing {
  return {
    ...ring,
    cache: cacheAfter(ring.cache, cacheSeconds, at),
    looked: at,
    keys: ring.keys.map((key) => ({ ...key, visible: kids.has(key.kid) ? (key.visible ?? at) : null })),
  }
}

/** Copies served with a long lifetime stay in use for that lifetime, even if responses now have a shorter one. */
function cacheAfter(cache: CacheInForce | null, seconds: number, at: number): CacheInForce {
  if (cache === null || seconds >= cache.seconds) return { seconds, current: seconds, shorterSince: null }
  const since = cache.shorterSince ?? at
  const current = cache.shorterSince === null ? seconds : Math.max(cache.current, seconds)
  if (at < since + cache.seconds * 1000) return { seconds: cache.seconds, current, shorterSince: since }
  return { seconds: current, current: seconds, shorterSince: current > seconds ? at : null }
}

/** When the next key may sign, as far as known; undefined if it has not been seen. */
export function mayActivateAt(ring: KeyRing): number | undefined {
  const visible = keyIn(ring, 'next')?.visible
  if (visible === null || visible === undefined || ring.cache === null) return undefined
  return visible + (Math.max(leastWaitSeconds, ring.cache.seconds) + marginSeconds) * 1000
}

/**
 * Applies the passing of time: keys become active, retire and are deleted. Returns the same ring if nothing
 * changes.
 */
export function advance(ring: KeyRing, policy: RingPolicy, now: number): KeyRing {
  return forgetGone(activateNext(raiseLongest(ring, policy), policy, now), now)
}

/** The ring records a longer token lifetime before such a token is signed. */
function raiseLongest(ring: KeyRing, { maxTokenSeconds }: RingPolicy): KeyRing {
  const active = keyIn(ring, 'active')
  if (active === undefined || active.longest >= maxTokenSeconds) return ring
  return replace(ring, { ...active, longest: maxTokenSeconds })
}

function activateNext(ring: KeyRing, policy: RingPolicy, now: number): KeyRing {
  const at = mayActivateAt(ring)
  if (at === undefined || now < at) return ring
  if (ring.looked === null || now - ring.looked > sightingSeconds * 1000) return ring
  return activateNow(ring, policy, now)
}

/** The next key signs from now on, even if some verifiers can't know it; the same ring if there is none. */
export function activateNow(ring: KeyRing, { maxTokenSeconds }: RingPolicy, now: number): KeyRing {
  const [next, active] = [keyIn(ring, 'next'), keyIn(ring, 'active')]
  if (next === undefined) return ring
  const longest = Math.max(next.longest, maxTokenSeconds)
  const activated = replace(ring, { ...next, state: 'active', activated: now, longest, gone: null })
  if (active === undefined) return activated
  const gone = now + (signsUnseenSeconds + active.longest + skewSeconds + marginSeconds) * 1000
  return replace(activated, { ...active, state: 'retiring', sealed: null, gone })
}

/**
 * Deletes a key at once, and never accepts it again. If it was active, the next one signs; without one the ring has
 * no active key until `admit` adds one.
 */
export function revoke(ring: KeyRing, kid: string, policy: RingPolicy, now: number): KeyRing {
  const isActive = keyIn(ring, 'active')?.kid === kid
  const after = {
    ...ring,
    keys: ring.keys.filter((key) => key.kid !== kid),
    revoked: [...ring.revoked.filter((other) => other !== kid), kid].slice(-mostRevoked),
  }
  return isActive ? activateNow(after, policy, now) : after
}

/** Until when a copy of the documents from before `now` may be in use; undefined if nothing is known of copies. */
export const copiesLiveUntil = ({ cache }: KeyRing, now: number): number | undefined =>
  cache === null ? undefined : now + Math.max(leastWaitSeconds, cache.seconds) * 1000

function forgetGone(ring: KeyRing, now: number): KeyRing {
  const keys = ring.keys.filter(({ state, gone }) => state !== 'retiring' || gone === null || gone > now)
  return keys.length === ring.keys.length ? ring : { ...ring, keys }
}

/** Whether it is time to create another key. */
export function wantsNext(ring: KeyRing, { algorithm, rotateSeconds }: RingPolicy, now: number): boolean {
  const active = keyIn(ring, 'active')
  if (active === undefined) return true
  if (active.given || keyIn(ring, 'next') !== undefined || ring.keys.length >= mostKeys) return false
  if (active.alg !== algorithm) return true
  return rotateSeconds > 0 && active.activated !== null && now >= active.activated + rotateSeconds * 1000
}

const replace = (ring: KeyRing, changed: RingKey): KeyRing => ({
  ...ring,
  keys: ring.keys.map((key) => (key.kid === changed.kid ? changed : key)),
})

/** In the order of publication: the signing key first. */
export const publishedKeys = (ring: KeyRing): readonly PublicTokenKey[] =>
  order.flatMap((state) => ring.keys.filter((key) => key.state === state).map(({ jwk }) => jwk))

const order: readonly KeyState[] = ['active', 'next', 'retiring']

const time = z.number().nullable()

const record = z.object({
  keys: z
    .array(
      z.object({
        kid: z.string().min(1),
        alg: z.enum(tokenAlgorithms),
        state: z.enum(['next', 'active', 'retiring']),
        jwk: z.record(z.string(), z.string()),
        sealed: z.string().nullable(),
        given: z.boolean(),
        custody: z.object({ key: z.string(), version: z.number() }).nullable().default(null),
        created: z.number(),
        visible: time,
        activated: time,
        longest: z.number(),
        gone: time,
      }),
    )
    .min(1),
  cache: z.object({ seconds: z.number(), current: z.number(), shorterSince: time }).nullable(),
  looked: time,
  revoked: z.array(z.string()).default([]),
})

/**
 * Throws INTERNAL for anything else: keys are neither guessed nor re-created, since tokens of the old ones are in
 * use.
 */
export function readRing(endpoint: string, stored: JsonObject): KeyRing {
  const { success, data, error } = record.safeParse(stored)
  if (success && data.keys.filter(({ state }) => state === 'active').length === 1) return data
  throw new GatewayError('INTERNAL', `the stored keys of endpoint "${endpoint}" are damaged`, { cause: error })
}

/** A ring is plain JSON. */
export const ringRecord = (ring: KeyRing): JsonObject => record.parse(ring)
