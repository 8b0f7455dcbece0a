import { describe, expect, it, vi } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { type IssuingFixture, issuingFixture } from '#testing/sts/token-issuing-fixture.ts'

const never = new Promise<void>(() => {})
const breaker = { stallMillis: 500 }
const atOnce = 300

async function errorOf(attempt: Promise<unknown>): Promise<GatewayError> {
  const thrown = await attempt.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (thrown instanceof GatewayError) return thrown
  throw new Error('a token was issued')
}

async function distinctTokens(fixture: IssuingFixture, count: number): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, () => fixture.cluster().token()))
}

describe('an API server that hangs', () => {
  it('with offline-ok, costs all workloads together one wait, and then nothing', async () => {
    const fixture = await issuingFixture({ endpoint: { offlineSeconds: 60 }, breaker })
    const cluster = fixture.cluster()
    await fixture.exchange(await cluster.token())
    cluster.reviews.length = 0
    cluster.pause = never
    const tokens = await distinctTokens(fixture, atOnce)
    const issued = await Promise.all(tokens.map((token) => fixture.exchange(token)))
    expect(issued).toHaveLength(atOnce)
    // The calls that ran when the first wait ended; no other reached the API server.
    expect(cluster.reviews).toHaveLength(32)
    expect(fixture.audit.slice(1).every(({ reason }) => JSON.parse(reason ?? '').review === 'offline')).toBe(true)
  })

  it('with required, gives 503 with Retry-After at once', async () => {
    const fixture = await issuingFixture({ breaker })
    const cluster = fixture.cluster()
    await fixture.exchange(await cluster.token())
    cluster.reviews.length = 0
    cluster.pause = never
    for (let i = 0; i < 5; i++) {
      const error = await errorOf(fixture.exchange(await cluster.token()))
      expect([error.status, error.retryAfter]).toEqual([503, 2])
    }
    expect(cluster.reviews).toHaveLength(1)
  })

  it('is asked again in the background, and trusted when it answers', async () => {
    const fixture = await issuingFixture({ breaker })
    const cluster = fixture.cluster()
    await fixture.exchange(await cluster.token())
    let go = (): void => {}
    cluster.pause = new Promise((resolve) => {
      go = resolve
    })
    await errorOf(fixture.exchange(await cluster.token()))
    fixture.clock.millis += 1_000
    const probing = await cluster.token()
    await errorOf(fixture.exchange(probing))
    go()
    cluster.pause = undefined
    await new Promise((resolve) => setImmediate(resolve))
    cluster.reviews.length = 0
    await fixture.exchange(probing)
    expect(cluster.reviews).toEqual([])
    await fixture.exchange(await cluster.token())
    expect(cluster.reviews).toHaveLength(1)
  })

  it('delays no caller for its keys, and provides them when it is back', async () => {
    const fixture = await issuingFixture({ breaker })
    const cluster = fixture.cluster()
    let go = (): void => {}
    cluster.keysPause = new Promise((resolve) => {
      go = resolve
    })
    for (const token of await distinctTokens(fixture, 3)) {
      expect((await errorOf(fixture.exchange(token))).status).toBe(503)
    }
    go()
    cluster.keysPause = undefined
    await vi.waitFor(async () => fixture.exchange(await cluster.token()), { timeout: 10_000 })
    expect(fixture.audit.at(-1)?.action).toBe('issue')
  })
})

describe('a pod that the API server no longer knows', () => {
  const pod = { name: 'cart-0', uid: 'pod-1' }

  it('gets no token when the API server is unavailable afterwards, with any of its credentials', async () => {
    const fixture = await issuingFixture({ endpoint: { offlineSeconds: 60 }, breaker })
    const cluster = fixture.cluster()
    const [first, second, other] = [await cluster.token({ pod }), await cluster.token({ pod }), await cluster.token()]
    await fixture.exchange(first)
    cluster.deletePod(pod.uid)
    fixture.clock.millis += 11_000
    expect((await errorOf(fixture.exchange(first))).keyword).toBe('invalid_grant')
    // A flapping API server answers now and then, so it is never unavailable for long.
    for (let i = 0; i < 20; i++) {
      cluster.away = true
      for (const token of [first, second]) {
        const { keyword, message } = await errorOf(fixture.exchange(token))
        expect([keyword, message]).toEqual([
          'invalid_grant',
          'the API server refused the subject token when it last answered',
        ])
      }
      await fixture.exchange(other)
      cluster.away = false
      fixture.clock.millis += 20_000
      await fixture.exchange(await cluster.token())
    }
  })

  it('gets tokens again once the API server accepts it', async () => {
    const fixture = await issuingFixture({ endpoint: { offlineSeconds: 60 }, breaker })
    const cluster = fixture.cluster()
    cluster.reviewed = (review) => ({ ...review, authenticated: false, error: 'etcdserver: request timed out' })
    await errorOf(fixture.exchange(await cluster.token({ pod })))
    cluster.reviewed = undefined
    await fixture.exchange(await cluster.token({ pod }))
    cluster.away = true
    await fixture.exchange(await cluster.token({ pod }))
    expect(fixture.audit.at(-1)?.action).toBe('issue')
  })
})

describe('why a subject token is refused', () => {
  it('an expired one is called expired, even if its audience is wrong', async () => {
    for (const seconds of [-1, -10, -3600]) {
      const fixture = await issuingFixture()
      const token = await fixture.cluster().token({ seconds, audiences: ['elsewhere'] })
      const { keyword, publicText, message } = await errorOf(fixture.exchange(token))
      expect([keyword, publicText, message]).toEqual([
        'invalid_grant',
        'The subject token is expired.',
        'the subject token is expired',
      ])
    }
  })

  it('no part of a token that the API server quotes is in the log or the audit', async () => {
    const fixture = await issuingFixture()
    const cluster = fixture.cluster()
    const token = await cluster.token()
    cluster.reviewed = (review) => ({ ...review, authenticated: false, error: `cannot parse "${token.slice(0, 200)}"` })
    const { message } = await errorOf(fixture.exchange(token))
    expect(message).toBe('the token was not accepted: cannot parse "[token]"')
    expect(JSON.stringify(fixture.audit)).not.toContain(token.slice(0, 20))
  })
})
