import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { expectDescribedBy } from '#testing/gateway/api-contract.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { MemoryRuns } from '#testing/workflows/memory-runs.ts'
import { byLogin, someApproval } from '#testing/workflows/some-approval.ts'
import workflowAdmin from './workflow-admin.ts'

const approval = someApproval({
  id: 'a-1',
  state: 'denied',
  run: { subject: 'jjackson', requester: 'boss' },
  version: 2,
  approvers: [byLogin('chief')],
  decision: { at: new Date('2030-01-02T01:00:00Z'), by: byLogin('chief'), comment: 'no' },
})

async function open(params: ParamValues = {}) {
  const runs = new MemoryRuns()
  const prepared = workflowAdmin.prepare(fakeParams(params), noIssues(), fakeParseContext())
  const approvals = { ofRun: async () => [approval] }
  const filter = await prepared.create(fakeModuleHost({ runs, approvals }))
  const send = async (method: string, path: string, body?: unknown) => {
    const response = await filter.handle(exchangeOf(method, path, body), nothingBehind)
    expectDescribedBy(prepared, method, path, response)
    return { status: response.status, body: JSON.parse(String(response.body)) }
  }
  return { runs, filter, send }
}

function exchangeOf(method: string, path: string, body?: unknown): Exchange {
  const url = `https://gw.example.com/admin${path}`
  const headers = { 'content-type': 'application/json' }
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  return {
    request: fakeRequest({ method, url, headers, ...sent }),
    application: 'admin',
    mount: '/admin',
    pathInfo: new URL(url).pathname.slice('/admin'.length),
    subject: subject('uid=root,o=test'),
  }
}

const nothingBehind = async () => {
  throw new Error('there is nothing behind this filter')
}

test('runs are listed, filtered and paged; incidents have their own list', async () => {
  const { runs, send } = await open()
  runs.add({ state: 'completed' })
  const stuck = runs.add({ state: 'incident', incident: { task: 'w:0', code: 'TARGET_FAILED', message: 'no' } })
  expect((await send('GET', '/runs')).body.runs).toHaveLength(2)
  expect((await send('GET', '/runs?limit=1')).body).toMatchObject({ next: 'more' })
  expect((await send('GET', '/runs?state=completed&state=ready')).body.runs).toMatchObject([{ state: 'completed' }])
  expect((await send('GET', '/incidents')).body.runs).toMatchObject([
    { id: stuck.head.id, incident: { message: 'no' } },
  ])
})

test('runs are filtered by the time of their creation and by the target of an incident', async () => {
  const { runs, send } = await open()
  const incident = { task: 'w:0', code: 'TARGET_FAILED', message: 'no', target: 'crm' }
  const stuck = runs.add({ state: 'incident', incident, created: new Date('2030-01-01T00:00:00Z') })
  runs.add({ state: 'incident', incident: { ...incident, target: 'mail' } })
  const found = async (query: string) => (await send('GET', query)).body.runs.map(({ id }: { id: string }) => id)
  expect(await found('/runs?until=2030-01-02T00:00:00Z')).toEqual([stuck.head.id])
  expect(await found('/incidents?from=2030-01-03')).toEqual([])
  expect(await found('/runs?target=crm')).toEqual([stuck.head.id])
})

test('changes that failed part way have a filter', async () => {
  const { runs, send } = await open()
  const incident = { task: 'w:0', code: 'TARGET_FAILED', message: 'no' }
  const half = runs.add({ state: 'incident', incident, touched: true })
  const unchanged = runs.add({ state: 'incident', incident }).head.id
  const done = runs.add({ state: 'completed', touched: true }).head.id
  for (const list of ['/runs', '/incidents']) {
    expect((await send('GET', `${list}?unfinished=true`)).body.runs).toMatchObject([{ id: half.head.id }])
  }
  expect((await send('GET', '/runs?unfinished=false')).body.runs).toMatchObject([{ id: done }, { id: unchanged }])
  expect((await send('GET', '/incidents?unfinished=false')).body.runs).toMatchObject([{ id: unchanged }])
  expect((await send('GET', '/runs')).body.runs).toHaveLength(3)
  const wrong = send('GET', '/runs?unfinished=yes')
  await expect(wrong).rejects.toMatchObject({ code: 'BAD_REQUEST', publicText: 'unfinished must be true or false.' })
})

test('runs are exported as a file', async () => {
  const { runs, filter } = await open()
  runs.add({
    state: 'failed',
    head: { reason: '=1+1' },
    incident: { task: 'w:0', code: 'TARGET_FAILED', message: 'no\nanswer' },
  })
  const exchange = exchangeOf('GET', '/runs?format=csv&state=failed')
  const { body, headers } = await filter.handle(exchange, nothingBehind)
  expect(headers['content-disposition']).toBe('attachment; filename="runs.csv"')
  const lines = (await text(body as Readable)).split('\r\n')
  expect(lines[0]).toContain('id,workflow,state,subject,requester')
  expect(lines[1]).toContain(`w,failed,jjackson,caller,,'=1+1`)
  expect(lines[1]).toContain('w:0,"no\nanswer"')
})

