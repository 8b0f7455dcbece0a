import fc from 'fast-check'
import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { fakeModuleHost } from '#testing/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/fake-parse.ts'
import { type FakeRequest, fakeRequest } from '#testing/fake-request.ts'
import { MemoryRuns } from '#testing/memory-runs.ts'
import { subject } from '#testing/subjects.ts'
import callWorkflow from './call-workflow.ts'

const address = 'https://gw.example.com/call-workflow'

async function open(params: ParamValues = { allowedWorkflow: ['join', 'gone'] }) {
  const runs = new MemoryRuns()
  const prepared = callWorkflow.prepare(fakeParams(params), noIssues(), fakeParseContext())
  const filter = await prepared.create(
    fakeModuleHost({ runs, workflowParameters: { join: ['team', 'a_b'], secret: [] } }),
  )
  const send = async (request: FakeRequest, { caller = 'svc', application = 'api' } = {}) => {
    const path = new URL(request.url ?? address).pathname
    const response = await filter.handle(
      {
        request: fakeRequest({ url: address, ...request }),
        application,
        mount: '/call-workflow',
        pathInfo: path.slice('/call-workflow'.length),
        subject: subject(`uid=${caller},o=test`),
      },
      async () => {
        throw new Error('there is nothing behind this filter')
      },
    )
    return { status: response.status, headers: response.headers, body: JSON.parse(String(response.body)) }
  }
  const post = (
    body: unknown,
    headers: Record<string, string> = {},
    as: { caller?: string; application?: string } = {},
  ) =>
    send(
      {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      },
      as,
    )
  return { runs, send, post }
}

const user = { uid: 'other', attributes: [{ name: 'uid', values: ['jjackson'] }] }
const body = { name: 'join', uidAttributeName: 'uid', user }
const problemsOf = async (refused: Promise<unknown>): Promise<string[]> => {
  const failure: unknown = await refused.catch((error) => error)
  expect(failure).toBeInstanceOf(GatewayError)
  return [(failure as GatewayError).code, ...(failure as GatewayError).problems.map(({ pointer }) => pointer)]
}

test('a call of all members runs the workflow for the subject that the named attribute holds', async () => {
  const { post, runs } = await open()
  const answer = await post({
    requestor: 'boss',
    name: 'join',
    uidAttributeName: 'UID',
    user: {
      uid: 'ignored',
      dn: 'uid=ignored,o=x',
      directory: 'x',
      attributes: [...user.attributes, { name: 'mail', values: ['a@b', 'c@d'] }],
      groups: ['users'],
      userPassword: 'hunter2',
    },
    reason: 'new here',
    requestParams: { team: 'blue', 'a.b': 'c', 'UNISON.EXEC.TYPE': 'UNISON.EXEC.SYNC' },
  })
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({ workflowId: expect.stringMatching(/^[0-9a-f-]{36}$/), status: 'completed', changes: 1 })
  const [call] = runs.calls
  expect({ ...call, user: undefined, params: { ...call?.params } }).toEqual({
    name: 'join',
    kept: true,
    requestor: 'boss',
    caller: 'svc',
    who: { caller: subject('uid=svc,o=test').identity },
    reason: 'new here',
    password: 'hunter2',
    requestId: 'request-1',
    keepGroups: false,
    asynchronous: false,
    params: { team: 'blue', 'a.b': 'c' },
  })
  expect(call?.user).toMatchObject({ userID: 'jjackson', groups: ['users'] })
  expect(call?.user.attributes.toObject()).toEqual({ uid: ['jjackson'], mail: ['a@b', 'c@d'] })
})

test('without groups the memberships stay as they are; an empty list says that there are none', async () => {
  const { post, runs } = await open()
  await post(body)
  await post({ ...body, user: { ...user, groups: [] } })
  expect(runs.calls.map(({ keepGroups }) => keepGroups)).toEqual([true, false])
})

test('asynchronous and waiting runs are 202, with where to ask', async () => {
  const { post, runs } = await open()
  const accepted = await post({ ...body, requestParams: { 'UNISON.EXEC.TYPE': 'UNISON.EXEC.ASYNC' } })
  expect(accepted).toMatchObject({
    status: 202,
    headers: { location: `${address}/${accepted.body.workflowId}` },
    body: { status: 'accepted' },
  })
  runs.execute = async () => 'waiting'
  expect(await post(body)).toMatchObject({ status: 202, body: { status: 'waiting' } })
})

