import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { type DirectoryEntry, type DirectoryLink, directoryLink } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { entryIdentity, issuerIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import { unknownWrites } from '#sdk/workflow/workflow-writes.ts'
import { subject } from '#testing/login/subjects.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { type FakeRequest, fakeRequest } from '#testing/modules/fake-request.ts'
import { MemoryRuns } from '#testing/workflows/memory-runs.ts'
import { AnotherSubject } from '#workflows/record/run-requests.ts'
import callWorkflow from './call-workflow.ts'

const address = 'https://gw.example.com/call-workflow'

interface Caller {
  readonly caller?: string
  readonly application?: string
  /** Used instead of the name. */
  readonly as?: Subject
}

/** Everything that an operator can allow. */
const everything = {
  allowedWorkflow: ['join', 'gone'],
  subject: 'any',
  allowGroups: '*',
  requireRequestorMatch: 'false',
}

async function open(
  params: ParamValues = everything,
  entries: readonly DirectoryEntry[] = [],
  loginAttributes: ReadonlySet<string> | 'any' = new Set(),
  { severalTimes = false } = {},
) {
  const runs = new MemoryRuns()
  const prepared = callWorkflow.prepare(fakeParams(params), noIssues(), fakeParseContext())
  const workflowParameters = { join: ['team', 'a_b'], secret: [] }
  const host = fakeModuleHost({ runs, entries, loginAttributes, workflowParameters })
  const workflowWrites = () => ({ ...unknownWrites, severalTimes })
  const filter = await prepared.create(Object.assign(host, { workflowWrites }))
  const send = async (request: FakeRequest, { caller = 'svc', application = 'api', as }: Caller = {}) => {
    const path = new URL(request.url ?? address).pathname
    const response = await filter.handle(
      {
        request: fakeRequest({ url: address, ...request }),
        application,
        mount: '/call-workflow',
        pathInfo: path.slice('/call-workflow'.length),
        subject: as ?? subject(`uid=${caller},o=test`),
      },
      async () => {
        throw new Error('there is nothing behind this filter')
      },
    )
    return {
      status: response.status,
      headers: response.headers,
      body: response.body === undefined ? undefined : JSON.parse(String(response.body)),
    }
  }
  const post = (body: unknown, headers: Record<string, string> = {}, as: Caller = {}) =>
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

const user = { uid: 'jjackson', attributes: [{ name: 'uid', values: ['jjackson'] }] }
const body = { name: 'join', uidAttributeName: 'uid', user }
const problemsOf = async (refused: Promise<unknown>): Promise<string[]> => {
  const failure: unknown = await refused.catch((error) => error)
  expect(failure).toBeInstanceOf(GatewayError)
  return [(failure as GatewayError).code, ...(failure as GatewayError).problems.map(({ pointer }) => pointer)]
}

test('equal calls of a caller for a workflow that may fail part way have the same resource', async () => {
  const { post, runs } = await open(everything, [], new Set(), { severalTimes: true })
  const withPassword = (userPassword: string) => ({ ...body, user: { ...user, userPassword } })
  await post(withPassword('hunter2'))
  await post(withPassword('hunter2'))
  await post(withPassword('hunter3'))
  await post(withPassword('hunter2'), {}, { caller: 'other' })
  await post(withPassword('hunter2'), { 'idempotency-key': 'k' })
  const resources = runs.calls.map(({ resource }) => resource)
  expect(resources[1]).toBe(resources[0])
  expect(new Set(resources).size).toBe(4)
  const once = await open()
  await once.post(body)
  expect(once.runs.calls).toMatchObject([{ head: { workflow: 'join' } }])
  expect(once.runs.calls[0]).not.toHaveProperty('resource')
})

test('a call with all members runs the workflow for the subject that the named attribute contains', async () => {
  const { post, runs } = await open()
  const answer = await post({
    requestor: 'boss',
    name: 'join',
    uidAttributeName: 'UID',
    user: {
      uid: 'JJackson',
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
    head: {
      workflow: 'join',
      requester: 'boss',
      caller: 'svc',
      who: { caller: subject('uid=svc,o=test').identity },
      reason: 'new here',
      requestId: 'request-1',
    },
    kept: true,
    password: 'hunter2',
    keepGroups: false,
    asynchronous: false,
    params: { team: 'blue', 'a.b': 'c' },
  })
  expect(call?.user).toMatchObject({ userID: 'jjackson', groups: ['users'] })
  expect(call?.user.attributes.toObject()).toEqual({ uid: ['jjackson'], mail: ['a@b', 'c@d'] })
})

test("without groups memberships don't change; if all are allowed, an empty list removes them all", async () => {
  const { post, runs } = await open()
  await post(body)
  await post({ ...body, user: { ...user, groups: [] } })
  expect(runs.calls.map(({ keepGroups }) => keepGroups)).toEqual([true, false])
})

test('uidAttributeName chooses the attribute with the subject', async () => {
  const { post, runs } = await open()
  const attributes = ['uid', 'badge'].map((name) => ({ name, values: [`${name}-1`] }))
  for (const uidAttributeName of ['uid', 'badge']) {
    expect((await post({ name: 'join', uidAttributeName, user: { attributes } })).status).toBe(200)
  }
  expect(runs.calls.map(({ user: { userID } }) => userID)).toEqual(['uid-1', 'badge-1'])
})

test('attributes reach the workflow without validation', async () => {
  const { post, runs } = await open()
  const attributes = [...user.attributes, { name: 'never declared', values: ['', ' ', 'a\nb', 'x'.repeat(5_000)] }]
  expect((await post({ ...body, user: { attributes } })).status).toBe(200)
  expect(runs.calls[0]?.user.attributes.values('never declared')).toEqual(attributes[1]?.values)
})

test('asynchronous and waiting runs are 202, with a status URL', async () => {
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

test('only listed workflows may be called, and others look the same whether they exist or not; a listed one that does not exist is 404', async () => {
  const { post, runs } = await open()
  for (const name of ['secret', 'nothing', 'JOIN', '__proto__']) {
    await expect(post({ ...body, name })).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  }
  await expect(post({ ...body, name: 'gone' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  const none = await open({})
  await expect(none.post(body)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  expect(runs.calls).toEqual([])
})

test('the requestor is the caller unless another is named; if they must match, another is rejected', async () => {
  const { post, runs } = await open()
  await post(body)
  await post({ ...body, requestor: 'SVC' })
  await post({ ...body, requestor: 'boss' })
  expect(runs.calls.map(({ head: { requester: requestor, caller } }) => [requestor, caller])).toEqual([
    ['svc', undefined],
    ['svc', undefined],
    ['boss', 'svc'],
  ])
  for (const more of [{}, { requireRequestorMatch: 'true' }]) {
    const strict = await open({ allowedWorkflow: 'join', subject: 'any', ...more })
    expect((await strict.post({ ...body, requestor: 'svc' })).status).toBe(200)
    expect((await strict.post(body)).status).toBe(200)
    expect(await problemsOf(strict.post({ ...body, requestor: 'boss' }))).toEqual(['ACCESS_DENIED', '/requestor'])
    expect(strict.runs.calls).toHaveLength(2)
    expect(strict.runs.refused).toEqual([
      {
        name: 'join',
        caller: 'svc',
        subject: 'jjackson',
        requestId: 'request-1',
        refused: [{ kind: 'entry', attribute: 'requestor', value: 'boss' }],
      },
    ])
  }
})

const entry = (uid: string, more: Record<string, string[]> = {}): DirectoryEntry =>
  directoryEntry({
    dn: Dn.parse(`uid=${uid},ou=people,o=test`),
    attributes: Attributes.from({ uid: [uid], mail: [`${uid}@x.io`], ...more }),
    id: `id-${uid}`,
  })
const directoryLinkOf = (to: DirectoryEntry): DirectoryLink =>
  directoryLink(to, { filter: { kind: 'present', attribute: 'uid' }, uidAttr: 'sub' })
/** A caller whom the authentication linked to the entry. */
const linked = (to: DirectoryEntry, uid: string, uidAttr = 'sub'): Subject => ({
  ...subject(to.dn.toString(), { ...to.attributes.toObject(), [uidAttr]: [uid] }),
  uid,
  identity: to.identity,
  link: { ...directoryLinkOf(to), uidAttr },
})

describe('the subject of a call', () => {
  const [ann, bob] = [entry('Ann', { department: ['sales'] }), entry('bob', { department: ['sales', 'it'] })]
  const people = [ann, bob, entry('carl', { department: ['legal'] })]
  const about = (values: Record<string, string>, uidAttributeName = 'login') => ({
    name: 'join',
    uidAttributeName,
    user: { attributes: Object.entries(values).map(([name, value]) => ({ name, values: [value] })) },
  })
  const refused = ['ACCESS_DENIED', '/user/attributes/0/values']

  test('is the caller by default, found by the linked directory entry and spelled as in the directory', async () => {
    const { post, runs } = await open({ allowedWorkflow: 'join' }, people)
    const as = linked(ann, '00u1')
    expect((await post(about({ login: 'ANN' }), {}, { as })).status).toBe(200)
    expect(runs.calls[0]?.user.userID).toBe('Ann')
    expect(runs.calls[0]?.user.attributes.toObject()).toEqual({ login: ['Ann'] })
    expect((await post({ ...about({ login: 'Ann' }), requestor: 'ann' }, {}, { as })).status).toBe(200)
    expect(runs.calls[1]).toMatchObject({
      head: { requester: '00u1', who: { requester: ann.identity, subject: ann.identity } },
    })
    expect(runs.calls[1]).not.toHaveProperty('caller')
    for (const login of ['bob', 'nobody', 'Ann@x.io']) {
      expect(await problemsOf(post(about({ login }), {}, { as }))).toEqual(refused)
    }
    expect(runs.calls).toHaveLength(2)
    expect(runs.refused[0]).toMatchObject({
      caller: '00u1',
      subject: 'bob',
      refused: [{ kind: 'entry', attribute: 'subject', value: 'bob' }],
    })
  })

  test('is not a user who has the same login as a caller of another issuer', async () => {
    const { post } = await open({ allowedWorkflow: 'join' }, people)
    expect(await problemsOf(post(about({ login: 'bob' }), {}, { caller: 'bob' }))).toEqual(refused)
    const another = { ...linked(bob, 'bob'), identity: entryIdentity('test', 'id-of-an-earlier-bob') }
    expect(await problemsOf(post(about({ login: 'bob' }), {}, { as: another }))).toEqual(refused)
    expect((await post(about({ login: 'NEW' }), {}, { caller: 'new' })).status).toBe(200)
  })

  test('a login that several entries have matches no user', async () => {
    const twin = { ...bob, dn: Dn.parse('uid=bob,ou=others,o=test') }
    const { post } = await open({ allowedWorkflow: 'join', subject: ['caller', '(uid=*)'] }, [bob, twin])
    expect(await problemsOf(post(about({ login: 'bob' }), {}, { as: linked(bob, 'bob') }))).toEqual(refused)
  })

  test('must not be another user in any naming attribute', async () => {
    const { post, runs } = await open({ allowedWorkflow: 'join', subject: ['caller', '(department=it)'] }, people)
    const as = linked(ann, '00u1')
    for (const [more, subjectOf] of [
      [{ uid: 'bob' }, 'ann'],
      [{ sub: 'bob' }, 'ann'],
      [{ UID: 'ann' }, 'bob'],
    ] as const) {
      expect(await problemsOf(post(about({ login: subjectOf, ...more }), {}, { as }))).toEqual([
        'ACCESS_DENIED',
        '/user/attributes/1/values',
      ])
    }
    expect(runs.calls).toEqual([])
    expect((await post(about({ login: 'ann', uid: 'ann', mail: 'new@x.io' }), {}, { as })).status).toBe(200)
  })

  test('must own the attributes that a target makes logins from', async () => {
    const dora = entry('dora', { employeeNumber: ['E7'] })
    const as = linked(dora, 'dora')
    const own = about({ login: 'dora', EmployeeNumber: 'E7', mail: 'new@x.io' })
    const other = about({ login: 'dora', employeeNumber: 'E1' })
    const pointer = '/user/attributes/1/values'
    const named = await open({ allowedWorkflow: 'join' }, [dora], new Set(['employeeNumber']))
    expect(await problemsOf(named.post(other, {}, { as }))).toEqual(['ACCESS_DENIED', pointer])
    expect((await named.post(own, {}, { as })).status).toBe(200)
    // Where a mapper may read anything, no attribute of the body may differ from the directory.
    const opaque = await open({ allowedWorkflow: 'join' }, [dora], 'any')
    expect(await problemsOf(opaque.post(other, {}, { as }))).toEqual(['ACCESS_DENIED', pointer])
    expect(await problemsOf(opaque.post(own, {}, { as }))).toEqual(['ACCESS_DENIED', '/user/attributes/2/values'])
    const any = await open({ allowedWorkflow: 'join', subject: 'any' }, [dora], 'any')
    expect((await any.post(other, {}, { as })).status).toBe(200)
    // No task of the run may give it another subject, except where callers may act for anyone.
    expect(named.runs.calls[0]?.bound?.attributes).toEqual(expect.arrayContaining(['uid', 'employeenumber']))
    expect(any.runs.calls[0]?.bound).toBeUndefined()
    await opaque.post(about({ login: 'dora' }), {}, { as })
    expect(opaque.runs.calls[0]?.bound).toEqual({ attributes: 'any' })
  })

  test('must not change during a run: such a run is rejected, with an audit entry', async () => {
    const { post, runs } = await open({ allowedWorkflow: 'join' }, people)
    runs.execute = async () => {
      throw new AnotherSubject('the task changed the login', 'bob')
    }
    const asked = post(about({ login: 'ann' }), {}, { as: linked(ann, '00u1') })
    await expect(asked).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    const refused = [{ kind: 'entry', attribute: 'subject', value: 'bob' }]
    expect(runs.refused).toMatchObject([{ caller: '00u1', subject: 'Ann', refused }])
  })

  test('may be a user that matches a filter with values of the caller', async () => {
    const params = {
      allowedWorkflow: 'join',
      subject: ['(&(department=${department})(!(uid=carl)))', '(mail=carl@x.io)'],
    }
    const { post, runs } = await open(params, people)
    const as = linked(ann, 'ann')
    for (const login of ['Ann', 'bob', 'carl']) expect((await post(about({ login }), {}, { as })).status).toBe(200)
    expect(runs.calls.map(({ user: { userID } }) => userID)).toEqual(['Ann', 'bob', 'carl'])
    expect(await problemsOf(post(about({ login: 'nobody', department: 'sales' }), {}, { as }))).toEqual(refused)
    const nowhere = linked(entry('dora'), 'dora')
    expect(await problemsOf(post(about({ login: 'bob' }), {}, { as: nowhere }))).toEqual(refused)
  })

  test('may be any user, with subject: any', async () => {
    const { post, runs } = await open({ allowedWorkflow: 'join', subject: 'any' }, people)
    expect((await post(about({ login: 'BOB', uid: 'x' }))).status).toBe(200)
    expect(runs.calls[0]?.user.userID).toBe('BOB')
  })

  test('is in the call with the identities of requester and caller', async () => {
    const { post, runs } = await open({ ...everything, allowedWorkflow: 'join' }, people)
    await post({ ...about({ login: 'bob' }), requestor: 'ANN' })
    await post({ ...about({ login: 'new' }), requestor: 'unknown' })
    const caller = subject('uid=svc,o=test').identity
    expect(runs.calls.map(({ head: { who } }) => who)).toEqual([
      { requester: ann.identity, caller, subject: bob.identity },
      { caller },
    ])
  })

  test('may be named by an attribute that the operator fixes', async () => {
    const { post, runs } = await open({ allowedWorkflow: 'join', subject: 'any', uidAttributeName: 'login' })
    expect(await problemsOf(post(about({ x: 'ann', login: 'bob' }, 'x')))).toEqual([
      'UNPROCESSABLE',
      '/uidAttributeName',
    ])
    expect((await post(about({ LOGIN: 'ann' }, 'Login'))).status).toBe(200)
    expect(runs.calls).toHaveLength(1)
  })
})

describe('without parameters of rights', () => {
  const [ann, bob] = [entry('ann'), entry('bob')]
  const asked = {
    ...body,
    requestor: 'ann',
    user: { uid: 'bob', attributes: [{ name: 'mail', values: ['new@x.io'] }], groups: ['vpn'] },
  }
  const refused = ['ACCESS_DENIED', '/requestor', '/user/uid', '/user/groups/0']

  test('a caller without a directory entry names requester, user and groups, and is recorded beside the requester', async () => {
    const { post, runs } = await open({ allowedWorkflow: 'join' }, [ann, bob])
    expect((await post(asked)).status).toBe(200)
    expect(runs.calls[0]).toMatchObject({
      head: {
        requester: 'ann',
        caller: 'svc',
        who: { requester: ann.identity, caller: subject('uid=svc,o=test').identity, subject: bob.identity },
      },
      user: { userID: 'bob', groups: ['vpn'] },
      keepGroups: false,
    })
    expect((await post({ ...body, user: { uid: 'someone-new' } })).status).toBe(200)
  })

  test('an empty list of groups, as in the documented request, keeps memberships', async () => {
    const { post, runs } = await open({ allowedWorkflow: 'join' }, [ann, bob])
    await post({ ...asked, user: { ...asked.user, groups: [] } })
    await post({ ...asked, user: { uid: 'bob' } })
    expect(runs.calls.map(({ user: { groups }, keepGroups }) => ({ groups, keepGroups }))).toEqual([
      { groups: [], keepGroups: true },
      { groups: [], keepGroups: true },
    ])
  })

  test('users of the directory, anonymous callers and callers with the login of a user act for themselves', async () => {
    const { post, runs } = await open({ allowedWorkflow: 'join' }, [ann, bob, entry('carl')])
    const callers: Caller[] = [
      { as: linked(entry('carl'), 'carl') },
      { caller: 'carl' },
      { as: subject('uid=Anonymous,o=Tremolo', {}, 0) },
    ]
    for (const caller of callers) expect(await problemsOf(post(asked, {}, caller))).toEqual(refused)
    expect(runs.calls).toEqual([])
    expect(runs.refused).toHaveLength(3)
  })

  test.each([
    [{ subject: 'any' }, ['ACCESS_DENIED', '/requestor', '/user/groups/0']],
    [{ allowGroups: 'vpn' }, ['ACCESS_DENIED', '/requestor', '/user/uid']],
    [{ requireRequestorMatch: 'false' }, ['ACCESS_DENIED', '/user/uid', '/user/groups/0']],
    [{ requireRequestorMatch: 'true' }, refused],
  ])('are no longer assumed with %j', async (params, pointers) => {
    const { post } = await open({ allowedWorkflow: 'join', ...params }, [ann, bob])
    expect(await problemsOf(post(asked))).toEqual(pointers)
  })

  test('no caller can set a key of the engine', async () => {
    const { post, runs } = await open({ allowedWorkflow: 'join' })
    const requestParams = { APPROVAL_IMMEDIATE_ACTION: 'true' }
    expect(await problemsOf(post({ ...asked, requestParams }))).toEqual([
      'UNPROCESSABLE',
      '/requestParams/APPROVAL_IMMEDIATE_ACTION',
    ])
    expect(runs.calls).toEqual([])
  })
})

describe('the groups of a call', () => {
  const named = (groups?: string[]) => ({ ...body, user: { ...user, ...(groups === undefined ? {} : { groups }) } })
  const parts = ({ runs }: { runs: MemoryRuns }) =>
    runs.calls.map(({ user: { groups }, keepGroups, groupChanges }) => ({ groups, keepGroups, groupChanges }))

  test('are none by default; an empty list removes none', async () => {
    const opened = await open({ allowedWorkflow: 'join', subject: 'any' })
    expect(await problemsOf(opened.post(named(['users', 'administrators'])))).toEqual([
      'ACCESS_DENIED',
      '/user/groups/0',
      '/user/groups/1',
    ])
    expect(opened.runs.refused[0]?.refused).toEqual([
      { kind: 'group', attribute: 'groups', value: 'users' },
      { kind: 'group', attribute: 'groups', value: 'administrators' },
    ])
    await opened.post(named([]))
    await opened.post(named())
    const stay = { groups: [], keepGroups: true, groupChanges: undefined }
    expect(parts(opened)).toEqual([stay, stay])
  })

  test('are joined and left if listed, and others stay', async () => {
    const opened = await open({ allowedWorkflow: 'join', subject: 'any', allowGroups: ['users', 'VPN'] })
    expect(await problemsOf(opened.post(named(['users', 'administrators'])))).toEqual([
      'ACCESS_DENIED',
      '/user/groups/1',
    ])
    await opened.post(named(['Users']))
    await opened.post(named([]))
    await opened.post(named())
    const kept = { groups: [], keepGroups: true }
    expect(parts(opened)).toEqual([
      { ...kept, groupChanges: { add: ['Users'], remove: ['VPN'] } },
      { ...kept, groupChanges: { add: [], remove: ['users', 'VPN'] } },
      { ...kept, groupChanges: undefined },
    ])
  })

  test('2,000 groups are rejected with the first 20', async () => {
    const { post, runs } = await open({ allowedWorkflow: 'join', subject: 'any' })
    expect(await problemsOf(post(named(Array.from({ length: 2_000 }, (_, i) => `g${i}`))))).toHaveLength(21)
    expect(runs.refused[0]?.refused).toHaveLength(20)
  })
})

test('a subject whom the directory knows keeps a login that new users may not have', async () => {
  const { post, runs } = await open(everything, [entry('ａｄａ')])
  await post({ ...body, user: { attributes: [{ name: 'uid', values: ['ａｄａ'] }] } })
  expect(runs.calls).toHaveLength(1)
})

test.each([
  ['no attribute of that name', [], '/uidAttributeName'],
  ['no value', [{ name: 'uid', values: [] }], '/user/attributes/0/values'],
  ['two values', [{ name: 'uid', values: ['a', 'b'] }], '/user/attributes/0/values'],
  ['an empty value', [{ name: 'uid', values: [' '] }], '/user/attributes/0/values'],
  ['a line break', [{ name: 'uid', values: ['a\nb'] }], '/user/attributes/0/values'],
  ['a long value', [{ name: 'uid', values: ['x'.repeat(257)] }], '/user/attributes/0/values'],
  ['full-width letters', [{ name: 'uid', values: ['ａｄａ'] }], '/user/attributes/0/values'],
  ['an invisible character', [{ name: 'uid', values: ['a\u200bda'] }], '/user/attributes/0/values'],
  ['an attribute twice', [...user.attributes, { name: 'UID', values: ['victim'] }], '/user/attributes/1/name'],
])('a subject with %s is rejected', async (_, attributes, pointer) => {
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
  '',
  'a\nb',
])('the request parameter %j is rejected', async (name) => {
  const { post, runs } = await open()
  const requestParams = { [name]: 'true', team: 'blue' }
  expect(await problemsOf(post({ ...body, requestParams }))).toEqual(['UNPROCESSABLE', `/requestParams/${name}`])
  expect(runs.calls).toEqual([])
})

test('the name of a request parameter has at most 256 characters', async () => {
  const { post } = await open()
  expect((await post({ ...body, requestParams: { ['x'.repeat(256)]: 'y' } })).status).toBe(200)
  await expect(post({ ...body, requestParams: { ['x'.repeat(257)]: 'y' } })).rejects.toMatchObject({ status: 422 })
})

test('undeclared request parameters reach the workflow, as the specification says', async () => {
  const { post, runs } = await open()
  expect((await post({ ...body, requestParams: { other: 'x', Team: 'y', team: 'blue' } })).status).toBe(200)
  expect({ ...runs.calls[0]?.params }).toEqual({ other: 'x', Team: 'y', team: 'blue' })
})

test('with declaredParamsOnly other parameters are rejected, and the answer says where to declare them', async () => {
  const { post, runs } = await open({ ...everything, declaredParamsOnly: 'true' })
  for (const name of ['other', 'Team']) {
    const refused = post({ ...body, requestParams: { [name]: 'x', team: 'blue' } })
    await expect(refused).rejects.toMatchObject({
      status: 422,
      problems: [{ pointer: `/requestParams/${name}`, detail: expect.stringContaining('Workflow.parameters') }],
    })
  }
  expect(runs.calls).toEqual([])
  expect((await post({ ...body, requestParams: { team: 'blue', 'a.b': 'c' } })).status).toBe(200)
})

test('user.uid names the subject when the attribute is missing', async () => {
  const { post, runs } = await open()
  const attributes = [{ name: 'mail', values: ['a@b'] }]
  expect((await post({ ...body, user: { uid: 'jjackson', attributes } })).status).toBe(200)
  expect(runs.calls[0]?.user.userID).toBe('jjackson')
  expect(runs.calls[0]?.user.attributes.toObject()).toEqual({ mail: ['a@b'], uid: ['jjackson'] })
  expect((await post({ ...body, user: { uid: 'mary' } })).status).toBe(200)
  expect(runs.calls[1]?.user).toMatchObject({ userID: 'mary', groups: [] })
  expect(runs.calls[1]?.user.attributes.toObject()).toEqual({ uid: ['mary'] })
  expect(await problemsOf(post({ ...body, user: { uid: ' jjackson', attributes } }))).toEqual([
    'UNPROCESSABLE',
    '/user/uid',
  ])
  expect(await problemsOf(post({ ...body, user: { uid: '', attributes } }))).toEqual([
    'UNPROCESSABLE',
    '/uidAttributeName',
  ])
})

test('user.uid and the attribute must not name different users', async () => {
  const { post, runs } = await open()
  expect(await problemsOf(post({ ...body, user: { ...user, uid: 'victim' } }))).toEqual(['UNPROCESSABLE', '/user/uid'])
  expect((await post({ ...body, user: { ...user, uid: 'JJACKSON' } })).status).toBe(200)
  expect(runs.calls.map(({ user: { userID } }) => userID)).toEqual(['jjackson'])
})

test('user.uid is limited by the rights of the URL like the attribute', async () => {
  const { post, runs } = await open({ allowedWorkflow: 'join', subject: 'caller' })
  const call = (uid: string) => ({ ...body, user: { uid, attributes: [] } })
  expect(await problemsOf(post(call('victim')))).toEqual(['ACCESS_DENIED', '/user/uid'])
  expect(runs.refused[0]?.refused).toEqual([{ kind: 'entry', attribute: 'subject', value: 'victim' }])
  expect((await post(call('svc'))).status).toBe(200)
})

test('another execution type is rejected', async () => {
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
])('a body of another form is rejected: %#', async (wrong, pointer) => {
  const { post, runs } = await open()
  expect(await problemsOf(post(wrong))).toEqual(['BAD_REQUEST', pointer])
  expect(runs.calls).toEqual([])
})

test('D3: no body can set an engine key or another subject', async () => {
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
        expect(call.head.workflow).toBe('join')
        expect(Object.keys(call.params).filter((name) => isEngineKey(name))).toEqual([])
        expect(call.user.attributes.values(given.uidAttributeName)).toEqual([call.user.userID])
        expect(call.user.userID.toLowerCase()).toBe(given.user.uid.toLowerCase())
      }
    }),
  )
})

test('the same key and body return the same answer; another body is 422; other callers and applications have their own keys', async () => {
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

test('two bodies are the same only with the same password', async () => {
  const { post } = await open()
  const key = { 'idempotency-key': 'k-1' }
  const withPassword = (userPassword: string) => ({ ...body, user: { ...user, userPassword } })
  const first = await post(withPassword('a'), key)
  expect(await post(withPassword('a'), key)).toEqual(first)
  await expect(post(withPassword('b'), key)).rejects.toMatchObject({ code: 'UNPROCESSABLE' })
})

test('concurrent calls with one key are one run, and all get its answer', async () => {
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

test('a failed call may be repeated with its key', async () => {
  const { post, runs } = await open()
  runs.execute = async () => {
    throw new GatewayError('TARGET_UNREACHABLE', 'down')
  }
  await expect(post(body, { 'idempotency-key': 'k' })).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  runs.execute = async () => 'completed'
  expect((await post(body, { 'idempotency-key': 'k' })).status).toBe(200)
})

test.each(['', 'a b', 'ä', 'x'.repeat(256)])('the key "%s" is rejected', async (key) => {
  const { post } = await open()
  await expect(post(body, { 'idempotency-key': key })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})

test('status and timeline are for the caller that started the run, without the reasons for administrators', async () => {
  const { send, runs } = await open()
  const incident = { task: 'w:0', code: 'TARGET_UNREACHABLE', message: 'connect ECONNREFUSED 10.0.0.7' }
  const run = runs.add({ head: { workflow: 'join', requester: 'boss', caller: 'svc' }, state: 'incident', incident })
  const { body: reported } = await send({ url: `${address}/${run.head.id}` })
  expect(reported).toMatchObject({
    workflowId: run.head.id,
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
  expect(JSON.stringify(reported)).not.toContain('10.0.0.7')
  expect((await send({ url: `${address}/${run.head.id}?after=1` })).body.timeline).toHaveLength(1)
})

test("another user's run, one of another workflow and a missing one are the same 404", async () => {
  const { send, runs } = await open()
  const named = runs.add({ head: { workflow: 'join', requester: 'svc', caller: 'other' } })
  const others = runs.add({ head: { workflow: 'join', requester: 'other' } })
  const elsewhere = runs.add({ head: { workflow: 'secret', requester: 'svc' } })
  for (const path of [
    named.head.id,
    others.head.id,
    elsewhere.head.id,
    crypto.randomUUID(),
    'x',
    `${others.head.id}/`,
    '%41',
  ]) {
    for (const method of ['GET', 'DELETE']) {
      await expect(send({ method, url: `${address}/${path}` })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  }
  expect(runs.interventions).toEqual([])
})

test('a run from before identities is not shown to a caller of another issuer who has the same login', async () => {
  const { send, runs } = await open()
  const former = runs.add({ head: { workflow: 'join', requester: 'svc' }, state: 'waiting' })
  const service = { ...subject('uid=svc,o=test'), identity: issuerIdentity('https://idp', 'svc') }
  const own = runs.add({ head: { workflow: 'join', requester: 'svc', who: { requester: service.identity } } })
  for (const method of ['GET', 'DELETE']) {
    const asked = send({ method, url: `${address}/${former.head.id}` }, { as: service })
    await expect(asked).rejects.toMatchObject({ code: 'NOT_FOUND' })
  }
  expect(runs.interventions).toEqual([])
  expect((await send({ url: `${address}/${own.head.id}` }, { as: service })).status).toBe(200)
})

test('the caller that started a run may cancel it while no target was changed', async () => {
  const { send, runs } = await open()
  const run = runs.add({ head: { workflow: 'join', requester: 'svc' }, state: 'waiting' })
  expect(await send({ method: 'DELETE', url: `${address}/${run.head.id}` })).toMatchObject({
    status: 200,
    body: { workflowId: run.head.id, status: 'cancelled' },
  })
  expect(runs.interventions).toMatchObject([{ action: 'cancel', by: 'svc', onlyUntouched: true }])
  const touched = runs.add({ head: { workflow: 'join', requester: 'svc' }, touched: true })
  await expect(send({ method: 'DELETE', url: `${address}/${touched.head.id}` })).rejects.toMatchObject({
    code: 'CONFLICT',
  })
})

test('HEAD is GET without the body, and the description of the API is no run', async () => {
  const { send, runs } = await open()
  const run = runs.add({ head: { workflow: 'join', requester: 'svc' } })
  const shown = await send({ method: 'HEAD', url: `${address}/${run.head.id}` })
  expect([shown.status, shown.body]).toEqual([200, undefined])
  const { status, body: described } = await send({ url: `${address}/openapi.json` })
  expect([status, described.servers, Object.keys(described.paths)]).toEqual([
    200,
    [{ url: 'https://gw.example.com' }],
    ['/call-workflow', '/call-workflow/{workflowId}'],
  ])
})

test('other methods, types and query parameters are rejected', async () => {
  const { send, post, runs } = await open()
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
    await expect(send({ method })).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED', headers: { allow: 'POST' } })
  }
  const run = runs.add({ head: { workflow: 'join', requester: 'svc' } })
  await expect(send({ method: 'POST', url: `${address}/${run.head.id}` })).rejects.toMatchObject({
    code: 'METHOD_NOT_ALLOWED',
  })
  await expect(post(body, { 'content-type': 'text/plain' })).rejects.toMatchObject({ code: 'UNSUPPORTED_MEDIA_TYPE' })
  for (const query of ['?after=x', '?after=-1', '?x=1']) {
    await expect(send({ url: `${address}/${run.head.id}${query}` })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  }
})

test('an empty list of workflows is reported, and listed workflows are looked up', () => {
  const issues = noIssues()
  const context = fakeParseContext()
  callWorkflow.prepare(fakeParams({}), issues, context)
  expect(issueTexts(issues.list)).toEqual([expect.stringContaining('nothing can be called')])
  callWorkflow.prepare(fakeParams({ allowedWorkflow: ['a', 'b'] }), issues, context)
  expect(context.references.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['workflow a', 'workflow b'])
})

test.each([' boss', 'boss\u00a0', ' ', 'a\u202eb', 'a\u2028b'])(
  'no user may be named %j, which looks like another',
  async (name) => {
    const { post, runs } = await open()
    const named = { ...body, user: { attributes: [{ name: 'uid', values: [name] }] } }
    expect(await problemsOf(post(named))).toEqual(['UNPROCESSABLE', '/user/attributes/0/values'])
    expect(await problemsOf(post({ ...body, requestor: name }))).toEqual(['BAD_REQUEST', '/requestor'])
    expect(runs.calls).toEqual([])
  },
)
