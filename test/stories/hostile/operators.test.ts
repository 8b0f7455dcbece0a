import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { usePortalApi } from '#testing/stories/portal-api-story.ts'

/** Beside the example: access that only Linus may approve, so that a request of his has no approver. */
const soleAccess = `
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: sole-access }
spec:
  label: Sole access
  description: Access that one operator approves
  inList: true
  orgId: root
  tasks:
    - taskType: approval
      label: Sole access
      emailTemplate: Please decide.
      mailAttr: mail
      failureEmailSubject: Denied
      failureEmailMsg: Denied
      approvers: [{ scope: filter, constraint: (uid=linus) }]
    - { taskType: addGroup, name: helpdesk }
    - { taskType: provision, target: people, sync: true, attributes: [uid] }
`

describe('operators who try to decide alone, on SQLite', () => story())
describe.skipIf(postgresUrl() === '')('operators who try to decide alone, on PostgreSQL', () => story(freshSchema))

function story(databaseUrl?: () => Promise<string>): void {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-operators-'))
  const api = usePortalApi(databaseUrl, async () => {
    cpSync('examples/portal-api', folder, { recursive: true })
    writeFileSync(join(folder, 'sole-access.yaml'), soleAccess)
    const seed = join(folder, 'seed/people.json')
    const people = JSON.parse(readFileSync(seed, 'utf8'))
    const user = (uid: string, groups: string[]) => ({
      userID: uid,
      attributes: { uid: [uid], mail: [`${uid}@example.com`], displayName: [uid] },
      groups,
    })
    people.users.push(user('joan', []), user('mallory', []), user('olga', ['administrators']))
    writeFileSync(seed, JSON.stringify(people))
    return folder
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  async function send(method: string, path: string, as: string, body?: unknown) {
    const response = await api.send(path, { as, method, ...(body === undefined ? {} : { body }) })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }
  const get = async (path: string, as: string) => (await send('GET', path, as)).body
  const reason = 'no approver is there'

  /** The run of a request, once it is in the state. */
  async function request(name: string, as: string, state: string) {
    await send('PUT', '/workflows', as, [{ uuid: crypto.randomUUID(), name, reason: 'on call' }])
    let id = ''
    await until(async () => {
      const { requests } = await get(`/requests?state=${state}`, as)
      id = requests.find((one: { name: string }) => one.name === name)?.id ?? ''
      return id !== ''
    }, 20_000)
    return id
  }
  const runOf = (id: string, as = 'olga') => get(`/admin/runs/${id}`, as)
  const isIn = async (login: string, group: string) => (await get('/user', login)).groups.includes(group)
  const settled = (id: string, state: string) => until(async () => (await runOf(id)).state === state, 20_000)

  test("an operator can't skip, retry or stop a request of their own, and no one can skip the approval", async () => {
    const id = await request('sole-access', 'linus', 'incident')
    const { fence, incident, involvesCaller } = await runOf(id, 'linus')
    for (const action of ['skip', 'retry', 'cancel']) {
      const { status } = await send('POST', `/admin/runs/${id}/${action}`, 'linus', { fence, reason })
      expect([action, status]).toEqual([action, 403])
    }
    expect([incident.code, incident.maySkip, involvesCaller]).toEqual(['NO_APPROVERS', false, true])
    expect((await send('POST', `/admin/runs/${id}/skip`, 'olga', { fence, reason })).status).toBe(409)
    expect(await runOf(id)).toMatchObject({ state: 'incident', fence, involvesCaller: false })
    expect(await isIn('linus', 'helpdesk')).toBe(false)
  })

  test('an approval without approvers is decided by a user whom an uninvolved operator chooses', async () => {
    const id = await request('sole-access', 'linus', 'incident')
    const { fence } = await runOf(id)
    const retry = (as: string, approver: string, more: object = { reason }) =>
      send('POST', `/admin/runs/${id}/retry`, as, { fence, approver, ...more })
    expect((await retry('linus', 'joan')).status).toBe(403)
    for (const approver of ['linus', 'olga', 'nobody']) expect((await retry('olga', approver)).status).toBe(400)
    expect((await retry('olga', 'joan', {})).status).toBe(400)
    expect((await retry('olga', 'joan')).status).toBe(200)
    await settled(id, 'waiting')
    const [approval] = (await runOf(id)).approvals
    expect(approval).toMatchObject({ status: 'open', approvers: ['joan'] })
    await deputize('joan', 'olga')
    for (const as of ['linus', 'olga']) {
      expect((await send('PUT', `/approvals/${approval.id}`, as, { approved: true })).status).toBeGreaterThan(399)
    }
    expect(await isIn('linus', 'helpdesk')).toBe(false)
    expect((await send('PUT', `/approvals/${approval.id}`, 'joan', { approved: true })).status).toBe(200)
    await settled(id, 'completed')
    expect(await isIn('linus', 'helpdesk')).toBe(true)
  })

  const deputize = (login: string, deputy: string) =>
    send('POST', '/delegations', login, {
      deputy,
      starts: new Date(Date.now() - 60_000).toISOString(),
      ends: new Date(Date.now() + 3_600_000).toISOString(),
    })

  test('an operator who reassigns an approval never decides it, not even as a deputy', async () => {
    await deputize('joan', 'linus')
    const id = await request('vault-access', 'mallory', 'waiting')
    const [approval] = (await runOf(id)).approvals
    const reassign = (as: string, version: number, to = 'joan') =>
      send('POST', `/admin/approvals/${approval.id}/reassign`, as, { version, to, reason })
    const decide = (as: string) => send('PUT', `/approvals/${approval.id}`, as, { approved: true })
    expect((await reassign('linus', approval.version)).status).toBe(200)
    expect((await decide('linus')).status).toBe(403)
    const bulk = await send('PUT', '/approvals', 'linus', { approvals: [approval.id], approved: true })
    expect(bulk.body.results[approval.id].status).toBe(403)
    expect((await get('/approvals', 'linus')).approvals).toEqual([])
    expect((await get(`/approvals/${approval.id}`, 'linus')).mayDecide).toBe(false)
    // Back to him: by the approver, and by another operator.
    expect((await send('POST', `/approvals/${approval.id}/reassign`, 'joan', { to: 'linus' })).status).toBe(400)
    expect((await reassign('olga', approval.version + 1, 'linus')).status).toBe(400)
    expect((await runOf(id)).state).toBe('waiting')
    expect((await decide('joan')).status).toBe(200)
    await settled(id, 'completed')
    expect(await isIn('mallory', 'vault')).toBe(true)
  })

  test("an operator can't reassign the approval of a request of their own", async () => {
    const id = await request('vault-access', 'linus', 'waiting')
    const [approval] = (await runOf(id)).approvals
    const body = { version: approval.version, to: 'joan', reason }
    expect((await send('POST', `/admin/approvals/${approval.id}/reassign`, 'linus', body)).status).toBe(403)
    const { approvals } = await get('/admin/approvals', 'linus')
    expect(approvals.find((one: { id: string }) => one.id === approval.id)).toMatchObject({ involvesCaller: true })
    expect((await send('POST', `/admin/approvals/${approval.id}/reassign`, 'olga', body)).status).toBe(200)
  })
}