test('only workflows of the list may be called, whether there are others or not; a listed one that is not there is 404', async () => {
  const { post, runs } = await open()
  for (const name of ['secret', 'nothing', 'JOIN', '__proto__']) {
    await expect(post({ ...body, name })).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  }
  await expect(post({ ...body, name: 'gone' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  const none = await open({})
  await expect(none.post(body)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  expect(runs.calls).toEqual([])
})

test('the requestor is the caller unless another is named; where they must match, another is refused', async () => {
  const { post, runs } = await open()
  await post(body)
  await post({ ...body, requestor: 'SVC' })
  await post({ ...body, requestor: 'boss' })
  expect(runs.calls.map(({ requestor, caller }) => [requestor, caller])).toEqual([
    ['svc', undefined],
    ['svc', undefined],
    ['boss', 'svc'],
  ])
  const strict = await open({ allowedWorkflow: 'join', requireRequestorMatch: 'true' })
  expect((await strict.post({ ...body, requestor: 'svc' })).status).toBe(200)
  expect((await strict.post(body)).status).toBe(200)
  await expect(strict.post({ ...body, requestor: 'boss' })).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  expect(strict.runs.calls).toHaveLength(2)
})

test.each([
  ['no attribute of that name', [], '/uidAttributeName'],
  ['no value', [{ name: 'uid', values: [] }], '/user/attributes/0/values'],
  ['two values', [{ name: 'uid', values: ['a', 'b'] }], '/user/attributes/0/values'],
  ['an empty value', [{ name: 'uid', values: [' '] }], '/user/attributes/0/values'],
  ['a line break', [{ name: 'uid', values: ['a\nb'] }], '/user/attributes/0/values'],
  ['a long value', [{ name: 'uid', values: ['x'.repeat(257)] }], '/user/attributes/0/values'],
  ['an attribute twice', [...user.attributes, { name: 'UID', values: ['victim'] }], '/user/attributes/1/name'],
])('a subject with %s is refused', async (_, attributes, pointer) => {
  const { post, runs } = await open()
  expect(await problemsOf(post({ ...body, user: { attributes } }))).toEqual(['UNPROCESSABLE', pointer])
  expect(runs.calls).toEqual([])
})

test.each([
  'APPROVAL_IMMEDIATE_ACTION',
  'APPROVAL_REASON',
  'approval_id',
  'APPROVAL.RESULT',
  'UNISON.RESYNC.ROOT',
  'unison.sendToSubject',
  'UNISON.exec.TYPE',
  'WORKFLOW',
  'WORKFLOW_ID',
  'workflow.x',
  'TREMOLO_USER_ID',
  'com.tremolosecurity.unison.provisioning.SetPassword',
  'constructor',
  'other',
  'Team',
  '',
])('the request parameter "%s" is refused', async (name) => {
  const { post, runs } = await open()
  const requestParams = { [name]: 'true', team: 'blue' }
  expect(await problemsOf(post({ ...body, requestParams }))).toEqual(['UNPROCESSABLE', `/requestParams/${name}`])
  expect(runs.calls).toEqual([])
})

test('another execution type is refused', async () => {
  const { post } = await open()
  const requestParams = { 'UNISON.EXEC.TYPE': 'ASYNC' }
  expect(await problemsOf(post({ ...body, requestParams }))).toEqual([
    'UNPROCESSABLE',
    '/requestParams/UNISON.EXEC.TYPE',
  ])
})

test.each([
  [{ ...body, encryptedParams: 'x' }, '/encryptedParams'],
  [{ ...body, user: { ...user, id: 'x' } }, '/user/id'],
  [{ ...body, name: undefined }, '/name'],
  [{ ...body, uidAttributeName: '' }, '/uidAttributeName'],
  [{ ...body, user: { attributes: { uid: ['x'] } } }, '/user/attributes'],
  [{ ...body, user: { attributes: [{ name: 'uid', values: 'x' }] } }, '/user/attributes/0/values'],
  [{ ...body, user: { attributes: [{ name: 'uid', values: [1] }] } }, '/user/attributes/0/values/0'],
  [{ ...body, user: { ...user, groups: [''] } }, '/user/groups/0'],
  [{ ...body, user: { ...user, userPassword: '' } }, '/user/userPassword'],
  [{ ...body, reason: 'a\0b' }, '/reason'],
  [{ ...body, reason: '\ud800' }, '/reason'],
  [{ ...body, requestor: 'a\r\nb' }, '/requestor'],
  [{ ...body, requestParams: { team: true } }, '/requestParams/team'],
  [{ ...body, requestParams: ['team'] }, '/requestParams'],
  [
    { ...body, requestParams: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`k${i}`, ''])) },
    '/requestParams',
  ],
  [
    { ...body, user: { attributes: Array.from({ length: 501 }, (_, i) => ({ name: `a${i}`, values: [] })) } },
    '/user/attributes',
  ],
])('a body of another form is refused: %#', async (wrong, pointer) => {
  const { post, runs } = await open()
  expect(await problemsOf(post(wrong))).toEqual(['BAD_REQUEST', pointer])
  expect(runs.calls).toEqual([])
})

test('D3: no body, whatever is in it, gets an engine key or another subject into a call', async () => {
  const { post, runs } = await open()
  const word = fc.constantFrom('uid', 'UID', 'team', 'name', 'WORKFLOW_ID', 'APPROVAL_X', '__proto__', 'a.b', 'victim')
  const anyBody = fc.record({
    name: fc.constantFrom('join', 'secret'),
    uidAttributeName: word,
    user: fc.record({ attributes: fc.array(fc.record({ name: word, values: fc.array(word) })), uid: word }),
    requestParams: fc.dictionary(word, word),
  })
  await fc.assert(
    fc.asyncProperty(anyBody, async (given) => {
      runs.calls.length = 0
      await post(given).catch((error) => expect(error).toBeInstanceOf(GatewayError))
      for (const call of runs.calls) {
        expect(call.name).toBe('join')
        expect(Object.keys(call.params).filter((name) => !['team', 'a.b'].includes(name))).toEqual([])
        expect(call.user.attributes.values(given.uidAttributeName)).toEqual([call.user.userID])
      }
    }),
  )
})

test('the same key and body give the same answer; another body is 422; other callers and applications have keys of their own', async () => {
  const { post, runs } = await open()
  const key = { 'idempotency-key': 'k-1' }
  const first = await post(body, key)
  expect(await post(body, key)).toEqual(first)
  expect(runs.calls).toHaveLength(1)
  await expect(post({ ...body, reason: 'x' }, key)).rejects.toMatchObject({ code: 'UNPROCESSABLE' })
  expect((await post(body, key, { caller: 'svc2' })).body.workflowId).not.toBe(first.body.workflowId)
  expect((await post(body, key, { application: 'other' })).body.workflowId).not.toBe(first.body.workflowId)
  expect((await post(body, { 'idempotency-key': 'K-1' })).body.workflowId).not.toBe(first.body.workflowId)
})

test('a password is part of what makes two bodies the same', async () => {
  const { post } = await open()
  const key = { 'idempotency-key': 'k-1' }
  const withPassword = (userPassword: string) => ({ ...body, user: { ...user, userPassword } })
  const first = await post(withPassword('a'), key)
  expect(await post(withPassword('a'), key)).toEqual(first)
  await expect(post(withPassword('b'), key)).rejects.toMatchObject({ code: 'UNPROCESSABLE' })
})

test('calls with one key at the same time are one run, and all get its answer', async () => {
  const { post, runs } = await open()
  let finish = (): void => {}
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  runs.execute = async () => {
    await finished
    return 'completed'
  }
  const answers = Array.from({ length: 20 }, () => post(body, { 'idempotency-key': 'k' }))
  setTimeout(finish, 50)
  const ids = (await Promise.all(answers)).map((answer) => answer.body.workflowId)
  expect(new Set(ids).size).toBe(1)
  expect(runs.calls).toHaveLength(1)
})

test('a call that failed may be made again under its key', async () => {
  const { post, runs } = await open()
  runs.execute = async () => {
    throw new GatewayError('TARGET_UNREACHABLE', 'down')
  }
  await expect(post(body, { 'idempotency-key': 'k' })).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  runs.execute = async () => 'completed'
  expect((await post(body, { 'idempotency-key': 'k' })).status).toBe(200)
})

test.each(['', 'a b', 'ä', 'x'.repeat(256)])('the key "%s" is refused', async (key) => {
  const { post } = await open()
  await expect(post(body, { 'idempotency-key': key })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})

test('status and timeline are for the one who started the run, without the reasons that are for administrators', async () => {
  const { send, runs } = await open()
  const incident = { task: 'w:0', code: 'TARGET_UNREACHABLE', message: 'connect ECONNREFUSED 10.0.0.7' }
  const run = runs.add({ name: 'join', requestor: 'boss', caller: 'svc', state: 'incident', incident })
  const { body: told } = await send({ url: `${address}/${run.id}` })
  expect(told).toMatchObject({
    workflowId: run.id,
    name: 'join',
    status: 'incident',
    subject: 'jjackson',
    requestor: 'boss',
    failure: { task: 'w:0', code: 'TARGET_UNREACHABLE', text: 'A downstream system did not answer.' },
    timeline: [
      { id: 1, attempt: 1, outcome: 'failed' },
      { id: 2, attempt: 2, outcome: 'next' },
    ],
  })
  expect(JSON.stringify(told)).not.toContain('10.0.0.7')
  expect((await send({ url: `${address}/${run.id}?after=1` })).body.timeline).toHaveLength(1)
})

test("another's run, one of another workflow and none at all are the same 404", async () => {
  const { send, runs } = await open()
  const named = runs.add({ name: 'join', requestor: 'svc', caller: 'other' })
  const others = runs.add({ name: 'join', requestor: 'other' })
  const elsewhere = runs.add({ name: 'secret', requestor: 'svc' })
  for (const path of [named.id, others.id, elsewhere.id, crypto.randomUUID(), 'x', `${others.id}/`, '%41']) {
    for (const method of ['GET', 'DELETE']) {
      await expect(send({ method, url: `${address}/${path}` })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  }
  expect(runs.interventions).toEqual([])
})

test('whoever started a run may end it while no target was changed', async () => {
  const { send, runs } = await open()
  const run = runs.add({ name: 'join', requestor: 'svc', state: 'waiting' })
  expect(await send({ method: 'DELETE', url: `${address}/${run.id}` })).toMatchObject({
    status: 200,
    body: { workflowId: run.id, status: 'cancelled' },
  })
  expect(runs.interventions).toMatchObject([{ action: 'cancel', by: 'svc', onlyUntouched: true }])
  const touched = runs.add({ name: 'join', requestor: 'svc', touched: true })
  await expect(send({ method: 'DELETE', url: `${address}/${touched.id}` })).rejects.toMatchObject({ code: 'CONFLICT' })
})

test('other methods, types and query parameters are refused', async () => {
  const { send, post, runs } = await open()
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
    await expect(send({ method })).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED', headers: { allow: 'POST' } })
  }
  const run = runs.add({ name: 'join', requestor: 'svc' })
  await expect(send({ method: 'POST', url: `${address}/${run.id}` })).rejects.toMatchObject({
    code: 'METHOD_NOT_ALLOWED',
  })
  await expect(post(body, { 'content-type': 'text/plain' })).rejects.toMatchObject({ code: 'UNSUPPORTED_MEDIA_TYPE' })
  for (const query of ['?after=x', '?after=-1', '?x=1']) {
    await expect(send({ url: `${address}/${run.id}${query}` })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  }
})

test('a list without workflows is told, and those in it are looked up', () => {
  const issues = noIssues()
  const context = fakeParseContext()
  callWorkflow.prepare(fakeParams({}), issues, context)
  expect(issueTexts(issues.list)).toEqual([expect.stringContaining('nothing can be called')])
  callWorkflow.prepare(fakeParams({ allowedWorkflow: ['a', 'b'] }), issues, context)
  expect(context.references.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['workflow a', 'workflow b'])
})

test.each([' boss', 'boss\u00a0', ' ', 'a\u202eb', 'a\u2028b'])(
  'nobody is named %j, which reads like another',
  async (name) => {
    const { post, runs } = await open()
    const named = { ...body, user: { attributes: [{ name: 'uid', values: [name] }] } }
    expect(await problemsOf(post(named))).toEqual(['UNPROCESSABLE', '/user/attributes/0/values'])
    expect(await problemsOf(post({ ...body, requestor: name }))).toEqual(['BAD_REQUEST', '/requestor'])
    expect(runs.calls).toEqual([])
  },
)
