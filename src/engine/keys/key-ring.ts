import * as z from 'zod'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { type TokenAlgorithm, tokenAlgorithms } from '#kernel/signing-key.ts'
import type { PublicTokenKey } from '#sdk/sts/token-keys.ts'

export type KeyState = 'next' | 'active' | 'retiring'

/** All times are milliseconds since 1970; `null` has not happened. */
export interface RingKey {
  readonly kid: string
  readonly alg: TokenAlgorithm
  readonly state: KeyState
  readonly jwk: PublicTokenKey
  /** The private part, sealed; forgotten when the key stops signing. Null for a key that another service keeps. */
  readonly sealed: string | null
  /** Which version of which key of another service it is; null for a key of our own. */
  readonly custody: KeyCustody | null
  /** Comes from a file or a secret, and is replaced by whoever put it there. */
  readonly given: boolean
  readonly created: number
  /** Since when it has been seen in the published documents, without a gap. */
  readonly visible: number | null
  readonly activated: number | null
  /** The longest life, in seconds, of a token that it may have signed. */
  readonly longest: number
  /** When nothing that it signed can be valid any more. */
  readonly gone: number | null
}

export interface KeyCustody {
  /** The mount and the name of the key, such as `transit/aws`. */
  readonly key: string
  readonly version: number
}

/** How long copies of the documents live that somebody may hold now. */
export interface CacheInForce {
  readonly seconds: number
  /** The longest that was served since `shorterSince`. */
  readonly current: number
  /** Since when all answers may be kept for a shorter time than `seconds`; null while they may not. */
  readonly shorterSince: number | null
}

/** The keys of one endpoint. One is active, at most one is next, and none is forgotten that a valid token needs. */
export interface KeyRing {
  readonly keys: readonly RingKey[]
  readonly cache: CacheInForce | null
  /** When the documents were last looked at. */
  readonly looked: number | null
  /** Kids of keys that an operator revoked, the last ones: they are not admitted again, wherever they come from. */
  readonly revoked: readonly string[]
}

export interface RingPolicy {
  readonly algorithm: TokenAlgorithm
  readonly maxTokenSeconds: number
  /** 0: never by itself. */
  readonly rotateSeconds: number
}

/** What the published documents were seen to hold. */
export interface Sighting {
  /** When the answer had been read, not before. */
  readonly at: number
  readonly kids: ReadonlySet<string>
  /** For how long copies of it may be used. */
  readonly cacheSeconds: number
}

export type NewKey = Pick<RingKey, 'kid' | 'alg' | 'jwk' | 'sealed' | 'given' | 'custody'>

/** Consumers are known to poll their copies this seldom, whatever the answer says. */
export const leastWaitSeconds = 15 * 60
/** Clocks of gateways differ, and one may serve documents that are so much behind. */
export const marginSeconds = 120
/** A gateway that cannot read the ring goes on signing with the key it knows for so long. */
export const signsUnseenSeconds = 300
/** Consumers accept a token for so long after its end. */
export const skewSeconds = 300
/** What was seen longer ago than this proves nothing about now. */
export const sightingSeconds = 300
/** More keys are not published; rotation waits until one is gone. */
export const mostKeys = 4
/** Of revoked keys. An older one is long gone from where keys come from. */
const mostRevoked = 50

export const emptyRing: KeyRing = { keys: [], cache: null, looked: null, revoked: [] }

export const keyIn = (ring: KeyRing, state: KeyState): RingKey | undefined =>
  ring.keys.find((key) => key.state === state)

/** The first key of a ring signs at once, since nobody can hold a copy without it; any other is next, instead of one that was. */
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

/** A next key that never signed is dropped without a trace; one that did, and was to sign again, goes on retiring. */
export function withoutNext(ring: KeyRing): KeyRing {
  const next = keyIn(ring, 'next')
  if (next === undefined) return ring
  if (next.gone !== null) return replace(ring, { ...next, state: 'retiring', sealed: null })
  return { ...ring, keys: ring.keys.filter((key) => key !== next) }
}

/** A key that is seen counts from then on; one that is missed starts anew. */
export function observe(ring: KeyRing, { at, kids, cacheSeconds }: Sighting): KeyRing {
  return {
    ...ring,
    cache: cacheAfter(ring.cache, cacheSeconds, at),
    looked: at,
    keys: ring.keys.map((key) => ({ ...key, visible: kids.has(key.kid) ? (key.visible ?? at) : null })),
  }
}

/**
 * Copies that were handed out with a long life are out there for that life after the last of them, however short the life
 * of the answers is by now.
 */
function cacheAfter(cache: CacheInForce | null, seconds: number, at: number): CacheInForce {
  if (cache === null || seconds >= cache.seconds) return { seconds, current: seconds, shorterSince: null }
  const since = cache.shorterSince ?? at
  const current = cache.shorterSince === null ? seconds : Math.max(cache.current, seconds)
  if (at < since + cache.seconds * 1000) return { seconds: cache.seconds, current, shorterSince: since }
  return { seconds: current, current: seconds, shorterSince: current > seconds ? at : null }
}

/** When the next key may sign, as far as is known now; undefined where it has not been seen. */
export function mayActivateAt(ring: KeyRing): number | undefined {
  const visible = keyIn(ring, 'next')?.visible
  if (visible === null || visible === undefined || ring.cache === null) return undefined
  return visible + (Math.max(leastWaitSeconds, ring.cache.seconds) + marginSeconds) * 1000
}

/** What time does: keys become active, retire and go. The same ring, where nothing does. */
export function advance(ring: KeyRing, policy: RingPolicy, now: number): KeyRing {
  return forgetGone(activateNext(raiseLongest(ring, policy), policy, now), now)
}

/** Before a token is signed that lives longer than any before, the ring knows of it. */
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

/** The next key signs from now on, whether or not every verifier can know it; the same ring where there is none. */
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
 * Forgets a key at once, and never admits it again. Of a ring whose active key it is, the next one signs; where there is
 * none, the ring has no active key, and `admit` gives it one.
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

/** Until when a copy of the documents may be in use that was taken before `now`; undefined where nothing is known of copies. */
export const copiesLiveUntil = ({ cache }: KeyRing, now: number): number | undefined =>
  cache === null ? undefined : now + Math.max(leastWaitSeconds, cache.seconds) * 1000

function forgetGone(ring: KeyRing, now: number): KeyRing {
  const keys = ring.keys.filter(({ state, gone }) => state !== 'retiring' || gone === null || gone > now)
  return keys.length === ring.keys.length ? ring : { ...ring, keys }
}

/** Whether it is time to make another key. */
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

/** In the order in which they are published: the one that signs first. */
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

/** Throws INTERNAL for what is no ring: keys are neither guessed nor made anew, since tokens of the old ones are out. */
export function readRing(endpoint: string, stored: JsonObject): KeyRing {
  const { success, data, error } = record.safeParse(stored)
  if (success && data.keys.filter(({ state }) => state === 'active').length === 1) return data
  throw new GatewayError('INTERNAL', `the stored keys of endpoint "${endpoint}" are damaged`, { cause: error })
}

/** A ring is plain JSON already. */
export const ringRecord = (ring: KeyRing): JsonObject => record.parse(ring)
