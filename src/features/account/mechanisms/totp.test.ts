import { TOTP } from 'otpauth'
import { beforeEach, describe, expect, test } from 'vitest'
import { secondFactorSlot } from '#features/account/second-factors/second-factor-proof.ts'
import { Attributes } from '#identity/attributes.ts'
import type { AuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { challengeOf, type FakeLogin, fakeLogin } from '#testing/login/fake-login-attempt.ts'
import { memorySecondFactors } from '#testing/login/memory-second-factors.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import totp from './totp.ts'

const ann = subject('uid=ann,ou=people,o=Tremolo')
const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
const change = { requestId: 'r' }

let now: number
let factors: ReturnType<typeof memorySecondFactors>

beforeEach(() => {
  now = Date.UTC(2030, 0, 1)
  factors = memorySecondFactors()
})

async function mechanism(params: ParamValues = {}): Promise<AuthMechanism> {
  const issues = noIssues()
  const prepared = totp.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  expect(prepared.interactive).toBe(true)
  return prepared.create(fakeModuleHost({ now: () => now, secondFactors: factors }))
}

const logIn = async (params: ParamValues = {}, who = ann): Promise<FakeLogin> =>
  fakeLogin(await mechanism(params), { subject: who })
const codeOf = (key: string, later = 0): string => new TOTP({ secret: key }).generate({ timestamp: now + later * 1000 })
const enrolled = () =>
  factors.add(ann, { id: 'f1', kind: 'totp', name: 'Phone', secret: { secret }, counter: 0 }, change)

describe('with passWithoutFactor', () => {
  const params = { passWithoutFactor: 'true' }

  test('a user without a second factor passes, and a user with an app must enter its code', async () => {
    expect(await (await logIn(params)).begin()).toEqual({ kind: 'passed' })
    await enrolled()
    const login = await logIn(params)
    expect(challengeOf(await login.begin()).status).toBe(303)
    expect((await login.post({ code: '000000' })).kind).toBe('challenge')
    expect((await login.post({ code: codeOf(secret) })).kind).toBe('passed')
  })

  test('a user who has only a passkey does not pass with a password', async () => {
    await factors.add(ann, { id: 'k1', kind: 'passkey', name: 'Key', secret: {}, counter: 0 }, change)
    expect(await (await logIn(params)).begin()).toMatchObject({ kind: 'rejected', status: 403 })
  })

  test('excludes enrol', () => {
    const issues = noIssues()
    totp.prepare(fakeParams({ ...params, enrol: 'true' }), fakeParams({}), issues, fakeParseContext())
    expect(issueTexts(issues.list)).toEqual([expect.stringContaining('exclude each other')])
  })
})

describe('a user with an app', () => {
  test('must enter the code, on a page without scripts, and passes with it', async () => {
    await enrolled()
    const login = await logIn()
    expect(challengeOf(await login.begin()).location).toBe(`/auth/step?login=${'L'.repeat(43)}`)
    const { status, body, csp } = challengeOf(await login.proceed())
    expect(status).toBe(200)
    expect(body).toContain('autocomplete="one-time-code"')
    expect(body).not.toContain('<script')
    expect(csp).not.toContain('script-src')
    const outcome = await login.post({ code: codeOf(secret) })
    expect(outcome).toMatchObject({ kind: 'passed', session: { slots: { [secondFactorSlot]: { kind: 'totp' } } } })
    expect(login.counted).toEqual([`begin second factor of ${ann.identity}`, 'succeeded'])
  })

  test('cannot use a code twice, not even in another login', async () => {
    await enrolled()
    const code = codeOf(secret)
    expect((await (await logIn()).post({ code })).kind).toBe('passed')
    const { status, body } = challengeOf(await (await logIn()).post({ code }))
    expect(status).toBe(401)
    expect(body).toContain('role="alert"')
    now += 30_000
    expect((await (await logIn()).post({ code: codeOf(secret) })).kind).toBe('passed')
  })

  test('passes once with the same code in two concurrent logins', async () => {
    await enrolled()
    const code = codeOf(secret)
    const logins = await Promise.all([logIn(), logIn(), logIn()])
    const outcomes = await Promise.all(logins.map((login) => login.post({ code })))
    expect(outcomes.filter(({ kind }) => kind === 'passed')).toHaveLength(1)
  })

  test.each(['', '000000', 'abc', '12345678', '<script>', '\0'])(
    'is rejected with "%s", and it counts',
    async (code) => {
      await enrolled()
      const login = await logIn()
      expect(challengeOf(await login.post({ code })).status).toBe(401)
      expect(login.counted.at(-1)).toBe('failed wrong second factor')
    },
  )

  test('is not checked while locked', async () => {
    await enrolled()
    const login = await logIn()
    login.locked = true
    const outcome = await login.post({ code: codeOf(secret) })
    expect(challengeOf(outcome).status).toBe(429)
    if (outcome.kind === 'challenge') expect(outcome.response.headers['retry-after']).toBe('7')
  })

  test('passes with a recovery code, once', async () => {
    const added = await enrolled()
    const [code = ''] = added.added ? (added.recoveryCodes ?? []) : []
    expect(await (await logIn()).post({ code })).toMatchObject({
      kind: 'passed',
      session: { slots: { [secondFactorSlot]: { kind: 'recovery' } } },
    })
    expect(challengeOf(await (await logIn()).post({ code })).status).toBe(401)
  })

  test("cannot use another's code", async () => {
    await enrolled()
    const bob = subject('uid=bob,ou=people,o=Tremolo')
    await factors.add(
      bob,
      { id: 'f2', kind: 'totp', name: 'Phone', secret: { secret: 'JBSWY3DPEHPK3PXP' }, counter: 0 },
      change,
    )
    expect(challengeOf(await (await logIn({}, bob)).post({ code: codeOf(secret) })).status).toBe(401)
  })
})

describe('a user without an app', () => {
  test('is rejected if enrolment at login is off', async () => {
    expect(await (await logIn()).begin()).toMatchObject({ kind: 'rejected', status: 403 })
    expect(await (await logIn()).proceed()).toMatchObject({ kind: 'rejected', status: 403 })
  })

  test('enrols, sees recovery codes, and continues', async () => {
    const login = await logIn({ enrol: 'true', issuer: 'The <Firm>' })
    await login.begin()
    const { body } = challengeOf(await login.proceed())
    const key = String(login.state['secret'])
    expect(body).toContain('<svg role="img"')
    expect(body).toContain(key.slice(0, 4))
    expect(body).not.toContain('<Firm>')
    const before = login.state
    await login.proceed()
    expect(login.state).toBe(before)
    expect(challengeOf(await login.post({ code: '000000' })).status).toBe(400)
    expect(await factors.of(ann)).toEqual([])
    const codes = challengeOf(await login.post({ code: codeOf(key) }))
    expect(codes.body.match(/<code>/g)).toHaveLength(10)
    expect(challengeOf(await login.proceed()).body).toBe(codes.body)
    expect((await login.post({})).kind).toBe('passed')
    expect((await factors.of(ann)).map(({ kind, secret: kept }) => [kind, kept])).toEqual([['totp', { secret: key }]])
    expect(challengeOf(await (await logIn()).post({ code: codeOf(key) })).status).toBe(401)
    now += 30_000
    expect((await (await logIn()).post({ code: codeOf(key) })).kind).toBe('passed')
  })

  test('with a passkey is rejected: a stolen password must not be enough to set up an app', async () => {
    await factors.add(ann, { id: 'p', kind: 'passkey', name: 'Key', secret: {}, counter: 0 }, change)
    expect(await (await logIn({ enrol: 'true' })).begin()).toMatchObject({ kind: 'rejected', status: 403 })
  })

  test('who enrolled meanwhile must use that app: an earlier enrolment is worthless', async () => {
    const thief = await logIn({ enrol: 'true' })
    await thief.proceed()
    const stolen = String(thief.state['secret'])
    await enrolled()
    expect(challengeOf(await thief.post({ code: codeOf(stolen) })).status).toBe(401)
    expect((await factors.of(ann)).map(({ id }) => id)).toEqual(['f1'])
  })
})

test('only a browser with a user who logged in first gets the page', async () => {
  const on = await mechanism({ enrol: 'true' })
  expect((await fakeLogin(on).begin()).kind).toBe('rejected')
  const attempt = { request: fakeRequest({}), subject: ann, root: 'o=Tremolo' }
  expect(await on.begin(attempt)).toMatchObject({ kind: 'rejected', noCredential: true })
})

test('nothing exists below its address, and only forms are accepted', async () => {
  await enrolled()
  const login = await logIn()
  await expect(login.proceed({ pathInfo: '/x' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(login.proceed({ method: 'DELETE' })).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
  await expect(login.proceed({ method: 'POST', body: '{}' })).rejects.toMatchObject({ code: 'UNSUPPORTED_MEDIA_TYPE' })
})

describe('in the form of OpenUnison', () => {
  const documented = {
    formURI: '/auth/forms/otp.jsp',
    keyName: 'sessionkey',
    attributeName: 'givenName',
    windowSize: '4',
  }
  const problems = (params: ParamValues): string[] => {
    const issues = noIssues()
    totp.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
    return issueTexts(issues.list)
  }

  test('check says that users set up their app again, and how', () => {
    const warning = (text: string) => [
      expect.stringMatching(`^warning params.attributeName: the second factors that OpenUnison stored.*${text}`),
    ]
    expect(problems(documented)).toEqual(warning('get 403 until they set one up again: add enrol'))
    expect(problems({ ...documented, enrol: 'true' })).toEqual(warning('with their password alone'))
    expect(problems({ ...documented, passWithoutFactor: 'true' })).toEqual(warning('pass without a second factor'))
  })

  test('a user without an app of this gateway is refused', async () => {
    const prepared = totp.prepare(fakeParams(documented), fakeParams({}), noIssues(), fakeParseContext())
    const login = await prepared.create(fakeModuleHost({ now: () => now, secondFactors: factors }))
    const who = { ...ann, attributes: Attributes.from({ givenName: ['stored key'] }) }
    expect(await fakeLogin(login, { subject: who }).begin()).toMatchObject({ kind: 'rejected', status: 403 })
  })
})
