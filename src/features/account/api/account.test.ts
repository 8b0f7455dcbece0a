import { TOTP } from 'otpauth'
import { beforeEach, describe, expect, test } from 'vitest'
import type {
  AccountFactors,
  AccountSessions,
  EnrolledFactor,
  PasskeyEnrolment,
  TotpEnrolment,
} from '#features/account/contract/account.ts'
import { secondFactorProof, secondFactorSlot } from '#features/account/second-factors/second-factor-proof.ts'
import type { Identity } from '#identity/identity.ts'
import { settle } from '#kernel/awaitable.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { SessionView } from '#sdk/auth/session.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { memorySecondFactors } from '#testing/login/memory-second-factors.ts'
import { noSessions } from '#testing/login/no-sessions.ts'
import { SoftAuthenticator } from '#testing/login/soft-authenticator.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import account from './account.ts'
import { accountErrors } from './settings.ts'

const ann = subject('uid=ann,ou=people,o=Tremolo', { displayName: ['Ann'] })
const bob = subject('uid=bob,ou=people,o=Tremolo')
const change = { requestId: 'r' }

let now: number
let factors: ReturnType<typeof memorySecondFactors>
let slots: Map<string, JsonValue>
/** Chains that the filter required, and whether the session satisfies them. */
let required: string[]
let isFresh: boolean
let ended: string[]

beforeEach(() => {
  now = Date.UTC(2030, 0, 1)
  factors = memorySecondFactors()
  slots = new Map()
  required = []
  isFresh = true
  ended = []
})

const view = (id: string): SessionView => ({
  id,
  application: 'portal',
  chain: 'password',
  level: 10,
  started: new Date(now),
  lastUsed: new Date(now),
  expires: new Date(now + 1000),
  address: '203.0.113.7',
  agent: '<script>',
})