test('a run is shown with its timeline and its approvals', async () => {
  const { runs, send } = await open()
  const run = runs.add()
  const { body } = await send('GET', `/runs/${run.head.id}`)
  expect(body).toMatchObject({
    id: run.head.id,
    fence: 1,
    definitions: { w: 'hash' },
    timeline: [{ id: 1, error: 'connect ECONNREFUSED 10.0.0.7' }, { id: 2 }],
    approvals: [{ id: 'a-1', version: 2, status: 'denied', decision: { by: 'chief', comment: 'no' } }],
  })
  expect((await send('GET', `/runs/${run.head.id}?after=1`)).body.timeline).toHaveLength(1)
})

test('the data of a run is not shown, even if it is available', async () => {
  const { runs, send } = await open()
  const run = runs.add({ state: 'incident' })
  runs.runs.set(run.head.id, Object.assign({ ...run }, { data: { user: { mail: 'secret@example.com' } } }))
  const answers = [
    await send('GET', '/runs'),
    await send('GET', '/incidents'),
    await send('GET', `/runs/${run.head.id}`),
    await send('POST', `/runs/${run.head.id}/retry`, { fence: 1 }),
  ]
  expect(JSON.stringify(answers)).not.toContain('secret@example.com')
})

test('an administrator retries, skips and cancels, and is named', async () => {
  const { runs, send } = await open()
  const run = runs.add({ state: 'incident' })
  expect((await send('POST', `/runs/${run.head.id}/retry`, { fence: 1 })).body).toMatchObject({
    state: 'ready',
    fence: 2,
  })
  await send('POST', `/runs/${run.head.id}/skip`, { fence: 2, reason: 'done by hand' })
  expect((await send('POST', `/runs/${run.head.id}/cancel`, { fence: 3, reason: 'left' })).body.state).toBe('cancelled')
  expect(runs.interventions).toEqual([
    { action: 'retry', id: run.head.id, fence: 1, by: 'root' },
    { action: 'skip', id: run.head.id, fence: 2, by: 'root', reason: 'done by hand' },
    { action: 'cancel', id: run.head.id, fence: 3, by: 'root', reason: 'left' },
  ])
})

test('an intervention on a run that changed since it was shown is rejected', async () => {
  const { runs, send } = await open()
  const run = runs.add({ state: 'incident', fence: 7 })
  const stale = send('POST', `/runs/${run.head.id}/retry`, { fence: 6 })
  await expect(stale).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
})

test.each([
  ['retry', {}],
  ['retry', { fence: '1' }],
  ['retry', { fence: 1, by: 'someone' }],
  ['retry', { fence: 1, reason: 'x'.repeat(2001) }],
  ['skip', { fence: 1 }],
  ['cancel', { fence: 1, reason: '' }],
  ['cancel', { fence: 1, reason: ' \t' }],
  ['skip', { fence: 1, reason: ' \n ' }],
])('%s with %j is rejected', async (action, body) => {
  const { runs, send } = await open()
  const run = runs.add({ state: 'incident' })
  await expect(send('POST', `/runs/${run.head.id}/${action}`, body)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  expect(runs.interventions).toEqual([])
})

test('if runs are only shown, no one can intervene', async () => {
  const { runs, send } = await open({ readOnly: 'true' })
  const run = runs.add({ state: 'incident' })
  expect((await send('GET', `/runs/${run.head.id}`)).status).toBe(200)
  for (const action of ['retry', 'skip', 'cancel']) {
    const refused = send('POST', `/runs/${run.head.id}/${action}`, { fence: 1, reason: 'x' })
    await expect(refused).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  }
  expect(runs.interventions).toEqual([])
})

test.each([
  '?state=done',
  '?limit=0',
  '?limit=501',
  '?limit=x',
  '?stat=ready',
  '?name=a&name=b',
  '?from=now',
  '?format=pdf',
  '?__proto__=x',
])('the query %s is rejected', async (query) => {
  const { send } = await open()
  await expect(send('GET', `/runs${query}`)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})

test('other paths and methods are rejected', async () => {
  const { runs, send } = await open()
  const run = runs.add()
  const paths = ['', '/', '/runs/', '/runs/x', `/runs/${crypto.randomUUID()}`, `/runs/${run.head.id}/constructor`]
  for (const path of [...paths, `/runs/${run.head.id}/retry/x`, '/incidents/x', '/other']) {
    await expect(send('GET', path)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  }
  await expect(send('POST', '/runs', {})).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
  await expect(send('GET', `/runs/${run.head.id}/retry`)).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
  await expect(send('GET', '/incidents?state=ready')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})
