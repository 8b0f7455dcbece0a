import { describe, expect, test } from 'vitest'
import type { LoginLimits } from '#config/configuration/configuration.ts'
import { entryIdentity } from '#identity/identity.ts'
import { fakeLoginServices } from '#testing/login/fake-login-services.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { entryKey, type KnownDevice } from './device-cookie.ts'
import { accountPolicy, addressPolicy, createGuard } from './login-guard.ts'

const entry = (name: string) => ({ identity: entryIdentity('people', name), login: name })
/** Users by the logins that they may type. */
const people = new Map([
  ['bob', entry('bob')],
  ['bob@corp.test', entry('bob')],
  ['eve', entry('eve')],
])
const device = (name: string, id = 'd1'): KnownDevice => ({ entry: entryKey(entry(name).identity), id, issued: 0 })

function setUp(limits?: LoginLimits) {
  let now = Date.UTC(2030, 0, 1)
  const services = fakeLoginServices(() => new Date(now))
  const guardFrom = (remoteAddress: string, devices: readonly KnownDevice[] = []) =>
    createGuard(
      {
        failures: services.loginFailures,
        audit: services.loginAudit,
        meter: services.loginMeter,
        clock: services.clock,
        passwordChanges: services.passwordChanges,
      },
      { request: { ...fakeRequest({}), remoteAddress }, chain: 'c', application: 'portal', limits, devices },
    )
  return {
    ...services,
    guardFrom,
    pass: (seconds: number) => {
      now += seconds * 1000
    },
    async fail(account: string, address = '192.0.2.1', devices: readonly KnownDevice[] = []) {
      const turn = await guardFrom(address, devices).begin(account, { find: async () => people.get(account) })
      if (!turn.allowed) return turn.concealed ? 'concealed' : turn.retryAfterSeconds
      await turn.failed('wrong password', account)
      return 0
    },
  }
}

