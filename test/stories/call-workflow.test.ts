import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import remoteGateway from '#adapters/targets/remote-gateway/remote-gateway.ts'
import { targetFixture } from '#sdk/conformance/target-fixture.ts'
import { freshSchema, postgresUrl, runSql } from '#testing/databases/postgres.ts'
import { expectDescribed } from '#testing/gateway/api-contract.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { fresh } from '#testing/scim/scim-story.ts'
import { type StoryGateway, startCallWorkflow } from '#testing/stories/call-workflow-story.ts'
import { runTask } from '#testing/workflows/run-task.ts'
import { customTask } from '#testing/workflows/workflow-fixture.ts'

const run = promisify(execFile)

describe('the call-workflow API on SQLite', () => story())
describe.skipIf(postgresUrl() === '')('the call-workflow API on PostgreSQL', () => story(freshSchema))

const bodyFor = (uid: string, more: object = {}) => ({
  name: 'onboard',
  uidAttributeName: 'uid',
  user: { attributes: [{ name: 'uid', values: [uid] }] },
  requestParams: { team: 'blue' },
  ...more,
})
const asynchronously = { requestParams: { team: 'blue', 'UNISON.EXEC.TYPE': 'UNISON.EXEC.ASYNC' } }

function story(databaseUrl?: () => Promise<string>): void {
  let gateway: StoryGateway
  let url: string | undefined
  beforeAll(async () => {
    url = await databaseUrl?.()
    gateway = await startCallWorkflow(url)
  })
  afterAll(async () => gateway?.close())

  interface Options {
    readonly as?: string
    readonly path?: string
    readonly method?: string
    readonly headers?: Record<string, string>
  }
  async function send(body: unknown, { as = 'svc', path = '/story', method = 'POST', headers = {} }: Options = {}) {
    const response = await fetch(`${gateway.process.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${await gateway.token(as)}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const type = response.headers.get('content-type')
    const described = path.replace(/^\/(?:story|as-specified|call-workflow-as-myself)(?=\/|$)/, '/call-workflow')
    expectDescribed({ method, path: described, status: response.status, type, text })
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      location: response.headers.get('location'),
      body: text === '' ? undefined : JSON.parse(text),
    }
  }
  const get = (id: string, as?: string) =>
    send(undefined, { method: 'GET', path: `/story/${id}`, ...(as === undefined ? {} : { as }) })
  const admin = (path: string, body?: unknown) =>
    send(body, { as: 'admin', path: `/workflow-admin${path}`, method: body === undefined ? 'GET' : 'POST' })
  const reaches = (id: string, status: string) =>
    until(async () => (await admin(`/runs/${id}`)).body.state === status, 20_000)

  /** The audit entries about a user. */
  async function auditOf(subject: string): Promise<{ [name: string]: unknown }[]> {
    const { output } = await gateway.command(
      'audit',
      'tail',
      '--output',
      'json',
      '--subject',
      subject,
      '--limit',
      '1000',
    )
    return JSON.parse(output)
  }

  test('a call without the parameter that names a group is rejected, and writes nothing', async () => {
    const { status, body } = await send(bodyFor('teamless', { requestParams: {} }))
    expect(status).toBe(422)
    expect(JSON.stringify(body)).toContain('names a group by the parameter \\"team\\"')
    expect(await auditOf('teamless')).toEqual([])
  })

  test('the documented call works as written, token included', async () => {
    const guide = readFileSync('docs/guides/call-workflow.md', 'utf8')
    const blocks = Array.from(guide.matchAll(/```sh\n(.*?)```/gs), (match) => match[1] ?? '')
    const call = blocks.find((block) => block.startsWith('curl -X POST') && block.includes('"user"')) ?? ''
    expect(call).toContain('/call-workflow')
    const { stdout } = await run('sh', ['-c', call.replaceAll('http://127.0.0.1:8080', gateway.process.url)], {
      env: { ...process.env, ID_TOKEN: await gateway.token('hr-system') },
    })
    const answer = JSON.parse(stdout)
    expect(answer).toEqual({ workflowId: expect.any(String), status: 'completed', changes: expect.any(Number) })
    const asked = { method: 'GET', path: `/call-workflow/${answer.workflowId}` }
    expect(await send(undefined, { ...asked, as: 'hr-system' })).toMatchObject({
      status: 200,
      body: { status: 'completed', timeline: expect.arrayContaining([expect.objectContaining({ outcome: 'next' })]) },
    })
    expect((await send(undefined, { ...asked, as: 'eve' })).status).toBe(404)
    const rows = await auditOf('jjackson')
    expect(rows.length).toBe(answer.changes)
    expect(rows).toContainEqual(
      expect.objectContaining({
        requestor: 'hr-system',
        reason: 'Starts on Monday',
        workflow: { id: answer.workflowId, name: 'onboard' },
        attribute: 'mail',
        value: 'jjackson@example.com',
      }),
    )
    expect(rows[0]).not.toHaveProperty('caller')
  })

  test('the caller is shown beside the requestor', async () => {
    const uid = fresh('ada')
    expect((await send(bodyFor(uid, { requestor: 'boss', reason: 'why' }))).status).toBe(200)
    const named = { requestor: 'boss', caller: 'svc', reason: 'why' }
    expect(await auditOf(uid)).toContainEqual(expect.objectContaining(named))
  })

  test('a service account names requester, user and groups without further configuration, and is shown beside the requester', async () => {
    const uid = fresh('mary')
    const asked = bodyFor(uid, { requestor: 'boss', reason: 'why', user: { uid, groups: ['auditors'] } })
    const path = '/as-specified'
    expect(await send(asked, { path })).toMatchObject({ status: 200, body: { status: 'completed' } })
    const named = { requestor: 'boss', caller: 'svc', reason: 'why' }
    const rows = await auditOf(uid)
    expect(rows).toContainEqual(expect.objectContaining({ ...named, kind: 'group', value: 'auditors' }))
    expect(rows.filter(({ caller }) => caller !== 'svc')).toEqual([])
    const waiting = await send({ ...asked, name: 'ask' }, { path })
    expect(waiting.status).toBe(202)
    expect((await admin(`/runs/${waiting.body.workflowId}`)).body).toMatchObject({ requestor: 'boss', caller: 'svc' })
  })

  test('a task of another gateway calls it, and once for all attempts of a step', async () => {
    const uid = fresh('remote')
    const params = fakeParams({ token: await gateway.token('svc') })
    const other = await remoteGateway.prepare(params, noIssues(), fakeParseContext()).create(fakeModuleHost())
    onTestFinished(() => other.close?.())
    const task = customTask('com.tremolosecurity.provisioning.customTasks.CallRemoteWorkflow', {
      workflowName: 'onboard',
      url: `${gateway.process.url}/story`,
      lastMileKeyName: 'other',
      uidAttributeName: 'uid',
      attributeFromRequest: ['team'],
      staticRequestValues: ['UNISON.EXEC.TYPE=UNISON.EXEC.SYNC'],
    })
    const { request } = targetFixture(other, { attributes: ['a', 'b', 'c'], groups: ['a', 'b', 'c'] })
    const attempt = async () => {
      const { log } = await runTask(task, {
        host: fakeModuleHost({ targets: { other } }),
        forTarget: () => ({ ...request, idempotencyKey: uid }),
        user: { userID: uid, keepGroups: true },
        request: { team: 'blue' },
        requestor: 'boss',
      })
      return log.lines
    }
    const first = await attempt()
    expect(first).toMatchObject([{ fields: { status: 200, run: expect.any(String) } }])
    const rows = await auditOf(uid)
    expect(rows).toContainEqual(expect.objectContaining({ requestor: 'boss', caller: 'svc' }))
    expect(await attempt()).toEqual(first)
    expect(await auditOf(uid)).toEqual(rows)
  })

  test('a password reaches the target, and nothing stored or shown', async () => {
    const password = fresh('correct-horse')
    const welcome = async (uid: string, type: string) => {
      const user = { attributes: [{ name: 'uid', values: [uid] }], userPassword: password }
      const requestParams = { 'UNISON.EXEC.TYPE': type }
      return await send(bodyFor(uid, { name: 'welcome', user, requestParams }), { headers: { 'idempotency-key': uid } })
    }
    const [now, later] = [fresh('now'), fresh('later')]
    expect((await welcome(now, 'UNISON.EXEC.SYNC')).status).toBe(200)
    const { body } = await welcome(later, 'UNISON.EXEC.ASYNC')
    await reaches(body.workflowId, 'completed')
    const shown = JSON.stringify(await admin(`/runs/${body.workflowId}`))
    const { output: exported } = await gateway.command('audit', 'export')
    const files = readdirSync(gateway.process.dataFolder, { withFileTypes: true, recursive: true })
    const stored = files.flatMap((file) =>
      file.isFile() ? [readFileSync(join(file.parentPath, file.name), 'latin1')] : [],
    )
    if (url !== undefined) stored.push(JSON.stringify(await runSql(url, 'select * from runs')))
    expect(stored.join('\n')).toContain(later)
    // Log lines are written in batches.
    const logged = (uid: string) => gateway.process.output().includes(`${uid} has ${password.length} characters`)
    await until(async () => logged(now) && logged(later), 10_000)
    for (const text of [shown, exported, gateway.process.output(), ...stored]) expect(text).not.toContain(password)
  })

  test('an asynchronous call is accepted, done, and shown only to the caller that started it', async () => {
    const uid = fresh('grace')
    const accepted = await send(bodyFor(uid, asynchronously))
    const { workflowId } = accepted.body
    expect(accepted).toMatchObject({ status: 202, body: { status: 'accepted' } })
    expect(accepted.location).toBe(`${gateway.process.url}/story/${workflowId}`)
    await until(async () => (await get(workflowId)).body.status === 'completed', 20_000)
    expect((await get(workflowId)).body).toMatchObject({
      name: 'onboard',
      subject: uid,
      requestor: 'svc',
      timeline: [{ taskType: 'addGroup' }, { taskType: 'provision' }],
    })
    expect((await get(workflowId, 'other')).status).toBe(404)
    const elsewhere = await send(undefined, { method: 'GET', path: `/call-workflow-as-myself/${crypto.randomUUID()}` })
    expect(elsewhere.status).toBe(404)
    expect((await fetch(`${gateway.process.url}/story/${workflowId}`)).status).toBe(401)
    expect((await get(workflowId, 'admin')).status).toBe(403)
  })

  test('fifty concurrent calls with one key are one run, and all get the same answer', async () => {
    for (const more of [{}, asynchronously]) {
      const uid = fresh('katherine')
      const token = await gateway.token('svc')
      const body = JSON.stringify(bodyFor(uid, more))
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': uid }
      const answers = await Promise.all(
        Array.from({ length: 50 }, async () => {
          const response = await fetch(`${gateway.process.url}/story`, { method: 'POST', headers, body })
          return { status: response.status, text: await response.text() }
        }),
      )
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
      const { workflowId } = JSON.parse(answers[0]?.text ?? '')
      await until(async () => (await auditOf(uid)).length > 0, 20_000)
      const rows = await auditOf(uid)
      expect(new Set(rows.map(({ workflow }) => (workflow as { id: string }).id))).toEqual(new Set([workflowId]))
      expect(rows.filter(({ kind }) => kind === 'entry')).toHaveLength(1)
      const other = await send(bodyFor(uid, { ...more, reason: 'another' }), { headers: { 'idempotency-key': uid } })
      expect(other).toMatchObject({ status: 422, type: 'application/problem+json' })
    }
  })

  test('engine parameters are rejected with their path; a parameter that no task uses is accepted', async () => {
    const refused = await send(
      bodyFor(fresh('mary'), {
        requestParams: { team: 'x', APPROVAL_IMMEDIATE_ACTION: 'true', APPROVAL_REASON: 'me', other: 'x' },
      }),
    )
    expect(refused).toMatchObject({
      status: 422,
      type: 'application/problem+json',
      body: {
        type: 'urn:gatehouse:error:unprocessable',
        status: 422,
        errors: [
          { pointer: '#/requestParams/APPROVAL_IMMEDIATE_ACTION' },
          { pointer: '#/requestParams/APPROVAL_REASON' },
        ],
      },
    })
    const undeclared = { requestParams: { team: 'blue', other: 'x' } }
    expect((await send(bodyFor(fresh('nora'), undeclared))).status).toBe(200)
    expect((await send(bodyFor('x', { name: 'offboard' }))).status).toBe(403)
    expect((await send(bodyFor('x', { requestor: 'boss' }), { path: '/call-workflow-as-myself' })).status).toBe(403)
    expect((await send(bodyFor('x', { user: { attributes: [] } }))).status).toBe(422)
    expect((await send(bodyFor('x', { extra: 1 }))).status).toBe(400)
    expect(await send(undefined, { method: 'GET' })).toMatchObject({ status: 405, type: 'application/problem+json' })
  })

  test('bodies that are too large, too deep or of another kind get an answer, and the gateway continues', async () => {
    const large = await send(JSON.stringify(bodyFor('x', { reason: 'x'.repeat(2 * 1024 * 1024) })))
    expect(large).toMatchObject({ status: 413, type: 'application/problem+json' })
    const deep = '['.repeat(500_000)
    expect((await send(deep)).status).toBe(400)
    expect((await send(`{"requestParams":${deep}${']'.repeat(500_000)}}`)).status).toBe(400)
    const many = Array.from({ length: 20_000 }, (_, i) => ({ name: `a${i}`, values: [] }))
    expect((await send(bodyFor('x', { user: { attributes: many } }))).status).toBe(400)
    expect((await send('a=b', { headers: { 'content-type': 'application/x-www-form-urlencoded' } })).status).toBe(415)
    expect((await send('{"__proto__": {"name": "onboard"}}')).status).toBe(400)
    expect((await send(bodyFor(fresh('dorothy')))).status).toBe(200)
  })

  test('a listed workflow that does not exist is 404', async () => {
    expect((await send(bodyFor('x', { name: 'gone' }))).status).toBe(404)
  })

  test('a run with an approval is 202, waits, and its caller may cancel it', async () => {
    await send(
      bodyFor('boss', {
        user: {
          attributes: [
            { name: 'uid', values: ['boss'] },
            { name: 'mail', values: ['b@x.io'] },
          ],
        },
      }),
    )
    const waiting = await send(bodyFor(fresh('joan'), { name: 'ask' }))
    expect(waiting).toMatchObject({ status: 202, body: { status: 'waiting' } })
    const { workflowId } = waiting.body
    expect((await get(workflowId)).body).toMatchObject({ status: 'waiting' })
    expect((await admin(`/runs/${workflowId}`)).body).toMatchObject({
      state: 'waiting',
      approvals: [{ label: 'May blue have another member?', status: 'open', approvers: ['boss'] }],
    })
    const cancelled = await send(undefined, { method: 'DELETE', path: `/story/${workflowId}` })
    expect(cancelled).toMatchObject({ status: 200, body: { status: 'cancelled' } })
    expect((await admin(`/runs/${workflowId}`)).body.approvals).toMatchObject([{ status: 'cancelled' }])
  })

  test('an incident is seen, retried, skipped and cancelled, by the API and on the command line', async () => {
    const stumble = async () => {
      const { body } = await send(
        bodyFor(fresh('annie'), {
          ...asynchronously,
          name: 'stumble',
          requestParams: { 'UNISON.EXEC.TYPE': 'UNISON.EXEC.ASYNC' },
        }),
      )
      await reaches(body.workflowId, 'incident')
      return String(body.workflowId)
    }
    const [retried, skipped, cancelled, byCommand] = [
      await stumble(),
      await stumble(),
      await stumble(),
      await stumble(),
    ]
    const fenceOf = async (id: string): Promise<number> => (await admin(`/runs/${id}`)).body.fence
    const incidents = (await admin('/incidents')).body.runs.map(({ id }: { id: string }) => id)
    expect(incidents).toEqual(expect.arrayContaining([retried, skipped, cancelled, byCommand]))
    expect((await get(retried)).body).toMatchObject({ status: 'incident', failure: { task: 'stumble:0' } })

    expect((await admin(`/runs/${retried}/retry`, { fence: (await fenceOf(retried)) + 1 })).status).toBe(412)
    expect((await admin(`/runs/${retried}/retry`, { fence: await fenceOf(retried) })).status).toBe(200)
    await reaches(retried, 'completed')
    expect((await admin(`/runs/${skipped}/skip`, { fence: await fenceOf(skipped) })).status).toBe(400)
    const skip = { fence: await fenceOf(skipped), reason: 'done by hand' }
    expect((await admin(`/runs/${skipped}/skip`, skip)).status).toBe(200)
    await reaches(skipped, 'completed')
    const cancel = { fence: await fenceOf(cancelled), reason: 'not needed' }
    expect((await admin(`/runs/${cancelled}/cancel`, cancel)).body).toMatchObject({ state: 'cancelled' })
    expect((await admin(`/runs/${cancelled}/cancel`, cancel)).status).toBe(412)
    const again = { ...cancel, fence: await fenceOf(cancelled) }
    expect((await admin(`/runs/${cancelled}/cancel`, again)).status).toBe(409)

    const told = await gateway.command('workflow', 'list', '--state', 'incident')
    expect(told.output).toContain(byCommand)
    expect((await gateway.command('workflow', 'show', byCommand)).output).toMatch(/state {6}incident/)
    expect((await gateway.command('workflow', 'retry', byCommand, '--by', 'root')).code).toBe(0)
    await reaches(byCommand, 'completed')
    expect((await gateway.command('workflow', 'retry', byCommand)).code).toBe(1)
  })

  test('an accepted run is done after the process was killed', async () => {
    const token = await gateway.token('svc')
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const uids = Array.from({ length: 60 }, () => fresh('killed'))
    const ids: string[] = []
    await Promise.all(
      uids.map(async (uid) => {
        const body = JSON.stringify(bodyFor(uid, asynchronously))
        const response = await fetch(`${gateway.process.url}/story`, { method: 'POST', headers, body })
        expect(response.status).toBe(202)
        ids.push(((await response.json()) as { workflowId: string }).workflowId)
      }),
    )
    await gateway.restartKilled()
    await until(async () => {
      const { body } = await admin('/runs?limit=500')
      const states = new Map(body.runs.map(({ id, state }: { id: string; state: string }) => [id, state]))
      return ids.every((id) => states.get(id) === 'completed')
    }, 90_000)
    const rows = (await Promise.all(uids.slice(0, 10).map(auditOf))).flat()
    expect(rows.filter(({ kind }) => kind === 'entry')).toHaveLength(10)
    expect((await gateway.command('audit', 'verify')).code).toBe(0)
  })
}
