import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  admit,
  advance,
  emptyRing,
  type KeyRing,
  keyIn,
  leastWaitSeconds,
  marginSeconds,
  mayActivateAt,
  mostKeys,
  type NewKey,
  observe,
  publishedKeys,
  type RingPolicy,
  signsUnseenSeconds,
  skewSeconds,
  wantsNext,
  withoutNext,
} from './key-ring.ts'

const policy: RingPolicy = { algorithm: 'RS256', maxTokenSeconds: 900, rotateSeconds: 90 * 86_400 }
const second = 1000

const newKey = (kid: string, more: Partial<NewKey> = {}): NewKey => ({
  kid,
  alg: 'RS256',
  jwk: { kid },
  sealed: `sealed ${kid}`,
  given: false,
  custody: null,
  ...more,
})

const states = (ring: KeyRing) => Object.fromEntries(ring.keys.map(({ kid, state }) => [kid, state]))
const withTwo = (now = 0) => admit(admit(emptyRing, newKey('a'), policy, now), newKey('b'), policy, now)
const seen = (ring: KeyRing, at: number, kids: readonly string[], cacheSeconds = 300) =>
  observe(ring, { at, kids: new Set(kids), cacheSeconds })
const wait = (cacheSeconds: number) => (Math.max(leastWaitSeconds, cacheSeconds) + marginSeconds) * second

describe('a ring', () => {
  test('its first key signs at once, and no other', () => {
    const ring = withTwo()
    expect(states(ring)).toEqual({ a: 'active', b: 'next' })
    expect(publishedKeys(ring)).toEqual([{ kid: 'a' }, { kid: 'b' }])
    expect(states(advance(ring, policy, 1e12))).toEqual({ a: 'active', b: 'next' })
  })

  test.each([
    [0, leastWaitSeconds],
    [300, leastWaitSeconds],
    [3600, 3600],
    [86_400, 86_400],
  ])('C5: with documents that are cached %i s, a key signs %i s after it was seen', (cache, least) => {
    const ring = seen(withTwo(), 1000, ['a', 'b'], cache)
    const due = 1000 + (least + marginSeconds) * second
    expect(mayActivateAt(ring)).toBe(due)
    expect(states(advance(seen(ring, due - 1, ['a', 'b'], cache), policy, due - 1))['b']).toBe('next')
    const after = advance(seen(ring, due, ['a', 'b'], cache), policy, due)
    expect(states(after)).toEqual({ a: 'retiring', b: 'active' })
    expect(after.keys.find(({ kid }) => kid === 'a')?.sealed).toBeNull()
  })

  test('C6: a key that was missed waits again', () => {
    let ring = seen(withTwo(), 0, ['a', 'b'])
    ring = seen(ring, 600_000, ['a'])
    expect(mayActivateAt(ring)).toBeUndefined()
    ring = seen(ring, 700_000, ['a', 'b'])
    expect(mayActivateAt(ring)).toBe(700_000 + wait(300))
  })

  test('ignores old sightings', () => {
    const ring = seen(withTwo(), 0, ['a', 'b'])
    expect(states(advance(ring, policy, 1e9))).toEqual({ a: 'active', b: 'next' })
    expect(states(advance(seen(ring, 1e9, ['a', 'b']), policy, 1e9))).toEqual({ a: 'retiring', b: 'active' })
  })

  test('waits for copies that were served with a longer lifetime', () => {
    let ring = seen(withTwo(), 0, ['a'], 86_400)
    ring = seen(ring, 60_000, ['a', 'b'], 60)
    expect(mayActivateAt(ring)).toBe(60_000 + wait(86_400))
    const later = 60_000 + 86_400 * second
    expect(mayActivateAt(seen(ring, later - 1, ['a', 'b'], 60))).toBe(60_000 + wait(86_400))
    expect(mayActivateAt(seen(ring, later, ['a', 'b'], 60))).toBe(60_000 + wait(60))
  })

  test('keeps an old key until the last token that it can have signed has expired', () => {
    const longer = { ...policy, maxTokenSeconds: 3600 }
    let ring = advance(seen(withTwo(), 0, ['a', 'b']), longer, 0)
    ring = advance(ring, policy, 1)
    const now = wait(300)
    ring = advance(seen(ring, now, ['a', 'b']), policy, now)
    const gone = now + (signsUnseenSeconds + 3600 + skewSeconds + marginSeconds) * second
    expect(states(advance(ring, policy, gone - 1))).toEqual({ a: 'retiring', b: 'active' })
    expect(states(advance(ring, policy, gone))).toEqual({ b: 'active' })
  })

  test('a key that returns while it retires signs again only after the wait, and is not lost before', () => {
    const now = wait(300)
    const rotated = advance(seen(seen(withTwo(), 0, ['a', 'b']), now, ['a', 'b']), policy, now)
    const back = admit(rotated, newKey('a', { given: true }), policy, now + 1)
    expect(states(back)).toEqual({ a: 'next', b: 'active' })
    expect(states(advance(back, policy, 1e12))).toEqual({ a: 'next', b: 'active' })
    const dropped = admit(back, newKey('c'), policy, now + 2)
    expect(states(dropped)).toEqual({ a: 'retiring', b: 'active', c: 'next' })
    expect(states(withoutNext(dropped))).toEqual({ a: 'retiring', b: 'active' })
    expect(states(advance(dropped, policy, 1e12))).toEqual({ b: 'active', c: 'next' })
  })

  test('needs another key after its period or for another algorithm, one at a time', () => {
    expect(wantsNext(emptyRing, policy, 0)).toBe(true)
    const one = admit(emptyRing, newKey('a'), policy, 0)
    const end = policy.rotateSeconds * second
    expect([wantsNext(one, policy, end - 1), wantsNext(one, policy, end)]).toEqual([false, true])
    expect(wantsNext(one, { ...policy, rotateSeconds: 0 }, 1e15)).toBe(false)
    expect(wantsNext(one, { ...policy, algorithm: 'ES256' }, 0)).toBe(true)
    expect(wantsNext(withTwo(), policy, end)).toBe(false)
    const given = admit(emptyRing, newKey('g', { given: true }), policy, 0)
    expect(wantsNext(given, { ...policy, algorithm: 'ES256' }, end)).toBe(false)
  })
})

