import { randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import remoteGateway from '#adapters/targets/remote-gateway/remote-gateway.ts'
import { targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import type { Target, TargetChange } from '#sdk/target/target.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import type { PreviewContext } from '#sdk/workflow/workflow-task.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { runHead } from '#testing/workflows/run-head.ts'
import { runTask, type TaskRunOptions } from '#testing/workflows/run-task.ts'
import { customTask, issuesOf, parseTasks } from '#testing/workflows/workflow-fixture.ts'

interface Received {
  readonly headers: IncomingHttpHeaders
  readonly body: Record<string, unknown>
}

interface Answer {
  readonly status: number
  readonly body?: string
  readonly headers?: Record<string, string>
}

/** Another gateway that answers so, and the target for it. */
async function remote(answer: Answer | 'none' = { status: 200 }, params: ParamValues = { token: 'hush' }) {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    received.push({ headers: request.headers, body: JSON.parse(await text(request)) as Received['body'] })
    if (answer !== 'none') response.writeHead(answer.status, answer.headers).end(answer.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const target = await remoteGateway
    .prepare(fakeParams(params), noIssues(), fakeParseContext())
    .create(fakeModuleHost())
  onTestFinished(async () => {
    await target.close?.()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { received, target, url: `http://127.0.0.1:${port}/workflows/call` }
}

const task = (url: string, more = {}) =>
  customTask('com.tremolosecurity.provisioning.customTasks.CallRemoteWorkflow', {
    workflowName: 'updateLockout',
    lastMileKeyName: 'lastmile-portal',
    url,
    lastMileUid: 'uid',
    staticRequestValues: 'UNISON.EXEC.TYPE=UNISON.EXEC.SYNC',
    lastMileUser: 'system',
    timeSkew: '60000',
    uidAttributeName: 'uid',
    ...more,
  })

const user = { attributes: { uid: ['jen'], mail: ['jen@corp.test', 'j@corp.test'] }, requestor: 'boss' }

async function call(target: Target, spec: ReturnType<typeof task>, options: TaskRunOptions = user) {
  const changes: TargetChange[] = []
  const { request } = targetFixture(target, { attributes: ['a', 'b', 'c'], groups: ['a', 'b', 'c'] })
  const step = { ...request, idempotencyKey: 'run-1/3', audit: (change: TargetChange) => void changes.push(change) }
  const host = fakeModuleHost({ targets: { 'lastmile-portal': target } })
  const { log } = await runTask(spec, { host, forTarget: () => step, ...options })
  return { changes, log: log.lines }
}

test('the user, its groups and named values are sent, with the same key in every attempt', async () => {
  const { received, target, url } = await remote({ status: 202, body: '{"workflowId":"run-9","status":"accepted"}' })
  const spec = task(url, {
    attributeFromRequest: ['team', 'absent'],
    staticRequestValues: ['UNISON.EXEC.TYPE=UNISON.EXEC.ASYNC', 'source=a=b'],
  })
  const options = { ...user, request: { team: 'blue', other: 'kept' }, user: { groups: ['g'], requestReason: 'why' } }
  const first = await call(target, spec, options)
  expect(first.changes).toEqual([
    { subject: 'attribute', action: 'add', attribute: 'workflow', value: 'updateLockout' },
  ])
  expect(first.log).toMatchObject([{ fields: { status: 202, run: 'run-9' } }])
  await call(target, spec, options)
  expect(received[0]?.body).toEqual({
    name: 'updateLockout',
    uidAttributeName: 'uid',
    requestor: 'boss',
    reason: 'why',
    requestParams: { team: 'blue', 'UNISON.EXEC.TYPE': 'UNISON.EXEC.ASYNC', source: 'a=b' },
    user: {
      uid: 'jen',
      attributes: [
        { name: 'uid', values: ['jen'] },
        { name: 'mail', values: ['jen@corp.test', 'j@corp.test'] },
      ],
      groups: ['g'],
    },
  })
  expect(received[0]?.headers).toMatchObject({ authorization: 'Bearer hush', 'content-type': 'application/json' })
  const keys = received.map(({ headers }) => headers['idempotency-key'])
  expect(keys[0]).toMatch(/^[\w-]{43}$/)
  expect(keys).toEqual([keys[0], keys[0]])
})

test('a missing attribute is the login, unknown groups are left out, and OpenUnison gets a LastMile token', async () => {
  const { received, target, url } = await remote({ status: 200 }, { lastMileKey: randomBytes(32).toString('base64') })
  await call(target, task(url), { requestor: '', user: { keepGroups: true, password: 'hunter2' } })
  expect(received[0]?.body).toMatchObject({
    requestor: 'system',
    user: { uid: 'jjackson', attributes: [{ name: 'uid', values: ['jjackson'] }], userPassword: 'hunter2' },
  })
  expect(received[0]?.body['user']).not.toHaveProperty('groups')
  const token = received[0]?.headers.authorization?.replace('Bearer ', '') ?? ''
  expect(JSON.parse(Buffer.from(token, 'base64').toString())).toEqual({
    iv: expect.any(String),
    encryptedRequest: expect.any(String),
  })
})

test.each([
  [{ status: 401 }, 'TARGET_FAILED', 'does not accept the credential'],
  [{ status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 'TARGET_FAILED', 'redirects are not followed'],
  [{ status: 422, headers: { 'x-request-id': 'abc-1' } }, 'TARGET_FAILED', 'status 422 (request abc-1 there)'],
  [{ status: 409 }, 'TARGET_UNREACHABLE', 'status 409'],
  [{ status: 503, headers: { 'retry-after': '7' } }, 'TARGET_UNREACHABLE', 'status 503'],
] as const)('%o is %s, and nothing is in the audit', async (answer, code, message) => {
  const { target, url } = await remote(answer)
  const failure = await call(target, task(url)).catch((error: unknown) => error)
  expect(failure).toMatchObject({ code, message: expect.stringContaining(message) })
  if (answer.status === 503) expect(failure).toMatchObject({ retryAfter: 7 })
})

test('an answer of more than 1 MiB is not read', async () => {
  const { target, url } = await remote({ status: 200, body: ' '.repeat(1_100_000) })
  await expect(call(target, task(url))).rejects.toMatchObject({
    code: 'TARGET_FAILED',
    message: expect.stringContaining('longer than 1048576 bytes'),
  })
})

test('a page is not the answer of a gateway', async () => {
  const page = { 'content-type': 'text/html; charset=utf-8' }
  const { target, url } = await remote({ status: 200, body: '<form>', headers: page })
  await expect(call(target, task(url))).rejects.toMatchObject({
    code: 'TARGET_FAILED',
    message: expect.stringContaining('answered with a page'),
  })
  const empty = await remote({ status: 200, headers: page })
  expect((await call(empty.target, task(empty.url))).changes).toHaveLength(1)
})

test('a gateway that does not answer is given up on', async () => {
  const { target, url } = await remote('none', { token: 'hush', timeoutMillis: '200' })
  await expect(call(target, task(url))).rejects.toMatchObject({
    code: 'TARGET_UNREACHABLE',
    message: expect.stringContaining('took too long'),
  })
})

test('the preview names the workflow and its gateway, and calls nothing', async () => {
  const [prepared] = parseTasks([task('https://gw.corp.test/call')]).tasks
  const created = await prepared?.create(fakeModuleHost())
  const started: string[] = []
  const effects = { start: ({ head }: WorkflowCall) => void started.push(head.workflow) }
  const context = { user: { ...userOf('ada'), keepGroups: false }, run: runHead({ requester: 'boss' }), effects }
  await created?.preview?.(context as unknown as PreviewContext)
  expect(started).toEqual(['updateLockout (gw.corp.test)'])
})

test('parameters are checked', () => {
  expect(parseTasks([task('https://gw.corp.test/call')]).referred).toEqual([
    { kind: 'target', name: 'lastmile-portal', path: [0, 'params', 'lastMileKeyName', 0] },
  ])
  expect(issuesOf([task('http://gw.corp.test/call')]).join()).toContain('use https')
  const keys = { attributeFromRequest: ['APPROVAL_ID'], staticRequestValues: ['WORKFLOW=x', 'nothing'] }
  const problems = issuesOf([task('https://gw.corp.test/call', keys)]).join()
  expect(problems).toContain('"WORKFLOW" is a key of the engine')
  expect(problems).toContain('"nothing" is not name=value')
  expect(problems).toContain('"APPROVAL_ID" is a key of the engine')
})

test.each<[ParamValues, string]>([
  [{}, 'one of "token" and "lastMileKey" is required'],
  [{ token: 'a', lastMileKey: randomBytes(32).toString('base64') }, 'and not both'],
  [{ lastMileKey: 'short' }, 'is not a AES key'],
])('the target rejects %j', (params, message) => {
  const issues = noIssues()
  remoteGateway.prepare(fakeParams(params, Object.keys(params)), issues, fakeParseContext())
  expect(issueTexts(issues.list).join()).toContain(message)
})
