import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { type ChainCall, ChainRunner } from '#requests/routing/chain.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import { sampled } from '#testing/hostile/sample.ts'
import { subject } from '#testing/login/subjects.ts'
import { type FakeHostOptions, fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { type FakeRequest, fakeRequest } from '#testing/modules/fake-request.ts'
import plugin from './plugin.ts'

const opened: AuthMechanism[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((mechanism) => mechanism.close?.()))
})

function prepare(params: ParamValues) {
  const issues = noIssues()
  const prepared = plugin.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
  return { prepared, problems: issueTexts(issues.list) }
}

async function open(javaScript: string, params: ParamValues = {}, host: FakeHostOptions = {}): Promise<AuthMechanism> {
  const { prepared, problems } = prepare({ javaScript, noMatchOU: 'clients', ...params })
  expect(problems).toEqual([])
  const mechanism = await prepared.create(fakeModuleHost(host))
  opened.push(mechanism)
  return mechanism
}

const begin = async (mechanism: AuthMechanism, request: FakeRequest = {}): Promise<AuthOutcome> =>
  mechanism.begin({ request: fakeRequest(request), subject: undefined, root: 'o=Tremolo' })

const returning = (expression: string): string => `function authenticate(request, context) { return ${expression} }`

function plain(outcome: AuthOutcome) {
  if (outcome.kind !== 'authenticated') throw new Error(`the outcome is ${outcome.kind}`)
  const { dn, uid, attributes } = outcome.subject
  return { dn: dn.toString(), uid, attributes: { ...attributes.toObject() } }
}

describe('a caller', () => {
  test('is a mock entry with the attributes of the answer', async () => {
    const mechanism = await open(
      returning('{ subject: { uid: "ada", attributes: { role: ["a", "b"], uid: ["root"] } } }'),
    )
    expect(plain(await begin(mechanism))).toEqual({
      dn: 'uid=ada,ou=clients,o=Tremolo',
      uid: 'ada',
      attributes: { role: ['a', 'b'], uid: ['ada'], objectClass: ['inetOrgPerson'] },
    })
  })

  test('or the one entry of the directory that lookupFilter finds', async () => {
    const dn = Dn.parse('uid=ada,ou=people,o=Tremolo')
    const entries = [{ dn, attributes: Attributes.from({ uid: ['ada'], mail: ['a@x.test'] }) }]
    const link = { linkToDirectory: 'true', lookupFilter: '(uid=${uid})' }
    const mechanism = await open(returning('{ subject: { uid: request.headers["x-who"][0] } }'), link, { entries })
    expect(plain(await begin(mechanism, { headers: { 'x-who': 'ada' } })).dn).toBe('uid=ada,ou=people,o=Tremolo')
    expect(plain(await begin(mechanism, { headers: { 'x-who': '*' } })).dn).toBe('uid=*,ou=clients,o=Tremolo')
  })

  test('keeps any name, as a plain value', async () => {
    const mechanism = await open(returning('{ subject: { uid: request.headers["x-who"][0] } }'))
    const keeps = async (name: string): Promise<void> => {
      const outcome = await begin(mechanism, { headers: { 'x-who': name } })
      if (outcome.kind !== 'authenticated') throw new Error(`the outcome is ${outcome.kind}`)
      const { dn, uid, attributes } = outcome.subject
      expect(uid).toBe(name)
      expect(attributes.values('uid')).toEqual([name])
      expect(dn.isWithin(Dn.parse('ou=clients,o=Tremolo'))).toBe(true)
      expect(Dn.parse(dn.toString()).equals(dn)).toBe(true)
    }
    const names = fc.array(fc.string({ unit: 'binary', minLength: 1 }), { minLength: 50, maxLength: 50 })
    await fc.assert(
      fc.asyncProperty(names, async (batch) => void (await Promise.all(batch.map(keeps)))),
      { numRuns: sampled(5, 20) },
    )
  }, 30_000)
})

test('the function sees credentials, the caller of earlier mechanisms, and a body if configured', async () => {
  const body = 'signed'
  const seen = returning(
    '{ subject: { uid: JSON.stringify([request.headers.authorization, context.subject?.uid, request.body]) } }',
  )
  const request = fakeRequest({ method: 'POST', headers: { authorization: 'Basic x' }, body })
  const before = subject('uid=ada,o=Tremolo')
  const without = await (await open(seen)).begin({ request, subject: before, root: 'o=Tremolo' })
  expect(plain(without).uid).toBe(JSON.stringify([['Basic x'], before.uid, null]))
  const mechanism = await open(seen, { maxBodyKilobytes: '1' })
  expect(plain(await mechanism.begin({ request, subject: before, root: 'o=Tremolo' })).uid).toBe(
    JSON.stringify([['Basic x'], before.uid, body]),
  )
})