/**
 * A consumer that keeps its copy as long as it may, and rejects an unknown key until then: the API server of
 * Kubernetes.
 */
interface Copy {
  readonly kids: ReadonlySet<string>
  readonly until: number
}

const step = fc.record({
  /** Seconds since the previous step. */
  after: fc.integer({ min: 1, max: 900 }),
  action: fc.constantFrom('pass', 'pass', 'pass', 'rotate', 'lifetime', 'publish-fails', 'look-fails', 'ttl', 'give'),
  value: fc.constantFrom(0, 60, 300, 1200, 3600, 7200),
})

interface Step {
  readonly after: number
  readonly action: string
  readonly value: number
}

/**
 * Simulates the steps: the keeper publishes and looks, the operator rotates, changes headers and token lifetimes.
 * At every relevant second a gateway whose ring is up to `signsUnseenSeconds` old signs a token, and consumers that
 * fetched at every earlier time verify it.
 */
function simulate(steps: readonly Step[], pass: typeof advance = advance) {
  let [now, made, lifetime, ttl] = [0, 0, 300, 900]
  let ring: KeyRing = admit(emptyRing, newKey('k0'), policy, 0)
  let served = new Set(['k0'])
  const refused: string[] = []
  const copies: Copy[] = []
  const past: { at: number; kid: string; ttl: number }[] = []
  let signed: { kid: string; until: number }[] = []
  let most = 0
  const fetchAndVerify = (): void => {
    copies.push({ kids: new Set(served), until: now + lifetime * second })
    for (const copy of copies.filter(({ until }) => until > now)) {
      for (const { kid } of signed.filter(({ until }) => until >= now)) {
        // A copy older than the token is kept for its lifetime; a younger one must know the key just as well.
        if (!copy.kids.has(kid)) refused.push(`${kid} at ${now / second}`)
      }
    }
  }
  const sign = (): void => {
    const views = past.filter(({ at }, i) => (past[i + 1]?.at ?? now) >= now - signsUnseenSeconds * second && at <= now)
    signed = signed.filter(({ until }) => until >= now)
    for (const view of views) signed.push({ kid: view.kid, until: now + (view.ttl + skewSeconds) * second })
  }
  for (const { after, action, value } of steps) {
    for (const part of [0.5, 1]) {
      now += Math.round(after * part) * second
      sign()
      fetchAndVerify()
    }
    const rules = { ...policy, maxTokenSeconds: ttl }
    if (action === 'lifetime') lifetime = value
    if (action === 'ttl') ttl = Math.max(60, Math.min(value, 3600))
    if (
      (action === 'rotate' && keyIn(ring, 'next') === undefined && ring.keys.length < mostKeys) ||
      action === 'give'
    ) {
      if (ring.keys.length < 8) ring = admit(ring, newKey(`k${++made}`), rules, now)
    }
    ring = pass(ring, rules, now)
    const published = new Set(publishedKeys(ring).map(({ kid }) => kid ?? ''))
    if (action !== 'publish-fails') served = published
    if (action !== 'look-fails') ring = observe(ring, { at: now, kids: served, cacheSeconds: lifetime })
    ring = pass(ring, rules, now)
    if (action === 'pass') served = new Set(publishedKeys(ring).map(({ kid }) => kid ?? ''))
    const active = keyIn(ring, 'active')
    if (active !== undefined) past.push({ at: now, kid: active.kid, ttl })
    most = Math.max(most, ring.keys.length)
    sign()
    fetchAndVerify()
  }
  return { refused, activations: new Set(past.map(({ kid }) => kid)).size, most }
}

