import { describe, expect, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { type PortalApiRequest, usePortalApi } from '#testing/stories/portal-api-story.ts'

describe('the Main API on SQLite', () => story())
describe.skipIf(postgresUrl() === '')('the Main API on PostgreSQL', () => story(freshSchema))

function story(databaseUrl?: () => Promise<string>): void {
  const api = usePortalApi(databaseUrl)

  async function send(path: string, request?: PortalApiRequest) {
    const response = await api.send(path, request)
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: text === '' ? undefined : JSON.parse(text),
    }
  }
  const get = (path: string, as?: string) => send(path, as === undefined ? {} : { as })
  const put = (path: string, body: unknown, as = 'ada') => send(path, { as, method: 'PUT', body })
  const post = (path: string, body: unknown, as = 'ada') => send(path, { as, method: 'POST', body })
  const ask = (more: object = {}, as = 'ada') =>
    put('/workflows', [{ uuid: crypto.randomUUID(), name: 'vault-access', reason: 'on call', ...more }], as)
  const onlyResult = (body: object): unknown => Object.values(body)[0]
  /** The approval about a subject, once its run reaches it. */
  async function approvalFor(subject: string, as = 'grace') {
    let found: { approval: string; workflow: string } | undefined
    await until(async () => {
      const { body } = await get('/approvals', as)
      found = body.approvals.find(({ user }: { user: string }) => user === subject)
      return found !== undefined
    }, 20_000)
    if (found === undefined) throw new Error('there is no approval')
    return found
  }

  test('config, profile, orgs and links show what the caller may see', async () => {
    const config = await get('/config')
    expect(config.status).toBe(200)
    expect(config.headers.get('cache-control')).toBe('no-store')
    expect(config.body).toMatchObject({ canEditUser: true, headerTitle: 'Example', administrator: false })
    expect((await get('/config', 'linus')).body.administrator).toBe(true)
    expect((await get('/user', 'grace')).body).toMatchObject({
      uid: 'grace',
      dn: 'uid=grace,ou=people,o=Tremolo',
      groups: ['helpdesk', 'owners'],
    })
    expect((await get('/orgs')).body).toMatchObject({ id: 'root', name: 'Example', subOrgs: [] })
    expect((await get('/orgs', 'linus')).body.subOrgs).toMatchObject([{ id: 'operations' }])
    expect((await get('/urls')).body).toMatchObject([{ name: 'wiki', icon: expect.stringMatching(/^iVBORw0KGgo/) }])
    expect((await get('/urls', 'linus')).body).toHaveLength(2)
    expect((await get('/urls/org/operations')).status).toBe(404)
    expect((await get('/urls/org/operations', 'linus')).body).toMatchObject([{ name: 'console' }])
  })

  test('a caller without a token, or unknown to the directory, gets nothing', async () => {
    expect((await api.sendAnonymously('/config')).status).toBe(401)
    const refused = await get('/config', 'stranger')
    expect(refused.status).toBe(403)
    expect(refused.body.errors).toHaveLength(1)
  })

  test('a profile is changed by its workflow, and the answer shows the result', async () => {
    const changed = await put('/user', {
      displayName: { name: 'displayName', value: 'Ada King' },
      team: { value: 'red' },
    })
    expect(changed.status).toBe(200)
    const valuesOf = (name: string) =>
      changed.body.attributes.find((one: { name: string }) => one.name === name)?.values
    expect(valuesOf('displayName')).toEqual(['Ada King'])
    expect(valuesOf('team')).toEqual(['red'])
    const refused = await put('/user', { team: { value: 'green' }, mail: { value: 'x@y' }, role: { value: 'admin' } })
    expect(refused.status).toBe(500)
    expect(refused.body.errors).toEqual([
      'Invalid attribute role',
      'Mail cannot be changed',
      'Team has a value that is not in the list',
    ])
    expect((await put('/user', { team: { value: '' } })).status).toBe(200)
    const { attributes } = (await get('/user')).body
    expect(attributes).toContainEqual({ name: 'team', values: [], dataType: 'string' })
    expect(attributes).toContainEqual({ name: 'displayName', values: ['Ada King'], dataType: 'string' })
  })

  test('access is requested, approved by another user, and granted', async () => {
    const listed = await get('/workflows/org/root')
    expect(listed.body).toMatchObject([{ name: 'vault-access', label: 'Access to the vault' }])
    const [{ uuid }] = listed.body
    expect((await ask({ uuid })).body).toEqual({ [uuid]: 'success' })
    expect((await ask({ uuid })).body).toEqual({ [uuid]: 'success' })
    const { approval, workflow } = await approvalFor('ada')
    expect((await get('/requests')).body.requests).toHaveLength(1)

    const details = await get(`/approvals/${approval}`, 'grace')
    expect(details.body).toMatchObject({
      approval,
      user: 'ada',
      displayName: 'Ada King',
      label: 'Access to the vault for Ada King',
      wfName: 'vault-access',
      reason: 'on call',
      mayDecide: true,
      userObj: { userID: 'ada', attribs: { Mail: { values: ['ada@example.com'] } } },
    })
    expect((await get(`/approvals/${approval}`)).status).toBe(404)
    expect((await put(`/approvals/${approval}`, { approved: true, reason: 'me' })).status).toBe(404)
    expect((await put(`/approvals/${approval}`, { reason: 'fine' }, 'grace')).status).toBe(400)

    const decided = await put(`/approvals/${approval}`, { approved: 'true', reason: 'fine' }, 'grace')
    expect([decided.status, decided.text]).toEqual([200, ''])
    expect((await put(`/approvals/${approval}`, { approved: false, reason: 'no' }, 'grace')).status).toBe(409)

    await until(async () => (await get(`/requests/${workflow}`)).body.state === 'completed', 20_000)
    const request = (await get(`/requests/${workflow}`)).body
    expect(request).toMatchObject({ label: 'Access to the vault', mayCancel: false })
    expect(request.approvals).toMatchObject([{ status: 'approved', decision: { by: 'grace', comment: 'fine' } }])
    expect(request.timeline.map(({ taskType }: { taskType: string }) => taskType)).toContain('addGroup')
    expect((await get(`/requests/${workflow}`, 'linus')).status).toBe(404)
    expect((await get('/user')).body.groups).toEqual(['vault'])
    expect((await get('/access')).body.access).toMatchObject([{ kind: 'group', name: 'vault' }])
    expect((await get('/favorites')).body.recent).toMatchObject([{ kind: 'workflow', name: 'vault-access' }])
  })

  test('a request is cancelled while nothing was changed', async () => {
    expect(onlyResult((await ask({ subjects: ['linus'] })).body)).toBe('success')
    const { workflow } = await approvalFor('linus')
    expect((await post(`/requests/${workflow}/cancel`, {}, 'linus')).status).toBe(403)
    const cancelled = await post(`/requests/${workflow}/cancel`, { reason: 'a mistake' })
    expect(cancelled.body).toMatchObject({ state: 'cancelled', cancel: { by: 'ada', reason: 'a mistake' } })
    expect((await get('/approvals', 'grace')).body.approvals).toEqual([])
    expect((await get('/requests?about=me', 'linus')).body.requests).toMatchObject([{ id: workflow }])
    expect((await post(`/requests/${workflow}/cancel`, {})).status).toBe(409)
  })

  test('equal open requests are one, and a cart names at most 500 users', async () => {
    const cart = Array.from({ length: 100 }, (_, i) => ({
      uuid: crypto.randomUUID(),
      name: 'vault-access',
      reason: `because ${i}`,
      subjects: ['linus', 'LINUS'],
    }))
    const submitted = await put('/workflows?outcomes=true', cart)
    expect(Object.values(submitted.body).filter((one) => JSON.stringify(one).includes('alreadyOpen'))).toHaveLength(99)
    const { workflow } = await approvalFor('linus')
    expect(onlyResult((await ask({ subjects: ['linus'] })).body)).toBe('success')
    const open = async () =>
      (await get('/requests')).body.requests.filter(({ state }: { state: string }) => state === 'waiting')
    expect(await open()).toMatchObject([{ id: workflow }])
    await post(`/requests/${workflow}/cancel`, {})
    expect(onlyResult((await ask({ subjects: ['linus'] })).body)).toBe('success')
    const { workflow: next } = await approvalFor('linus')
    expect(next).not.toBe(workflow)
    await post(`/requests/${next}/cancel`, {})

    const subjects = Array.from({ length: 400 }, (_, i) => `ghost${i}`)
    const many = cart.slice(0, 2).map((line) => ({ ...line, subjects }))
    expect((await put('/workflows', many)).status).toBe(400)
    const [one] = many
    const refused = String(onlyResult((await put('/workflows', [{ ...one, uuid: crypto.randomUUID() }])).body))
    expect(refused.match(/does not exist/g)?.length).toBeLessThan(20)
  })

  test('D7: neither unlisted workflows nor those elsewhere can be requested, and nothing is started', async () => {
    const before = (await get('/admin/runs', 'linus')).body.runs.length
    expect(onlyResult((await ask({ name: 'internal-cleanup' })).body)).toBe('Not Found')
    expect(onlyResult((await ask({ name: 'save-profile' })).body)).toBe('Not Found')
    expect(onlyResult((await ask({ name: 'join-group' })).body)).toBe('Unauthorized')
    expect(onlyResult((await ask({ reason: '' })).body)).toBe('Reason is required')
    expect(onlyResult((await ask({ subjects: ['ghost', '*'] })).body)).toMatch(
      /ghost does not exist.*\* does not exist/,
    )
    expect((await get('/admin/runs', 'linus')).body.runs).toHaveLength(before)
  })

  test('D13: a dynamic workflow is requested by a reference that no other user can use', async () => {
    const rows: { label: string; encryptedParams: string; filterAnnotations: object }[] = (
      await get('/workflows/org/operations', 'linus')
    ).body
    expect(rows.map(({ label }) => label)).toEqual([
      'Join administrators',
      'Join helpdesk',
      'Join owners',
      'Join vault',
    ])
    const helpdesk = rows.find(({ label }) => label === 'Join helpdesk')
    expect(helpdesk?.filterAnnotations).toEqual({ Group: 'helpdesk' })
    const more = { name: 'join-group', encryptedParams: helpdesk?.encryptedParams }
    expect(onlyResult((await ask(more)).body)).toBe('Unauthorized')
    expect(onlyResult((await ask({ ...more, encryptedParams: 'guess' }, 'linus')).body)).toBe('Not Found')
    expect(onlyResult((await ask(more, 'linus')).body)).toBe('success')
    await until(async () => (await get('/user', 'linus')).body.groups.includes('helpdesk'), 20_000)
  })

  test('a deputy decides several at once for an absent approver', async () => {
    expect((await post('/delegations', { deputy: 'grace', starts: 'now', ends: 'later' }, 'grace')).status).toBe(400)
    const starts = new Date(Date.now() - 60_000).toISOString()
    const ends = new Date(Date.now() + 3_600_000).toISOString()
    const added = await post('/delegations', { deputy: 'linus', starts, ends }, 'grace')
    expect(added.status).toBe(201)
    expect((await get('/delegations', 'linus')).body.represents).toEqual(['grace'])
    await ask({ subjects: ['ada'] }, 'ada')
    const mine = await approvalFor('ada', 'linus')
    const unknown = crypto.randomUUID()
    const vote = { approvals: [mine.approval, unknown], approved: false, reason: 'not today' }
    const decided = await put('/approvals', vote, 'linus')
    expect(decided.body.results).toMatchObject({ [mine.approval]: { status: 200 }, [unknown]: { status: 404 } })
    const record = (await get(`/requests/${mine.workflow}`)).body.approvals[0]
    expect(record).toMatchObject({ status: 'denied', decision: { by: 'linus', onBehalfOf: 'grace' } })
    await until(async () => (await get(`/requests/${mine.workflow}`)).body.state === 'denied', 20_000)
    expect((await get('/requests?state=denied')).body.requests).toMatchObject([{ id: mine.workflow, state: 'denied' }])
    expect((await send(`/delegations/${added.body.id}`, { as: 'grace', method: 'DELETE' })).status).toBe(204)
    expect((await get('/delegations', 'linus')).body.represents).toEqual([])
  })

  test('search and favorites', async () => {
    expect((await get('/search?q=vault')).body).toMatchObject({ workflows: [{ name: 'vault-access' }], urls: [] })
    expect((await get('/search?q=hopper&kind=person')).body.people).toEqual([
      { uid: 'grace', displayName: 'Grace Hopper' },
    ])
    expect((await get(`/search?q=${encodeURIComponent('*)(uid=*')}`)).body.people).toEqual([])
    expect((await send('/favorites/url/wiki', { method: 'PUT' })).status).toBe(204)
    expect((await send('/favorites/url/console', { method: 'PUT' })).status).toBe(404)
    expect((await get('/favorites')).body.favorites).toMatchObject([{ kind: 'url', name: 'wiki', label: 'Wiki' }])
    expect((await get('/favorites', 'grace')).body.favorites).toEqual([])
  })

  test('administrators see statistics', async () => {
    await ask({ subjects: ['ada'], reason: 'to be counted' })
    const { approval } = await approvalFor('ada')
    expect((await put(`/approvals/${approval}`, { approved: true, reason: 'yes' }, 'grace')).status).toBe(200)
    const { status, body } = await get('/admin/statistics?by=hour&from=1h', 'linus')
    expect(status).toBe(200)
    expect(body.parts).toHaveLength(1)
    expect(body.parts[0].requests).toMatchObject({ denied: 1, failed: 0 })
    expect(body.parts[0].approvals).toMatchObject({ decisionMillis: expect.any(Number), denied: expect.any(Number) })
    expect(body.parts[0].approvals.approved).toBeGreaterThan(0)
    expect(body.parts[0].approvals.opened).toBeGreaterThan(0)
    const all = Object.values<number>(body.parts[0].requests).reduce((sum, count) => sum + count, 0)
    expect(all).toBe((await get('/admin/runs?limit=500', 'linus')).body.runs.length)
    expect(body.workflows.map(({ name }: { name: string }) => name)).toContain('vault-access')
    expect((await get('/admin/statistics?by=hour&from=400d', 'linus')).status).toBe(400)
  })

  test('incidents and the SCIM journal are for administrators', async () => {
    for (const path of ['/admin/incidents', '/admin/runs', '/admin/scim-journal', '/admin/statistics']) {
      expect((await get(path)).status).toBe(403)
      expect((await get(path, 'linus')).status).toBe(200)
    }
  })

  test('failures have one shape, and invalid input starts nothing', async () => {
    const cases: [string, PortalApiRequest, number][] = [
      ['/nothing', {}, 404],
      ['/config', { method: 'POST', body: {} }, 405],
      ['/workflows', { method: 'PUT', body: '{' }, 400],
      ['/workflows', { method: 'PUT', body: '[]', headers: { 'content-type': 'text/plain' } }, 415],
      ['/workflows', { method: 'PUT', body: [{ uuid: 'a', name: 'vault-access', requestor: 'grace' }] }, 400],
      ['/workflows', { method: 'PUT', body: `[${' '.repeat(1024 * 1024)}]` }, 413],
      ['/approvals/1', {}, 404],
      ['/approvals?limit=x', {}, 400],
      ['/search?q=a', {}, 400],
      ['/requests?state=all', {}, 400],
    ]
    for (const [path, options, status] of cases) {
      const answer = await send(path, options)
      expect({ path, status: answer.status }).toEqual({ path, status })
      expect(answer.body.errors[0]).toEqual(expect.any(String))
      expect(answer.headers.get('cache-control')).toBe('no-store')
    }
  })
}
