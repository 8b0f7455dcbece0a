import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mainApiFor } from '#features/portal/main/api-description.ts'
import { type ApiPrefix, contractOf, describedApis } from '#testing/gateway/api-contract.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'
import { application, registrationUrl } from '#testing/stories/story-documents.ts'

const limits = { submitsPerMinute: '0', submitsPerValuePerHour: '0', readsPerMinute: '0' }

/** Beside the portal's API: forms, calls, a run that fails once, and one that does not end. */
const more = `
apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: { name: default }
spec: { className: notifiers.None, params: [] }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: stumble }
spec:
  tasks:
    - taskType: customTask
      className: tasks.JavaScriptTask
      params:
        javaScript: |-
          function doTask(user) {
            state[user.userID] = (state[user.userID] || 0) + 1
            if (state[user.userID] === 1) throw new Error('not yet')
            return true
          }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: nothing }
spec:
  tasks: [{ taskType: customTask, className: tasks.PrintUserInfo, params: { message: nothing } }]
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: mirror }
spec: { className: targets.Database, params: [{ name: directory, value: mirror }] }
---
apiVersion: gatehouse.dev/v1
kind: Reconciliation
metadata: { name: mirror }
spec:
  source: { target: people, filter: (uid=ada) }
  target: mirror
  attributes: [{ name: displayName, source: displayName, sourceType: user }]
  missing: create
  workflow: nothing
---
${application('calls', [
  {
    hosts: ['*'],
    uri: '/call-workflow',
    authChain: 'api',
    azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
    filterChain: [
      {
        className: 'CallWorkflow',
        params: { allowedWorkflow: ['stumble', 'nothing', 'vault-access'], subject: 'any' },
      },
    ],
  },
])}
---
${application('form', [
  registrationUrl(
    '/register',
    {
      ...limits,
      workflowName: 'nothing',
      'mail.required': 'false',
      invitationURL: '#[GATEHOUSE_URL]/page',
      inviterRule: ['filter;(uid=grace)'],
    },
    { authChain: 'api' },
  ),
])}
---
${application('proof', [
  registrationUrl('/proof/register', { ...limits, workflowName: 'nothing', humanCheck: 'proof-of-work' }),
])}
---
${application('pages', [
  {
    hosts: ['*'],
    uri: '/ops',
    authChain: 'api',
    azRules: [{ scope: 'group', constraint: 'cn=administrators,ou=groups,ou=people,o=Tremolo' }],
    filterChain: [
      {
        className: 'filters.Operators',
        params: {
          bases: ['People=ou=people,o=Tremolo'],
          searchableAttributes: ['uid=Login'],
          resultAttributes: ['uid=Login', 'displayName=Name'],
          scaleMainAppName: 'portal',
          scaleMainURI: '/portal/main',
          homeUrl: '/portal/',
        },
      },
    ],
  },
  {
    hosts: ['*'],
    uri: '/password',
    authChain: 'api',
    azRules: [{ scope: 'dn', constraint: 'ou=people,o=Tremolo' }],
    filterChain: [
      {
        className: 'filters.OwnPassword',
        params: {
          displayNameAttribute: 'displayName',
          'frontPage.title': 'New password',
          'frontPage.text': 'Choose a new password',
          homeURL: '/portal/',
          logoutURL: '/logout',
          uidAttributeName: 'uid',
          reason: 'Set by the user',
          workflowName: 'nothing',
          validatorClassName: 'BasicValidator',
          maxLoginMinutes: '0',
        },
      },
    ],
  },
  {
    hosts: ['*'],
    uri: '/reset',
    azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
    filterChain: [
      {
        className: 'filters.Passwords',
        params: { publicURL: '#[GATEHOUSE_URL]/reset', passwordTarget: 'people' },
      },
    ],
  },
])}
`

// Other files of the worker have called some of the operations.
for (const prefix of Object.keys(describedApis) as ApiPrefix[]) contractOf(prefix).seen.clear()

