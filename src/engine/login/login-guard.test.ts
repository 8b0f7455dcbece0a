import { describe, expect, test } from 'vitest'
import { accountPolicy, addressPolicy, createGuard } from '#engine/login/login-guard.ts'
import type { LoginLimits } from '#sdk/configuration.ts'
import { fakeLoginServices } from '#testing/fake-login-services.ts'
import { fakeRequest } from '#testing/fake-request.ts'

function setUp(limits?: LoginLimits) {
  let now = Date.UTC(2030, 0, 1)
  const services = fakeLoginServices(() => new Date(now))
  const guardFrom = (remoteAddress: string) =>
    createGuard(
      {
        failures: services.loginFailures,
        audit: services.loginAudit,
        meter: services.loginMeter,
        clock: services.clock,
      },
      { request: { ...fakeRequest({}), remoteAddress }, chain: 'c', application: 'portal', limits },
    )
  return {
    ...services,
    guardFrom,
    pass: (seconds: number) => {
      now += seconds * 1000
    },
    async fail(account: string, address = '192.0.2.1') {
      const turn = await guardFrom(address).begin(account)
      if (!turn.allowed) return turn.retryAfterSeconds
      await turn.failed('wrong password', account)
      return 0
    },
  }
}

describe('the guard', () => {
  test('an account gets five tries, and then has to wait longer and longer', async () => {
    const { fail, pass } = setUp()
    for (let i = 0; i < 5; i++) expect(await fail('ada')).toBe(0)
    expect(await fail('ADA')).toBe(1)
    const waits: number[] = []
    for (let i = 0; i < 12; i++) {
      pass((waits.at(-1) ?? 1) + 0)
      expect(await fail('ada')).toBe(0)
      waits.push(await fail('ada'))
    }
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300])
    expect(await fail('grace')).toBe(0)
  })

  test.each([
    ['case', 'JOSÉ'],
    ['width', '\uff4aosé'],
    ['another alphabet of the same letters', '\u{1d423}\u{1d428}\u{1d42c}é'],
    ['composition', 'jose\u0301'],
    ['accents, which some databases do not tell apart', 'jose'],
    ['what is not seen', 'jo\u00ads\u200bé'],
    ['spaces', '  josé '],
  ])('spellings that a directory may take for the same are one account: %s', async (_, spelling) => {
    const { fail } = setUp()
    for (let i = 0; i < 5; i++) expect(await fail('josé')).toBe(0)
    expect(await fail(spelling)).toBe(1)
  })

  test('nobody locks the second factor of another by typing its name as a login', async () => {
    const { fail, guardFrom } = setUp()
    const name = 'second factor of uid=ada,o=Tremolo'
    for (let i = 0; i < 6; i++) await fail(name)
    expect(await fail(name)).toBeGreaterThan(0)
    expect((await guardFrom('192.0.2.1').begin(name, 'second factor')).allowed).toBe(true)
  })

  test('by the limits of the chain, where it has some', async () => {
    const { fail, pass } = setUp({ maxFailedAttempts: 2, lockoutMillis: 60_000 })
    expect([await fail('ada'), await fail('ada'), await fail('ada')]).toEqual([0, 0, 60])
    pass(60)
    expect([await fail('ada'), await fail('ada')]).toEqual([0, 60])
  })

  test('who gets in starts over', async () => {
    const { guardFrom, fail } = setUp()
    for (let i = 0; i < 4; i++) await fail('ada')
    const turn = await guardFrom('192.0.2.1').begin('ada')
    if (!turn.allowed) throw new Error('locked too early')
    await turn.succeeded()
    for (let i = 0; i < 5; i++) expect(await fail('ada')).toBe(0)
  })

  test('tries side by side are as many as they are', async () => {
    const { guardFrom } = setUp()
    const turns = await Promise.all(Array.from({ length: 30 }, () => guardFrom('192.0.2.1').begin('ada')))
    expect(turns.filter(({ allowed }) => allowed)).toHaveLength(5)
  })

  test('an address has to wait as well, whatever the accounts', async () => {
    const { fail } = setUp()
    for (let i = 0; i < 50; i++) expect(await fail(`user${i}`)).toBe(0)
    expect(await fail('user50')).toBeGreaterThan(0)
    expect(await fail('user50', '192.0.2.2')).toBe(0)
  })

  test('what was typed by somebody unknown is written down nowhere', async () => {
    const { guardFrom, audited, counted } = setUp()
    const turn = await guardFrom('192.0.2.1').begin('my-password-by-mistake')
    if (!turn.allowed) throw new Error('locked')
    await turn.failed('no such person')
    expect(audited).toMatchObject([{ kind: 'session', action: 'refuse', subject: expect.stringMatching(/^unknown:/) }])
    expect(JSON.stringify(audited)).not.toContain('my-password')
    expect(counted).toEqual(['c failed'])
  })

  test('no lock is for ever', () => {
    for (const policy of [accountPolicy, addressPolicy]) {
      for (const failures of [1, 10, 100, 1e6, 1e9]) {
        expect(policy.lockMillis(failures)).toBeLessThanOrEqual(15 * 60_000)
      }
    }
  })
})