async function filter(params: ParamValues = {}): Promise<Filter> {
  const issues = noIssues()
  const given = { stepUpChain: 'strong', enrolChain: 'weak', ...params }
  const prepared = account.prepare(fakeParams(given), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const sessions = {
    ...noSessions,
    ofUser: async (user: Identity) => (user === ann.identity ? [view('s1'), view('s2')] : []),
    end: async (user: Identity, id: string) => ended.push(`${user} ${id}`) > 0 && ['s1', 's2'].includes(id),
    endAll: async (user: Identity, options?: { readonly except?: string }) =>
      ended.push(`${user} but ${options?.except}`),
  }
  return prepared.create(fakeModuleHost({ now: () => now, secondFactors: factors, sessions }))
}

interface Call {
  readonly body?: unknown
  readonly who?: typeof ann
  readonly type?: string
  readonly params?: ParamValues
  readonly session?: false
  readonly mount?: string
}

async function call<T = unknown>(method: string, path: string, more: Call = {}): Promise<{ status: number; body: T }> {
  const { body, who = ann, type = 'application/json', params = {}, session, mount = '/account' } = more
  const request = fakeRequest({
    method,
    url: `https://portal.test${mount}${path}`,
    headers: body === undefined ? {} : { 'content-type': type },
    body: typeof body === 'string' ? body : JSON.stringify(body ?? ''),
  })
  const handle: Exchange['session'] = {
    id: 's1',
    chain: 'password',
    level: 10,
    started: new Date(now),
    authenticated: new Date(now),
    expires: new Date(now + 1000),
    read: async (slot) => slots.get(slot),
    write: async (slot, value) => void (value === undefined ? slots.delete(slot) : slots.set(slot, value)),
    mark: async () => {},
  }
  const exchange: Exchange = {
    request,
    application: 'portal',
    mount,
    pathInfo: path,
    subject: who,
    ...(session === false
      ? {}
      : {
          session: handle,
          requireLogin: async (chain: string) => {
            required.push(chain)
            if (!isFresh) throw new GatewayError('AUTH_REQUIRED', 'log in')
            return undefined
          },
        }),
  }
  const account = await filter(params)
  const answer = await settle(
    () =>
      account.handle(exchange, async () => {
        throw new Error('nothing is behind it')
      }),
    (response) => response,
    (thrown): GatewayResponse => {
      const error = asGatewayError(thrown)
      return { status: error.status, ...accountErrors(error, 'r') }
    },
  )
  const text = String(answer.body ?? '')
  return { status: answer.status, body: (text === '' ? undefined : JSON.parse(text)) as T }
}

const codeOf = (secret: string): string => new TOTP({ secret }).generate({ timestamp: now })
const hasApp = (who = ann) =>
  factors.add(
    who,
    { id: 'f1', kind: 'totp', name: 'Phone', secret: { secret: 'JBSWY3DPEHPK3PXP' }, counter: 0 },
    change,
  )
const prove = (at = now) => slots.set(secondFactorSlot, secondFactorProof('totp', new Date(at)))

describe('sessions', () => {
  test('are listed with the current one marked, and ended', async () => {
    const { body } = await call<AccountSessions>('GET', '/sessions')
    expect(body.sessions.map(({ id, current, agent }) => [id, current, agent])).toEqual([
      ['s1', true, '<script>'],
      ['s2', false, '<script>'],
    ])
    expect((await call('DELETE', '/sessions/s2')).status).toBe(204)
    expect((await call('DELETE', '/sessions/s3')).status).toBe(404)
    expect(await call('DELETE', '/sessions')).toMatchObject({ status: 200 })
    expect(ended).toEqual(['s2', 's3', 'but s1'].map((which) => `${ann.identity} ${which}`))
    expect((await call<AccountSessions>('GET', '/sessions', { who: bob })).body.sessions).toEqual([])
  })

  test('the account shows the user', async () => {
    expect((await call('GET', '')).body).toMatchObject({ login: 'ann', displayName: 'Ann', session: { id: 's1' } })
    expect((await call('GET', '/account/', { mount: '/portal', session: false })).body).toEqual({
      login: 'ann',
      displayName: 'Ann',
    })
  })
})

describe('changing second factors', () => {
  test('needs a fresh login if the user has none', async () => {
    const begun = await call<TotpEnrolment>('POST', '/factors/totp')
    expect(begun.body.uri).toContain(begun.body.secret)
    expect(required).toEqual(['weak'])
    const body = { enrolment: begun.body.enrolment, code: codeOf(begun.body.secret), name: '  My\u0007 phone ' }
    const done = await call<EnrolledFactor>('POST', '/factors/totp/confirm', { body })
    expect([done.status, done.body.factor.name, done.body.recoveryCodes?.length]).toEqual([201, 'My phone', 10])
    expect(JSON.stringify(done.body)).not.toContain(begun.body.secret)
    const { body: listed } = await call<AccountFactors>('GET', '/factors')
    expect(listed).toMatchObject({ recoveryCodes: 10, offers: ['totp', 'passkey'] })
    expect(JSON.stringify(listed)).not.toContain(begun.body.secret)
    expect((await call('POST', '/factors/totp/confirm', { body })).status).toBe(403)
  })

  test('needs a login with a second factor if the user has one', async () => {
    await hasApp()
    const changes: [string, string][] = [
      ['POST', '/factors/totp'],
      ['POST', '/factors/passkey'],
      ['DELETE', '/factors/f1'],
      ['POST', '/recovery-codes'],
    ]
    for (const [method, path] of changes) {
      expect(await call(method, path)).toMatchObject({ status: 403, body: { stepUp: true } })
    }
    expect(new Set(required)).toEqual(new Set(['strong']))
    prove(now - 21 * 60_000)
    expect((await call('DELETE', '/factors/f1')).status).toBe(403)
    prove()
    isFresh = false
    expect(await call('DELETE', '/factors/f1')).toMatchObject({ status: 403, body: { stepUp: true } })
    isFresh = true
    expect((await call<{ recoveryCodes: string[] }>('POST', '/recovery-codes')).body.recoveryCodes).toHaveLength(10)
    expect((await call('DELETE', '/factors/f1')).status).toBe(204)
    expect(await factors.of(ann)).toEqual([])
  })

  test('needs a session', async () => {
    for (const path of ['/factors/totp', '/recovery-codes']) {
      expect((await call('POST', path, { session: false })).status).toBe(403)
    }
  })

  test("is limited to the user's own", async () => {
    await hasApp(bob)
    prove()
    expect((await call('DELETE', '/factors/f1')).status).toBe(404)
    expect((await call('PATCH', '/factors/f1', { body: { name: 'Mine' } })).status).toBe(404)
    expect((await factors.of(bob))[0]?.name).toBe('Phone')
  })

  test('rejects an answer to another enrolment, an old one, or another kind', async () => {
    const begun = await call<TotpEnrolment>('POST', '/factors/totp')
    const { enrolment, secret } = begun.body
    const confirm = (body: object) => call('POST', '/factors/totp/confirm', { body })
    expect((await confirm({ enrolment: 'other', code: codeOf(secret) })).status).toBe(400)
    expect((await confirm({ enrolment, code: '000000' })).status).toBe(400)
    const asKey = { enrolment, response: {} }
    expect((await call('POST', '/factors/passkey/confirm', { body: asKey })).status).toBe(400)
    now += 11 * 60_000
    expect((await confirm({ enrolment, code: codeOf(secret) })).status).toBe(400)
    expect(await factors.of(ann)).toEqual([])
  })

  test('creates a passkey for this site, and for no other', async () => {
    const device = new SoftAuthenticator()
    const begun = await call<PasskeyEnrolment>('POST', '/factors/passkey', { params: { rpId: 'test' } })
    const { enrolment, options } = begun.body
    const { challenge, rp } = options as { challenge: string; rp: { id: string } }
    expect(rp.id).toBe('test')
    const confirm = (origin: string) => {
      const response = device.create({ origin, rpId: 'test', challenge })
      const params = { rpId: 'test' }
      return call<EnrolledFactor>('POST', '/factors/passkey/confirm', { body: { enrolment, response }, params })
    }
    expect((await confirm('https://evil.test')).status).toBe(400)
    expect((await confirm('https://portal.test')).body.factor).toMatchObject({ kind: 'passkey', name: 'Passkey' })
  })
})

describe('invalid requests are reported and change nothing', () => {
  test.each<[string, string, unknown, number]>([
    ['PATCH', '/factors/f1', {}, 400],
    ['PATCH', '/factors/f1', { name: '' }, 400],
    ['PATCH', '/factors/f1', { name: '\u0000\u0007' }, 400],
    ['PATCH', '/factors/f1', { name: 7 }, 400],
    ['PATCH', '/factors/f1', { name: 'x'.repeat(201) }, 400],
    ['PATCH', '/factors/f1', { name: 'x', kind: 'passkey' }, 400],
    ['PATCH', '/factors/f1', '{"name":"a","name":"b"}', 400],
    ['PATCH', '/factors/f1', '{', 400],
    ['POST', '/factors/totp/confirm', null, 400],
    ['POST', '/factors/totp/confirm', { enrolment: 1, code: 2 }, 400],
    ['POST', '/factors/passkey/confirm', { enrolment: 'x', response: 'y' }, 400],
    ['PUT', '/factors', {}, 405],
    ['POST', '/sessions', {}, 405],
    ['GET', '/factors/totp', undefined, 405],
    ['DELETE', '/factors/f1/x', undefined, 404],
    ['GET', '/constructor', undefined, 404],
    ['GET', '/__proto__/x', undefined, 404],
    ['DELETE', '/sessions/..%2f', undefined, 404],
    ['constructor', '/factors', undefined, 405],
  ])('%s %s %j: %i', async (method, path, body, status) => {
    await hasApp()
    prove()
    expect(await call(method, path, body === undefined ? {} : { body })).toMatchObject({ status })
    expect((await factors.of(ann)).map(({ name }) => name)).toEqual(['Phone'])
  })

  test('only JSON is read', async () => {
    await hasApp()
    const sent = { body: { name: 'x' }, type: 'text/plain' }
    expect((await call('PATCH', '/factors/f1', sent)).status).toBe(415)
  })

  test('a feature that is off does not exist', async () => {
    const only = { params: { offers: ['passkey'] } }
    expect((await call('POST', '/factors/totp', only)).status).toBe(404)
    expect((await call('POST', '/factors/passkey', only)).status).toBe(200)
  })
})

describe('a step-up', () => {
  test('redirects to the fixed page', async () => {
    expect(await call('GET', '/step-up')).toMatchObject({ status: 303 })
    expect(required).toEqual(['weak'])
  })

  test('with a chain without a second factor does not count', async () => {
    await hasApp()
    expect((await call('GET', '/step-up')).status).toBe(403)
    prove()
    expect((await call('GET', '/step-up')).status).toBe(303)
  })
})

test('parameters are checked', () => {
  const problems = (params: ParamValues) => {
    const issues = noIssues()
    const context = fakeParseContext()
    account.prepare(fakeParams(params), issues, context)
    return { texts: issueTexts(issues.list), references: context.references.map(({ kind, name }) => `${kind} ${name}`) }
  }
  expect(problems({}).texts).toEqual(['error params.stepUpChain: parameter "stepUpChain" is required'])
  const chains = { stepUpChain: 'strong', enrolChain: 'weak' }
  expect(problems(chains)).toEqual({ texts: [], references: ['chain strong', 'chain weak'] })
  for (const homeURL of ['https://evil.test/', '//evil.test', '/\\evil.test', 'portal']) {
    expect(problems({ ...chains, homeURL }).texts).toEqual([expect.stringMatching(/homeURL.*path of this host/)])
  }
  expect(problems({ ...chains, offers: ['sms'] }).texts).toEqual([expect.stringMatching(/offers.*not "sms"/)])
})