describe('the documents of the APIs', () => {
  let gateway: GatewayProcess
  let config = ''
  const tokens = new Map<string, string>()
  beforeAll(async () => {
    config = mkdtempSync(join(tmpdir(), 'gatehouse-documents-'))
    cpSync('examples/portal-api', config, { recursive: true })
    writeFileSync(join(config, 'more.yaml'), more)
    const portal = join(config, 'portal.yaml')
    const anchor = '            operators: '
    const text = readFileSync(portal, 'utf8')
    expect(text).toContain(anchor)
    writeFileSync(portal, text.replace(anchor, `            deactivateWorkflow: nothing\n${anchor}`))
    gateway = await startGatewayProcess({ config })
    for (const login of ['ada', 'grace', 'linus']) tokens.set(login, await gateway.token('--subject', login))
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    rmSync(config, { recursive: true, force: true })
  })

  /** Sends, and compares the answer with the document. */
  async function send(
    prefix: ApiPrefix,
    method: string,
    path: string,
    {
      body,
      as = 'ada',
      mount = prefix === '/main' ? '/portal' : '',
    }: { body?: unknown; as?: string; mount?: string } = {},
  ) {
    const whole = `${mount}${prefix}${path}`
    const response = await fetch(`${gateway.url}${whole}`, {
      method,
      headers: {
        authorization: `Bearer ${tokens.get(as)}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const type = response.headers.get('content-type')
    expect(contractOf(prefix).faults({ method, path: whole, status: response.status, type, text }, mount)).toEqual([])
    const isJson = text !== '' && type?.includes('json') === true
    return { status: response.status, body: isJson ? JSON.parse(text) : undefined }
  }
  const main = (method: string, path: string, body?: unknown, as = 'ada') => send('/main', method, path, { body, as })
  const call = (name: string, uid: string, more: object = {}) =>
    send('/call-workflow', 'POST', '', {
      body: { name, uidAttributeName: 'uid', user: { uid, attributes: [] }, ...more },
    })
  const asynchronous = { requestParams: { 'UNISON.EXEC.TYPE': 'UNISON.EXEC.ASYNC' } }

  test('are served in both formats, with the address that they describe', async () => {
    for (const [prefix, mount, as = 'ada'] of [
      ['/main', '/portal'],
      ['/register', ''],
      ['/call-workflow', ''],
      ['/ops', '', 'linus'],
      ['/password', ''],
    ] as const) {
      for (const format of ['swagger', 'openapi'] as const) {
        const response = await fetch(`${gateway.url}${mount}${prefix}/${format}.json`, {
          headers: { authorization: `Bearer ${tokens.get(as)}` },
        })
        expect([prefix, format, response.status]).toEqual([prefix, format, 200])
        const place = { origin: gateway.url, base: mount, prefix }
        const api = prefix === '/main' ? mainApiFor({ approvals: true, administrator: false }) : describedApis[prefix]
        const wanted = api.document(`${format}.json`, place)
        expect(await response.json()).toEqual(JSON.parse(JSON.stringify(wanted)))
      }
    }
  })

  test('match every answer of the call-workflow API', async () => {
    expect((await call('nothing', 'x')).status).toBe(200)
    const started = await call('vault-access', 'x')
    expect(started.status).toBe(202)
    expect((await send('/call-workflow', 'GET', `/${started.body.workflowId}`)).status).toBe(200)
    expect((await send('/call-workflow', 'DELETE', `/${started.body.workflowId}`)).body.status).toBe('cancelled')
    expect((await call('nothing', ' x')).status).toBe(422)
    expect((await call('elsewhere', 'x')).status).toBe(403)
    expect((await call('nothing', 'x', { extra: 1 })).status).toBe(400)
    expect((await send('/call-workflow', 'GET', '/x')).status).toBe(404)
    // It needs a task in progress.
    expect(contractOf('/call-workflow').unseen()).toEqual(['endRun 202'])
  })

  test('match every answer of the registration API', async () => {
    const register = (method: string, path: string, body?: unknown, as?: string) =>
      send('/register', method, path, { body, ...(as === undefined ? {} : { as }) })
    expect((await register('GET', '/config')).status).toBe(200)
    expect((await register('GET', '/values')).status).toBe(200)
    expect((await register('GET', '/values?name=x')).status).toBe(400)
    expect((await register('POST', '/submit', { attributes: { uid: 'newcomer' } })).status).toBe(200)
    expect((await register('POST', '/submit', { attributes: {} })).status).toBe(500)
    expect((await register('POST', '/submit', { attributes: 1 })).status).toBe(400)
    expect((await send('/register', 'GET', '/challenge', { mount: '/proof' })).status).toBe(200)
    expect((await register('GET', '/verify?token=x')).status).toBe(410)
    const { status, body } = await register('POST', '/invitations', { email: 'x@example.com' }, 'grace')
    expect(status).toBe(201)
    expect((await register('GET', '/invitations', undefined, 'grace')).status).toBe(200)
    expect((await register('GET', '/invitations')).status).toBe(403)
    expect((await register('POST', `/invitations/${body.id}/resend`, undefined, 'grace')).status).toBe(200)
    expect((await register('DELETE', `/invitations/${body.id}`, undefined, 'grace')).status).toBe(200)
    expect((await register('GET', '/invitation?token=x')).status).toBe(404)
    // These need a link of a mail; test/stories/registration.test.ts compares them.
    expect(contractOf('/register').unseen()).toEqual(['showVerification 200', 'verify 200', 'getInvitation 200'])
  })

  test('match every answer of the operator API', async () => {
    const operator = (method: string, path: string, body?: unknown) => send('/ops', method, path, { body, as: 'linus' })
    const { status, body: config } = await operator('GET', '/config')
    expect(status).toBe(200)
    const rows = (value: string) => config.searchableAttributes.map((one: object) => ({ ...one, value, picked: true }))
    const found = await operator('PUT', '/search', { base: 'People', toSearch: rows('ada') })
    expect(found.body).toMatchObject([{ uid: 'ada' }])
    expect((await operator('PUT', '/search', { base: 'elsewhere', toSearch: rows('ada') })).status).toBe(400)
    const [{ dn }] = found.body
    expect((await operator('GET', `/user?dn=${encodeURIComponent(dn)}`)).body.uid).toBe('ada')
    expect((await operator('GET', '/user?dn=uid%3Dnobody')).status).toBe(404)
    const update = (value: string) => ({
      dn,
      reason: 'a reason',
      attributes: [{ name: 'displayName', values: [value] }],
    })
    expect((await operator('POST', '/user', update('Ada Byron'))).body).toEqual({ status: 'completed' })
    expect((await operator('PUT', '/user', update('Ada Byron'))).body).toEqual({ status: 'unchanged' })
    expect((await operator('POST', '/user', update(''))).status).toBe(500)
    expect((await send('/ops', 'GET', '/config')).status).toBe(403)
    expect(contractOf('/ops').unseen()).toEqual([])
  })

  test('match every answer of the password API', async () => {
    expect((await send('/password', 'GET', '/config')).status).toBe(200)
    const submit = (password1: string, password2: string) =>
      send('/password', 'POST', '/submit', { body: { password1, password2 } })
    expect((await submit('correct horse', 'correct horse')).body).toEqual({ status: 'accepted' })
    expect((await submit('correct horse', 'battery staple')).status).toBe(500)
    expect(contractOf('/password').unseen()).toEqual([])
  })

  test('match every answer of the password reset API', async () => {
    expect((await send('/reset', 'GET', '')).status).toBe(200)
    expect((await send('/reset', 'GET', '/set')).status).toBe(200)
    expect((await send('/reset', 'POST', '', { body: { user: 'ada' } })).status).toBe(202)
    expect((await send('/reset', 'POST', '', { body: {} })).status).toBe(400)
    const body = { token: 'x'.repeat(43), newPassword: 'correct horse' }
    expect((await send('/reset', 'POST', '/set', { body })).status).toBe(404)
    // It needs a link of a mail; test/stories/passwords.test.ts compares it.
    expect(contractOf('/reset').unseen()).toEqual(['setPassword 204'])
  })

  test('match every answer of the Main API', async () => {
    for (const path of [
      '/config',
      '/user',
      '/orgs',
      '/urls',
      '/urls/org/root',
      '/workflows/org/root',
      '/workflows/named/vault-access',
      '/access',
    ]) {
      expect([path, (await main('GET', path)).status]).toEqual([path, 200])
    }
    await main('GET', '/workflows/candelegate?workflowName=vault-access&uuid=x')
    expect((await main('PUT', '/user', { displayName: { value: 'Ada L.' } })).status).toBe(200)
    expect((await main('PUT', '/user', { displayName: { value: '' } })).status).toBe(500)
    const line = { uuid: 'one', name: 'vault-access', reason: 'on call' }
    expect((await main('PUT', '/workflows', [line])).body).toEqual({ one: 'success' })
    const again = await main('PUT', '/workflows?outcomes=true', [{ ...line, uuid: 'again' }])
    expect(again.body).toEqual({ again: { result: 'success', alreadyOpen: true } })
    const forLinus = { ...line, subjects: ['linus'] }
    expect((await main('PUT', '/workflows', [{ ...forLinus, uuid: 'two' }])).status).toBe(200)
    const requests = async () => (await main('GET', '/requests')).body.requests
    await until(async () => (await requests()).length > 1, 20_000)
    const [{ id }] = await requests()
    expect((await main('GET', `/requests/${id}`)).status).toBe(200)
    expect((await main('POST', `/requests/${id}/cancel`, { reason: 'no more' })).status).toBe(200)
    expect((await main('GET', '/search?q=va')).status).toBe(200)
    expect((await main('PUT', '/favorites/url/wiki')).status).toBe(204)
    expect((await main('POST', '/recent', { kind: 'url', name: 'wiki' })).status).toBe(204)
    expect((await main('GET', '/favorites')).body.favorites).toHaveLength(1)
    expect((await main('DELETE', '/favorites/url/wiki')).status).toBe(204)
    await main('PUT', '/workflows', [{ ...forLinus, uuid: 'three' }])
    const open = async () => (await main('GET', '/approvals', undefined, 'grace')).body.approvals
    await until(async () => (await open()).length > 1, 20_000)
    const [first, second] = (await open()).map(({ approval }: { approval: string }) => approval)
    expect((await main('GET', `/approvals/${first}?changes=true`, undefined, 'grace')).status).toBe(200)
    const vote = { approved: true, reason: 'yes' }
    expect((await main('PUT', `/approvals/${first}`, vote, 'grace')).status).toBe(200)
    expect((await main('PUT', `/approvals/${first}`, vote, 'grace')).status).toBe(409)
    expect((await main('PUT', '/approvals', { ...vote, approvals: [second] }, 'grace')).status).toBe(200)
    expect((await main('GET', '/decisions?limit=1', undefined, 'grace')).body.decisions).toHaveLength(1)
    const hasEnded = ({ state }: { state: string }) => ['completed', 'cancelled'].includes(state)
    await until(async () => (await requests()).every(hasEnded), 20_000)
    await main('PUT', '/workflows', [{ ...line, uuid: 'four' }])
    await until(async () => (await open()).length > 0, 20_000)
    const [{ approval: third }] = await open()
    expect((await main('POST', `/approvals/${third}/questions`, { text: 'Which one?' }, 'grace')).status).toBe(204)
    const [{ id: asked }] = await requests()
    expect((await main('GET', `/requests/${asked}`)).body).toMatchObject({
      mayAnswer: true,
      messages: [{ by: 'grace' }],
    })
    expect((await main('POST', `/requests/${asked}/answers`, { text: 'The first.' })).status).toBe(204)
    expect((await main('POST', `/approvals/${third}/reassign`, { to: 'linus' }, 'grace')).status).toBe(204)
    expect((await main('POST', `/approvals/${third}/reassign`, { to: 'ada' }, 'linus')).status).toBe(400)
    const access = async () => (await main('GET', '/access')).body.access
    await until(async () => (await access()).length > 0, 20_000)
    const [{ id: grant }] = await access()
    expect((await main('POST', `/access/${grant}/return`)).status).toBe(202)
    expect((await main('POST', `/access/${grant}/return`)).status).toBe(409)
    const period = { deputy: 'ada', starts: new Date().toISOString(), ends: new Date(Date.now() + 1e7).toISOString() }
    const delegation = await main('POST', '/delegations', period, 'grace')
    expect(delegation.status).toBe(201)
    await main('GET', '/delegations', undefined, 'grace')
    expect((await main('DELETE', `/delegations/${delegation.body.id}`, undefined, 'grace')).status).toBe(204)
    const { reports } = (await main('GET', '/reports/org/root')).body
    const plain = reports.find(({ parameters }: { parameters: string[] }) => parameters.length === 0)
    const report = `/reports/${encodeURIComponent(plain.name)}`
    expect((await main('GET', report)).status).toBe(200)
    expect((await main('GET', `${report}?format=csv`)).status).toBe(200)
    expect((await main('PUT', '/reports/excelx', (await main('GET', report)).body)).status).toBe(200)
    const { reportid } = (await main('GET', `${report}?excel=true`)).body
    expect((await main('GET', `/reports/excel/${reportid}/report.xlsx`)).status).toBe(200)
    const administrator = (method: string, path: string, body?: unknown) => main(method, path, body, 'linus')
    for (const action of ['retry', 'skip', 'cancel']) {
      const { workflowId } = (await call('stumble', action, asynchronous)).body
      const run = async () => (await administrator('GET', `/admin/runs/${workflowId}`)).body
      await until(async () => (await run()).state === 'incident', 20_000)
      expect((await administrator('GET', '/admin/incidents')).body.runs).toHaveLength(1)
      const intervention = { fence: (await run()).fence, reason: 'a reason' }
      expect((await administrator('POST', `/admin/runs/${workflowId}/${action}`, intervention)).status).toBe(200)
      expect((await administrator('POST', `/admin/runs/${workflowId}/${action}`, intervention)).status).toBeGreaterThan(
        408,
      )
    }
    const { runs } = (await administrator('GET', '/admin/runs?name=vault-access')).body
    for (const { id: run } of runs) {
      expect((await administrator('GET', `/admin/runs/${run}`)).body.approvals).toHaveLength(1)
    }
    await main('PUT', '/workflows', [{ ...line, uuid: 'four' }])
    const waiting = async () => (await administrator('GET', '/admin/approvals?workflow=vault-access')).body.approvals
    await until(async () => (await waiting()).length === 1, 20_000)
    const [{ id: approval, version }] = await waiting()
    const reassign = (to: string) =>
      administrator('POST', `/admin/approvals/${approval}/reassign`, { version, to, reason: 'away' })
    expect((await reassign('ada')).status).toBe(400)
    expect((await reassign('grace')).body).toMatchObject({ version: version + 1, approvers: ['grace'] })
    expect((await reassign('linus')).status).toBe(412)
    expect((await administrator('GET', '/admin/workflows?limit=500')).body.workflows.length).toBeGreaterThan(1)
    expect((await administrator('GET', '/admin/workflows/vault-access')).body.tasks).toHaveLength(2)
    expect((await administrator('GET', '/admin/targets')).body.targets).toContainEqual(
      expect.objectContaining({ name: 'people', health: 'up' }),
    )
    expect((await administrator('GET', '/admin/scim-journal')).status).toBe(200)
    expect((await administrator('GET', '/admin/statistics')).status).toBe(200)
    const pages = [
      'audit',
      'audit/verification',
      'configuration',
      'configuration/objects',
      'system',
      'tokens',
      'scim-tokens',
    ]
    for (const path of [...pages, 'reconciliations', 'reconciliations/mirror']) {
      expect([path, (await administrator('GET', `/admin/${path}`)).status]).toEqual([path, 200])
    }
    const mirror = (method: string, path: string, body?: unknown) =>
      administrator(method, `/admin/reconciliations/mirror${path}`, body)
    const requestPlan = async (): Promise<string> => (await mirror('POST', '/plans', {})).body.plan.id
    const planState = async (id: string) => (await administrator('GET', `/admin/plans/${id}`)).body.state
    /** Until a worker changes the plan no more in between. */
    const changePlan = (id: string, change: string) =>
      until(async () => {
        const body = { state: await planState(id), reason: 'a reason' }
        return (await administrator('POST', `/admin/plans/${id}/${change}`, body)).status === 200
      }, 20_000)
    const isIn = (id: string, state: string) => until(async () => (await planState(id)) === state, 20_000)
    let plan = await requestPlan()
    await until(async () => {
      const state = await planState(plan)
      const change = state === 'planned' ? 'stop' : 'pause'
      const { status } = await administrator('POST', `/admin/plans/${plan}/${change}`, { state, reason: 'a reason' })
      // It was compared before it could be paused: the next one.
      if (status === 200 && change === 'stop') plan = await requestPlan()
      return status === 200 && change === 'pause'
    }, 60_000)
    await changePlan(plan, 'resume')
    await isIn(plan, 'planned')
    expect((await administrator('GET', `/admin/plans/${plan}/rows`)).body.rows).toMatchObject([{ kind: 'missing' }])
    await changePlan(plan, 'apply')
    await isIn(plan, 'applied')
    const other = await requestPlan()
    await isIn(other, 'planned')
    await changePlan(other, 'stop')
    const listed = (await mirror('GET', '/plans')).body.plans.map(({ id }: { readonly id: string }) => id)
    expect(listed).toEqual(expect.arrayContaining([plan, other]))
    expect((await mirror('POST', '/links', { source: 'ada', reason: 'a robot' })).status).toBe(200)
    expect((await mirror('GET', '/links')).body.links).toHaveLength(1)
    const [{ source }] = (await mirror('GET', '/links')).body.links
    expect((await mirror('POST', '/links/remove', { source, reason: 'a person' })).body).toEqual({ removed: true })
    const tenant = await administrator('POST', '/admin/scim-tenants', { name: 'acme' })
    expect([tenant.status, (await administrator('GET', '/admin/scim-tenants')).body.tenants.length]).toEqual([201, 1])
    const newToken = { client: 'acme', name: 'default', expiresInDays: 30 }
    const created = await administrator('POST', '/admin/scim-tokens', newToken)
    expect([created.status, (await administrator('POST', '/admin/scim-tokens', newToken)).status]).toEqual([201, 409])
    const revoked = await administrator('POST', `/admin/scim-tokens/${created.body.id}/revoke`, { reason: 'It leaked' })
    expect(revoked.body.state).toBe('revoked')
    const changeTenant = (change: string, version: number) =>
      administrator('POST', `/admin/scim-tenants/acme/${change}`, { version, reason: 'a reason' })
    expect((await changeTenant('disable', 1)).body.version).toBe(2)
    expect((await changeTenant('enable', 1)).status).toBe(412)
    expect((await changeTenant('enable', 2)).status).toBe(200)
    expect((await changeTenant('remove', 3)).status).toBe(409)
    expect((await administrator('GET', '/admin/scim-tenants/acme')).body).toMatchObject({ users: 0, groups: 0 })
    expect((await changeTenant('disable', 3)).status).toBe(200)
    expect((await changeTenant('remove', 4)).body).toEqual({ revokedTokens: 0 })
    expect((await administrator('POST', '/admin/audit/verification')).status).toBe(202)
    const explained = { method: 'GET', url: 'http://127.0.0.1:8080/nothing', login: 'ada' }
    expect((await administrator('POST', '/admin/configuration/explain', explained)).body.allowed).toBe(false)
    const { people } = (await administrator('GET', '/admin/people?q=grace')).body
    const grace = `/admin/people/${encodeURIComponent(people[0].id)}`
    for (const part of ['', '/groups', '/sessions', '/factors', '/runs', '/systems']) {
      expect([part, (await administrator('GET', `${grace}${part}`)).status]).toEqual([part, 200])
    }
    const reason = { reason: 'a reason' }
    expect((await administrator('POST', `${grace}/sessions/end`, reason)).body).toEqual({ ended: 0 })
    expect((await administrator('POST', `${grace}/factors/reset`, reason)).body).toMatchObject({ removed: 0 })
    expect((await administrator('POST', `${grace}/deactivate`, reason)).status).toBe(202)
    const { groups } = (await administrator('GET', '/admin/groups?q=admin')).body
    const group = `/admin/groups/${encodeURIComponent(groups[0].id)}`
    for (const path of [group, `${group}/members`]) expect((await administrator('GET', path)).status).toBe(200)
    const { notifications } = (await main('GET', '/notifications')).body
    const read = { ids: notifications.map(({ id: one }: { id: string }) => one) }
    expect((await main('PUT', '/notifications/read', read)).status).toBe(200)
    const known = (await main('GET', '/apis')).body.apis.map(({ name }: { name: string }) => name)
    expect(known).toEqual(
      expect.arrayContaining(['portal-main', 'call-workflow', 'register', 'proof-register', 'password']),
    )
    expect(known).not.toContain('ops')
    const all = (await administrator('GET', '/apis')).body.apis
    expect(all.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining([...known, 'ops']))
    for (const { name, documents } of all) {
      for (const document of documents) {
        const path = `/apis/${name}/${document}`
        expect([path, (await administrator('GET', path)).status]).toEqual([path, 200])
      }
    }
    const { servers, paths } = (await main('GET', '/apis/portal-main/openapi.json')).body
    expect([servers[0], Object.keys(paths).filter((path) => path.includes('/admin/'))]).toEqual([
      { url: `${gateway.url}/portal` },
      [],
    ])
    expect((await main('GET', '/apis/nothing/openapi.json')).status).toBe(404)
    expect((await main('GET', '/notifications/settings')).status).toBe(200)
    expect((await main('PUT', '/notifications/settings', { mails: { request: 'never' } })).status).toBe(200)
    expect((await main('GET', '/admin/runs')).status).toBe(403)
    expect((await main('GET', '/nothing')).status).toBe(404)
    // A stream does not end, so the story of two replicas reads it.
    expect(contractOf('/main').unseen()).toEqual(['getEvents 200'])
  })
})

test('are served by the Token API, and match its answers', async () => {
  const gateway = await startGatewayProcess({ config: 'examples/quickstart' })
  try {
    const ada = await PortalPerson.logIn(gateway, 'ada')
    for (const format of ['swagger', 'openapi'] as const) {
      const { status, json } = await ada.get(`/token/${format}.json`)
      const place = { origin: gateway.url, base: '', prefix: '/token' }
      const wanted = describedApis['/token'].document(`${format}.json`, place)
      expect([status, json]).toEqual([200, JSON.parse(JSON.stringify(wanted))])
    }
    // Each answer is compared when it is received.
    expect((await ada.get('/token/config')).status).toBe(200)
    expect((await ada.get('/token/user')).status).toBe(200)
    expect((await ada.send('POST', '/token/user')).status).toBe(403)
    expect((await ada.get('/token/nothing')).status).toBe(404)
    // test/stories/own-issuer.test.ts creates new tokens, and compares them.
    expect(contractOf('/token').unseen()).toEqual(['renewTokens 200'])
  } finally {
    await gateway.stop()
  }
}, 120_000)