describe('never', () => {
  test("is a token signed by, or still valid with, a key that a consumer's copy lacks", () => {
    let activations = 0
    fc.assert(
      fc.property(fc.array(step, { minLength: 10, maxLength: 60 }), (steps) => {
        const outcome = simulate(steps)
        activations = Math.max(activations, outcome.activations)
        expect(outcome.refused).toEqual([])
        expect(outcome.most).toBeLessThanOrEqual(8)
      }),
      { numRuns: 150 },
    )
    expect(activations).toBeGreaterThan(1)
  })

  const hasty = (ring: KeyRing, rules: RingPolicy, now: number): KeyRing =>
    advance({ ...ring, cache: ring.cache && { ...ring.cache, seconds: 0 } }, rules, now)
  const atOnce = (ring: KeyRing, rules: RingPolicy, now: number): KeyRing =>
    advance({ ...ring, keys: ring.keys.map((key) => ({ ...key, visible: key.visible && 1 })) }, rules, now)
  const forgetful = (ring: KeyRing, rules: RingPolicy, now: number): KeyRing => {
    const after = advance(ring, rules, now)
    return { ...after, keys: after.keys.filter(({ state }) => state !== 'retiring') }
  }
  const shortSighted = (ring: KeyRing, rules: RingPolicy, now: number): KeyRing => {
    const after = advance(ring, rules, now)
    const soon = now + 900 * second
    return { ...after, keys: after.keys.map((key) => ({ ...key, gone: key.gone && Math.min(key.gone, soon) })) }
  }

  test.each([
    ['ignores how long documents are kept', hasty],
    ['lets a key sign as soon as it is seen', atOnce],
    ['forgets a key when the next one signs', forgetful],
    ['forgets a key after the usual life of a token', shortSighted],
  ])('the simulation detects a ring that %s', (_what, broken) => {
    const found = fc.check(
      fc.property(
        fc.array(step, { minLength: 30, maxLength: 60 }),
        (steps) => simulate(steps, broken).refused.length === 0,
      ),
      { numRuns: 300, endOnFailure: true, seed: 7 },
    )
    expect(found.failed).toBe(true)
  })

  test('are there two active keys, or two next ones, or a next one that signs', () => {
    const event = fc.oneof(
      fc.record({ kind: fc.constant('admit' as const), n: fc.integer({ min: 0, max: 6 }) }),
      fc.record({ kind: fc.constant('see' as const), n: fc.integer({ min: 0, max: 127 }) }),
      fc.record({ kind: fc.constant('pass' as const), n: fc.integer({ min: 1, max: 4000 }) }),
    )
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let ring = admit(emptyRing, newKey('0'), policy, 0)
        let now = 0
        for (const { kind, n } of events) {
          if (kind === 'admit') ring = admit(ring, newKey(String(n)), policy, now)
          if (kind === 'see')
            ring = seen(ring, now, [0, 1, 2, 3, 4, 5, 6].filter((bit) => n & (1 << bit)).map(String), n * 30)
          if (kind === 'pass') now += n * second
          ring = advance(ring, policy, now)
          expect(ring.keys.filter(({ state }) => state === 'active')).toHaveLength(1)
          expect(ring.keys.filter(({ state }) => state === 'next').length).toBeLessThanOrEqual(1)
          expect(ring.keys.every(({ state, sealed }) => (sealed === null) === (state === 'retiring'))).toBe(true)
          expect(new Set(ring.keys.map(({ kid }) => kid)).size).toBe(ring.keys.length)
        }
      }),
    )
  })
})
