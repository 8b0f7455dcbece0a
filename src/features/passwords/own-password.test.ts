import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { privateErrors } from '#sdk/api/json-answer.ts'
import type { SessionHandle } from '#sdk/auth/session.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { ann, outsider, person } from '#testing/modules/main-fixture.ts'
import { MemoryRuns } from '#testing/workflows/memory-runs.ts'
import ownPassword from './own-password.ts'

const basic: ParamValues = {
  displayNameAttribute: 'displayName',
  'frontPage.title': 'New password',
  'frontPage.text': 'Choose well',
  homeURL: '/scale/',
  logoutURL: '/logout',
  uidAttributeName: 'uid',
  reason: 'Password change',
  workflowName: 'set-password',
  validatorClassName: 'com.tremolosecurity.scalejs.password.validators.BasicValidator',
  synchronous: 'true',
}

const prepare = (params: ParamValues) => {
  const issues = noIssues()
  const prepared = ownPassword.prepare(fakeParams(params), issues, fakeParseContext())
  return { prepared, issues: issueTexts(issues.list) }
}

const now = Date.UTC(2030, 0, 1)
const session = (minutes: number): SessionHandle =>
  ({ id: 's1', authenticated: new Date(now - minutes * 60_000) }) as SessionHandle

async function open(more: ParamValues = {}) {
  const { prepared, issues } = prepare({ ...basic, ...more })
  expect(issues).toEqual([])
  const calls: WorkflowCall[] = []
  const runs = new MemoryRuns()
  const outcome = { changes: 1 }
  runs.run = async (call) => {
    calls.push(call)
    return { id: 'r', status: call.asynchronous === true ? 'accepted' : 'completed', changes: outcome.changes }
  }
  const host = fakeModuleHost({ entries: [person('ann'), person('bob')], runs, now: () => now })
  const filter = await prepared.create(host)
  const send = async (method: string, path: string, body?: unknown, { caller = ann, age = 1, kept = true } = {}) => {
    const request = fakeRequest({
      method,
      url: `https://portal.test/scale/password${path}`,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    const exchange = { request, application: 'p', mount: '/scale/password', pathInfo: path, subject: caller }
    try {
      const answer = await filter.handle({ ...exchange, ...(kept ? { session: session(age) } : {}) }, async () =>
        expect.unreachable(),
      )
      return { status: answer.status, body: JSON.parse(String(answer.body)) }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return { status: error.status, body: JSON.parse(String(privateErrors(error, 'r', request).body)) }
    }
  }
  const submit = (password1: string, more: Parameters<typeof send>[3] & { readonly again?: string } = {}) =>
    send('POST', '/submit', { password1, password2: more.again ?? password1 }, more)
  return { send, submit, calls, runs, outcome }
}

test('the page gets its texts, and nothing about the workflow and the rules', async () => {
  const { send } = await open()
  const { body } = await send('GET', '/config', undefined, {
    caller: subject('uid=ann,ou=people,o=x', { uid: ['ann'], displayName: ['Ann Doe'] }),
  })
  expect(body).toMatchObject({
    displayName: 'Ann Doe',
    homeURL: '/scale/',
    config: {
      frontPage: { title: 'New password', text: 'Choose well' },
      homeURL: '/scale/',
      logoutURL: '/logout',
      uidAttribute: 'uid',
      runSynchronously: true,
      headerTitle: 'Gatehouse',
      themePrimaryMain: expect.stringMatching(/^#/),
    },
  })
  expect(JSON.stringify(body)).not.toMatch(/set-password|Validator/)
})

describe('a new password', () => {
  test('is set by the workflow for the caller, whose session stays', async () => {
    const { submit, calls } = await open()
    expect(await submit('correct horse')).toEqual({ status: 200, body: { status: 'completed' } })
    expect(calls).toMatchObject([
      {
        head: {
          workflow: 'set-password',
          requester: 'ann',
          reason: 'Password change',
          who: { requester: ann.identity, subject: ann.identity },
        },
        password: 'correct horse',
        session: 's1',
        keepGroups: true,
        user: { userID: 'ann' },
      },
    ])
    const later = await open({ synchronous: 'false' })
    expect(await later.submit('correct horse')).toEqual({ status: 200, body: { status: 'accepted' } })
  })

  test('that the workflow did not set is not called set', async () => {
    const { submit, outcome } = await open()
    outcome.changes = 0
    expect(await submit('correct horse')).toMatchObject({ status: 500, body: { code: 'INTERNAL' } })
  })

  test.each([
    ['', '', {}],
    ['correct horse', 'battery staple', {}],
    ['short', 'short', {}],
    ['x'.repeat(129), 'x'.repeat(129), {}],
    ['\ud800 and more', '\ud800 and more', {}],
    ['no upper case 1!', 'no upper case 1!', { 'validator.params': ['requireUpper=true'] }],
    ['No number here!', 'No number here!', { 'validator.params': ['minRequirements=0'] }],
    ['only letters', 'only letters', { 'validator.params': ['minRequirements=3'] }],
    [
      'Smithy-4711',
      'Smithy-4711',
      {
        validatorClassName: 'ActiveDirectoryValidator',
        'validator.params': ['attributesToCheck=last name=sn'],
      },
    ],
  ])('%j, %j is refused with %j, and starts no workflow', async (first, second, more: ParamValues) => {
    const { submit, calls } = await open(more)
    const caller = { ...ann, attributes: subject('uid=ann,o=x', { uid: ['ann'], sn: ['Smith'] }).attributes }
    const { status, body } = await submit(first, { again: second, caller })
    expect([status, body.errors.length]).toEqual([500, 1])
    expect(JSON.stringify(body)).not.toMatch(/battery|Smithy/)
    expect(calls).toEqual([])
  })

  test.each<[ParamValues, string]>([
    [{}, 'only letters'],
    [{ 'validator.params': ['requireUpper=false', 'minRequirements=0'] }, 'a lower 1!'],
    [{ 'validator.params': ['minRequirements=2'] }, 'only lower 12'],
    [{ 'validator.params': ['minChars=4'] }, 'h0rs'],
  ])('with %j, %j is accepted', async (more, password) => {
    expect((await (await open(more)).submit(password)).status).toBe(200)
  })

  test('needs a login of the last minutes, unless any will do', async () => {
    const { submit, calls } = await open()
    expect(await submit('correct horse', { age: 16 })).toMatchObject({ status: 403, body: { code: 'ACCESS_DENIED' } })
    expect((await submit('correct horse', { kept: false })).status).toBe(403)
    expect(calls).toEqual([])
    const any = await open({ maxLoginMinutes: '0' })
    expect((await any.submit('correct horse', { age: 600 })).status).toBe(200)
  })

  test('of a caller whose login belongs to another user is refused, and audited', async () => {
    const { submit, calls, runs } = await open()
    expect((await submit('correct horse', { caller: outsider('bob') })).status).toBe(403)
    expect(runs.refused).toMatchObject([{ name: 'set-password', subject: 'bob' }])
    expect(calls).toEqual([])
  })

  test('needs a login, JSON and nothing but the two members', async () => {
    const { send, submit, calls } = await open()
    expect((await submit('correct horse', { caller: subject('uid=anonymous,o=x', {}, 0) })).status).toBe(401)
    for (const body of [[], { password1: 1 }, { password1: 'correct horse', password2: 'correct horse', uid: 'bob' }]) {
      expect((await send('POST', '/submit', body)).status).toBe(400)
    }
    expect((await send('PUT', '/submit', {})).status).toBe(405)
    expect((await send('POST', '/other', {})).status).toBe(404)
    expect(calls).toEqual([])
  })
})

test.each<[ParamValues, string]>([
  [{ validatorClassName: 'MyValidator' }, 'no validator "MyValidator"'],
  [{ 'validator.params': ['minChars=many'] }, '"minChars" must be a whole number'],
  [{ 'validator.params': ['requireUpper=maybe'] }, '"requireUpper" must be true or false'],
  [{ 'validator.params': ['attributesToCheck=a=b'] }, 'must be name=value with minChars'],
  [{ 'validator.params': ['minChars=20', 'maxChars=10'] }, '"minChars" must be at most the 10'],
  [{ 'validator.params': ['nothing'] }, 'must be name=value'],
])('%j is a mistake', (more, message) => {
  expect(prepare({ ...basic, ...more }).issues.join('\n')).toContain(message)
})