describe('the guard', () => {
  test('a password change ends the budget of devices from before, and of no other', async () => {
    const { fail, changePassword, clock, pass } = setUp()
    const [before, after] = [device('bob'), { ...device('bob', 'd2'), issued: clock().getTime() + 1 }]
    for (let i = 0; i < 5; i++) expect(await fail('bob')).toBe(0)
    expect(await fail('bob')).toBe(1)
    expect(await fail('bob', '192.0.2.2', [before])).toBe(0)
    await changePassword(entry('bob').identity)
    expect(await fail('bob', '192.0.2.2', [before])).toBe(1)
    expect(await fail('bob', '192.0.2.2', [after])).toBe(0)
    pass(60)
    await changePassword(entry('eve').identity)
    expect(await fail('bob', '192.0.2.2', [after])).toBe(0)
  })

  test('an account gets five tries, and then has to wait longer and longer', async () => {
    const { fail, pass } = setUp()
    for (let i = 0; i < 5; i++) expect(await fail('ada')).toBe(0)
    expect(await fail('ADA')).toBe(1)
    const waits: number[] = []
    for (let i = 0; i < 12; i++) {
      pass((waits.at(-1) ?? 1) + 0)
      expect(await fail('ada')).toBe(0)
      waits.push(Number(await fail('ada')))
    }
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300])
    expect(await fail('grace')).toBe(0)
  })

  test('a clock that is set back by two days makes locks no longer than they were', async () => {
    const { fail, pass, guardFrom } = setUp()
    const turn = await guardFrom('192.0.2.1').begin('bob', { find: async () => people.get('bob') })
    if (!turn.allowed) throw new Error('locked without a failure')
    await turn.succeeded()
    for (let i = 0; i < 6; i++) await fail('ada', '192.0.2.2')
    pass(-2 * 86_400)
    expect(await fail('bob')).toBe(0)
    expect(await fail('ada', '192.0.2.2')).toBe(1)
    pass(1)
    expect(await fail('ada', '192.0.2.2')).toBe('concealed')
    pass(2)
    expect(await fail('ada', '192.0.2.2')).toBe(0)
  })

  test.each([
    ['case', 'JOSÉ'],
    ['width', '\uff4aosé'],
    ['another alphabet of the same letters', '\u{1d423}\u{1d428}\u{1d42c}é'],
    ['composition', 'jose\u0301'],
    ['accents, which some databases do not distinguish', 'jose'],
    ['what is not seen', 'jo\u00ads\u200bé'],
    ['spaces', '  josé '],
  ])('spellings that a directory may treat as equal are one account: %s', async (_, spelling) => {
    const { fail } = setUp()
    for (let i = 0; i < 5; i++) expect(await fail('josé')).toBe(0)
    expect(await fail(spelling)).toBe(1)
  })

  test("a user can't lock another user's second factor by typing its name as a login", async () => {
    const { fail, guardFrom } = setUp()
    const name = 'second factor of uid=ada,o=Tremolo'
    for (let i = 0; i < 6; i++) await fail(name)
    expect(await fail(name)).toBeGreaterThan(0)
    expect((await guardFrom('192.0.2.1').begin(name, { credential: 'second factor' })).allowed).toBe(true)
  })

  test('uses the limits of the chain, if it has some', async () => {
    const { fail, pass } = setUp({ maxFailedAttempts: 2, lockoutMillis: 60_000 })
    expect([await fail('ada'), await fail('ada'), await fail('ada')]).toEqual([0, 0, 60])
    pass(60)
    expect([await fail('ada'), await fail('ada')]).toEqual([0, 60])
  })

  test('a successful login resets the count', async () => {
    const { guardFrom, fail } = setUp()
    for (let i = 0; i < 4; i++) await fail('ada')
    const turn = await guardFrom('192.0.2.1').begin('ada')
    if (!turn.allowed) throw new Error('locked too early')
    await turn.succeeded()
    for (let i = 0; i < 5; i++) expect(await fail('ada')).toBe(0)
  })

  test('concurrent tries are all counted', async () => {
    const { guardFrom } = setUp()
    const turns = await Promise.all(Array.from({ length: 30 }, () => guardFrom('192.0.2.1').begin('ada')))
    expect(turns.filter(({ allowed }) => allowed)).toHaveLength(5)
  })

  test('an address has to wait as well, for any account', async () => {
    const { fail } = setUp()
    for (let i = 0; i < 50; i++) expect(await fail(`user${i}`)).toBe(0)
    expect(await fail('user50')).toBeGreaterThan(0)
    expect(await fail('user50', '192.0.2.2')).toBe(0)
  })

  test('the names of one user share their tries, and the answers do not reveal which names exist', async () => {
    const { fail, pass, audited } = setUp({ maxFailedAttempts: 5, lockoutMillis: 60_000 })
    for (let i = 0; i < 5; i++) expect(await fail('bob')).toBe(0)
    expect(await fail('bob')).toBe(60)
    // The other name behaves like an unknown one: five refusals, and then the lock.
    const seen = []
    for (let i = 0; i < 6; i++) seen.push(await fail('bob@corp.test'))
    expect(seen).toEqual([...Array(5).fill('concealed'), 60])
    const unknown = []
    for (let i = 0; i < 6; i++) unknown.push(await fail('nobody@corp.test'))
    expect(unknown).toEqual([0, 0, 0, 0, 0, 60])
    expect(audited.filter(({ subject }) => subject === 'bob')).toHaveLength(10)
    pass(60)
    expect(await fail('bob@corp.test')).toBe(0)
  })

  test("anonymous callers can't use up the tries of a browser that its owner logged in with", async () => {
    const { fail, guardFrom } = setUp({ maxFailedAttempts: 2, lockoutMillis: 60_000 })
    const own = [device('eve'), device('bob')]
    for (let i = 0; i < 60; i++) await fail(i < 3 ? 'bob' : `user${i}`)
    expect(await fail('bob')).toBeGreaterThan(0)
    const turn = await guardFrom('192.0.2.1', own).begin('bob@corp.test', { find: async () => entry('bob') })
    if (!turn.allowed) throw new Error('the owner is locked out')
    await turn.succeeded()
    // A login by the owner gives others no further tries.
    expect(await fail('bob', '192.0.2.2')).toBe(60)

    expect([await fail('bob', '192.0.2.2', own), await fail('bob@corp.test', '192.0.2.2', own)]).toEqual([0, 0])
    expect(await fail('bob', '192.0.2.2', own)).toBe(60)
    expect(await fail('bob', '192.0.2.2', [device('bob', 'd2')])).toBe(0)
  })

  test('a browser is known for its owner and for no other user', async () => {
    const { fail } = setUp({ maxFailedAttempts: 2, lockoutMillis: 60_000 })
    const tries = []
    for (let i = 0; i < 3; i++) tries.push(await fail('bob', '192.0.2.2', [device('eve', `d${i}`)]))
    expect(tries).toEqual([0, 0, 60])
  })

  test('a try counts for no user while the directory does not answer', async () => {
    const { fail, guardFrom } = setUp({ maxFailedAttempts: 2, lockoutMillis: 60_000 })
    const down = new Error('down')
    const guard = guardFrom('192.0.2.1')
    for (let i = 0; i < 60; i++) {
      await expect(guard.begin('bob', { find: () => Promise.reject(down) })).rejects.toBe(down)
    }
    expect(await fail('bob')).toBe(0)
  })

  test('the input of an unknown user is stored nowhere', async () => {
    const { guardFrom, audited, counted } = setUp()
    const turn = await guardFrom('192.0.2.1').begin('my-password-by-mistake')
    if (!turn.allowed) throw new Error('locked')
    await turn.failed('no such person')
    expect(audited).toMatchObject([{ kind: 'session', action: 'refuse', subject: expect.stringMatching(/^unknown:/) }])
    expect(JSON.stringify(audited)).not.toContain('my-password')
    expect(counted).toEqual(['c failed'])
  })

  test('every lock ends', () => {
    for (const policy of [accountPolicy, addressPolicy]) {
      for (const failures of [1, 10, 100, 1e6, 1e9]) {
        expect(policy.lockMillis(failures)).toBeLessThanOrEqual(15 * 60_000)
      }
    }
  })
})
