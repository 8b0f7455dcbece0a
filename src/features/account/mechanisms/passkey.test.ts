import { beforeEach, describe, expect, test } from 'vitest'
import { secondFactorSlot } from '#features/account/second-factors/second-factor-proof.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import { challengeOf, type FakeLogin, fakeLogin } from '#testing/login/fake-login-attempt.ts'
import { memorySecondFactors } from '#testing/login/memory-second-factors.ts'
import { type SoftAnswer, SoftAuthenticator } from '#testing/login/soft-authenticator.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import passkey from './passkey.ts'

const ann = subject('uid=ann,ou=people,o=Tremolo')
const site = { origin: 'https://portal.test', rpId: 'portal.test' }

let factors: ReturnType<typeof memorySecondFactors>
let device: SoftAuthenticator

beforeEach(() => {
  factors = memorySecondFactors()
  device = new SoftAuthenticator()
})

async function mechanism(params: ParamValues = {}): Promise<AuthMechanism> {
  const issues = noIssues()
  const prepared = passkey.prepare(fakeParams({ enrol: 'true', ...params }), fakeParams({}), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  return prepared.create(fakeModuleHost({ secondFactors: factors }))
}

const logIn = async (params: ParamValues = {}): Promise<FakeLogin> => {
  const login = fakeLogin(await mechanism(params), { subject: ann, uri: '/auth/passkey' })
  await login.begin()
  await login.proceed()
  return login
}

type Spoiled = Partial<SoftAnswer>
const answerOf = (login: FakeLogin, spoiled: Spoiled): SoftAnswer => ({
  ...site,
  challenge: String(login.state['challenge']),
  ...spoiled,
})
const make = (login: FakeLogin, spoiled: Spoiled = {}): Promise<AuthOutcome> =>
  login.post({ response: JSON.stringify(device.create(answerOf(login, spoiled))) })
const show = (login: FakeLogin, spoiled: Spoiled = {}, by = device): Promise<AuthOutcome> =>
  login.post({ response: JSON.stringify(by.get(answerOf(login, spoiled))) })

/** A user whose device has a passkey. */
async function enrolled(params: ParamValues = {}): Promise<void> {
  const login = await logIn(params)
  expect(challengeOf(await make(login)).body).toContain('I&#39;ve saved them')
  expect((await login.post({})).kind).toBe('passed')
}

describe('a passkey', () => {
  test('is created at the first login and used at the next', async () => {
    await enrolled()
    const [kept] = await factors.of(ann)
    expect(kept?.secret).toMatchObject({ id: device.id, transports: ['internal'] })
    const login = await logIn()
    expect(await show(login)).toMatchObject({
      kind: 'passed',
      session: { slots: { [secondFactorSlot]: { kind: 'passkey' } } },
    })
  })

  test('is requested by a page whose only script is the mechanism’s own', async () => {
    const on = await mechanism()
    const login = fakeLogin(on, { subject: ann, uri: '/auth/passkey' })
    const { body, csp } = challengeOf(await login.proceed())
    expect(body.match(/<script[^>]*>/g)).toEqual(['<script src="/auth/passkey/passkey.js" defer>'])
    expect(csp).toContain("script-src 'self'")
    expect(csp).not.toContain('unsafe')
    const script = await on.serve?.(fakeRequest({}), '/passkey.js')
    expect(script?.headers['content-type']).toBe('text/javascript; charset=utf-8')
    expect(String(script?.body)).toContain('navigator.credentials')
    expect(await on.serve?.(fakeRequest({}), '/other.js')).toBeUndefined()
    expect(await on.serve?.(fakeRequest({ method: 'POST' }), '/passkey.js')).toBeUndefined()
  })

  test('keeps its challenge while the page is reloaded, and gets a new one after an answer', async () => {
    await enrolled()
    const login = await logIn()
    const first = login.state['challenge']
    await login.proceed()
    expect(login.state['challenge']).toBe(first)
    expect(challengeOf(await show(login, { origin: 'https://evil.test' })).status).toBe(401)
    expect(login.state['challenge']).not.toBe(first)
    expect((await show(login, { challenge: String(first) })).kind).toBe('challenge')
  })

  test.each<[string, Spoiled]>([
    ['for another challenge', { challenge: 'AAAA' }],
    ['at another site', { origin: 'https://evil.test' }],
    ['for another domain', { rpId: 'evil.test' }],
    ['of another kind', { type: 'webauthn.create' }],
    ['that was counted before, as by a copy', { counter: 0 }],
  ])('%s is rejected, and it counts', async (_case, spoiled) => {
    await enrolled()
    expect((await show(await logIn())).kind).toBe('passed')
    const login = await logIn()
    expect(challengeOf(await show(login, spoiled)).status).toBe(401)
    expect(login.counted.at(-1)).toBe('failed wrong second factor')
  })

  test('of another user is rejected, and so is one that claims to be another', async () => {
    await enrolled()
    const stranger = new SoftAuthenticator()
    expect(challengeOf(await show(await logIn(), {}, stranger)).status).toBe(401)
    const login = await logIn()
    const forged = { ...stranger.get(answerOf(login, {})), id: device.id, rawId: device.id }
    expect(challengeOf(await login.post({ response: JSON.stringify(forged) })).status).toBe(401)
  })

  test.each(['', '{}', '[]', 'null', '{"id":7}', '{"id":"x","response":{}}', '{"__proto__":{}}', 'x'.repeat(60_000)])(
    'is not "%s"',
    async (response) => {
      await enrolled()
      expect(challengeOf(await (await logIn()).post({ response })).status).toBe(401)
    },
  )

  test.each<[string, Spoiled]>([
    ['for another challenge', { challenge: 'AAAA' }],
    ['at another site', { origin: 'https://evil.test' }],
    ['for another domain', { rpId: 'evil.test' }],
  ])('created %s is not stored', async (_case, spoiled) => {
    expect(challengeOf(await make(await logIn(), spoiled)).status).toBe(400)
    expect(await factors.of(ann)).toEqual([])
  })

  test('must be verified by the device if that is required', async () => {
    const strict = { userVerification: 'required' }
    await enrolled(strict)
    expect((await show(await logIn(strict), { userVerified: false })).kind).toBe('challenge')
    expect((await show(await logIn(strict))).kind).toBe('passed')
    expect((await show(await logIn(), { userVerified: false })).kind).toBe('passed')
  })

  test('is for the configured domain', async () => {
    const login = await logIn({ rpId: 'test' })
    expect(JSON.stringify(login.state['options'])).toContain('"id":"test"')
    expect(challengeOf(await make(login, { rpId: 'test' })).body).toContain('I&#39;ve saved them')
  })
})

test('an invalid domain is an error', () => {
  for (const rpId of ['https://portal.test', 'Portal.test', 'portal.test:8443', 'a b']) {
    const issues = noIssues()
    passkey.prepare(fakeParams({ rpId }), fakeParams({}), issues, fakeParseContext())
    expect(issueTexts(issues.list)).toEqual([expect.stringMatching(/rpId.*must be a domain/)])
  }
})

test('in the form of OpenUnison, users set up their passkeys again, after another mechanism', () => {
  const documented = {
    attribute: 'carLicense',
    encryptionKeyName: 'sessionKey',
    uidAttributeName: 'uid',
    formURI: '/auth/forms/webauthnAuthSingleStep.jsp',
    workflowName: 'update-webauthn',
    allowPassword: 'true',
    userVerificationRequirement: 'discouraged',
    credentialIdAttributeName: 'departmentNumber',
  }
  const problems = (params: ParamValues): string[] => {
    const issues = noIssues()
    passkey.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
    return issueTexts(issues.list)
  }
  const again = expect.stringMatching(
    /^warning params\.attribute: the second factors that OpenUnison stored are not read/,
  )
  expect(problems(documented)).toEqual([again])
  expect(problems({ ...documented, singleStep: 'true' })).toEqual([
    expect.stringMatching(/^error params\.singleStep: .* put a mechanism such as auth\.FormLogin before this one/),
    again,
  ])
  expect(problems({ userVerificationRequirement: 'sometimes' })).toHaveLength(1)
})