describe('a refusal', () => {
  test.each([
    ['{ refused: "unknown key" }', { reason: 'unknown key', status: 401, headers: {} }],
    [
      '{ refused: "no key", status: 401, headers: { "WWW-Authenticate": "ApiKey" }, noCredential: true }',
      { reason: 'no key', status: 401, headers: { 'www-authenticate': 'ApiKey' }, noCredential: true },
    ],
    ['{ refused: "locked", status: 403, noCredential: false }', { reason: 'locked', status: 403, headers: {} }],
  ])('%s', async (expression, expected) => {
    expect(await begin(await open(returning(expression)))).toEqual({ kind: 'rejected', ...expected })
  })

  test('has a reason that fits the log', async () => {
    const outcome = await begin(await open(returning('{ refused: "x".repeat(100000) }')))
    expect(outcome).toMatchObject({ kind: 'rejected', reason: 'x'.repeat(1000) })
  })
})

describe('an answer that is neither', () => {
  /** One process has them all, since each takes longer to start than to answer. */
  const wrong = [
    'undefined',
    'null',
    'true',
    '{}',
    '"ada"',
    '{ kind: "passed" }',
    '{ subject: null }',
    '{ subject: "ada" }',
    '{ subject: {} }',
    '{ subject: { uid: "" } }',
    '{ subject: { uid: ["ada"] } }',
    '{ subject: { uid: "ada", dn: "o=Tremolo" } }',
    '{ subject: { uid: "ada", attributes: { role: "admin" } } }',
    '{ subject: { uid: "ada", attributes: { ["__proto__"]: ["x"] } } }',
    '{ subject: { uid: "ada" }, refused: "x" }',
    '{ subject: { uid: "ada" }, level: 99 }',
    '{ refused: "" }',
    '{ refused: true }',
    '{ refused: "x", status: 200 }',
    '{ refused: "x", noCredential: 1 }',
    '{ refused: "x", headers: { "x-a": "b\\r\\nc: d" } }',
    '{ refused: "x", headers: { "x-a": ["b", "c"] } }',
  ]
  let returnsWrong: AuthMechanism
  beforeAll(async () => {
    returnsWrong = await open(
      returning(`[${wrong.map((one) => `() => (${one})`).join()}][request.headers['x-answer'][0]]()`),
    )
    opened.splice(0)
  })
  afterAll(() => returnsWrong.close?.())
  test.each(wrong)('is a failure: %s', async (expression) => {
    const answer = String(wrong.indexOf(expression))
    const asked = begin(returnsWrong, { headers: { 'x-answer': answer } })
    await expect(asked).rejects.toMatchObject({ code: 'TARGET_FAILED' })
  })

  test.each([
    ['throw new Error("no")', 'TARGET_FAILED'],
    ['throw Object.assign(new Error("no"), { code: "unreachable" })', 'TARGET_UNREACHABLE'],
    ['process.exit(0)', 'TARGET_FAILED'],
    ['for (;;) {}', 'TARGET_TIMEOUT'],
  ])('rejects every caller, also if the chain does not require it: %s', async (body, code) => {
    const broken = await open(`function authenticate() { ${body} }`, { timeoutSeconds: '1' })
    const other = await open(returning('{ subject: { uid: "ada" } }'))
    const links = [
      { name: 'broken', required: false, mechanism: broken },
      { name: 'other', required: false, mechanism: other },
    ]
    const chain = { name: 'c', level: 20, root: 'o=Tremolo', finishOnRequiredSuccess: false, links }
    const call: ChainCall = {
      begin: ({ mechanism }, { root }, subject) => mechanism.begin({ request: fakeRequest({}), subject, root }),
    }
    await expect(new ChainRunner(new Map()).run(chain, call)).rejects.toMatchObject({ code })
  })
})

test('parameters are checked, and all others reach init', async () => {
  expect(prepare({ javaScript: returning('0') }).problems).toEqual([
    'error params.noMatchOU: parameter "noMatchOU" is required',
  ])
  expect(prepare({ javaScript: returning('0'), noMatchOU: 'x', linkToDirectory: 'true' }).problems).toEqual([
    'error params.lookupFilter: parameter "lookupFilter" is required where linkToDirectory is "true"',
  ])
  const mechanism = await open(
    `function init(config, name) { state.shown = JSON.stringify([config, name]) }
     function authenticate() { return { subject: { uid: state.shown } } }`,
    { key: ['a', 'b'] },
  )
  expect(plain(await begin(mechanism)).uid).toBe('[{"key":["a","b"]},"test"]')
  await expect(open('function other() {}')).rejects.toThrow(/no function authenticate/)
})
