import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type {
  ApprovalDetails,
  ApprovalList,
  RequestDetails,
  RequestList,
} from '#features/portal/contract/main-requests.ts'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { type DemoLogin, PortalPerson } from '#testing/stories/portal-story.ts'

/** A workflow that writes all its input, and two URLs with more rights than the defaults. */
const more = `
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: own-account }
spec:
  label: Own account
  description: Writes what the caller sends.
  inList: false
  orgId: internal
  tasks: |-
    - taskType: provision
      target: people
      sync: true
      attributes: [userName, displayName]
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: scripted }
spec:
  label: Scripted
  description: Makes the login from another attribute.
  inList: false
  orgId: internal
  tasks: |-
    - taskType: customTask
      className: tasks.JavaScriptTask
      params:
        javaScript: |-
          function doTask(user) {
            const [chosen] = user.attributes.nickname ?? []
            if (chosen !== undefined) user.userID = chosen
            return true
          }
    - taskType: provision
      target: people
      sync: true
      attributes: [displayName]
      groups: []
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: call-workflow-allowed }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /call-with-groups
      authChain: id-token
      azRules: [{ scope: dn, constraint: "ou=people,o=Tremolo" }]
      filterChain:
        - className: filters.CallWorkflow
          params: { allowedWorkflow: own-account, allowGroups: [payments, vault] }
    - hosts: ["127.0.0.1"]
      uri: /call-for-others
      authChain: id-token
      azRules: [{ scope: dn, constraint: "ou=people,o=Tremolo" }]
      filterChain:
        - className: filters.CallWorkflow
          params: { allowedWorkflow: vault-access, subject: any, requireRequestorMatch: "false" }
    - hosts: ["127.0.0.1"]
      uri: /call-for-engineers
      authChain: id-token
      azRules: [{ scope: dn, constraint: "ou=people,o=Tremolo" }]
      filterChain:
        - className: filters.CallWorkflow
          params: { allowedWorkflow: own-account, subject: "(mail=grace@example.com)" }
`

describe('what a user gains by calling workflows', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-rights-'))
  const [config, dataFolder] = [join(folder, 'config'), join(folder, 'data')]
  const place = ['--data', dataFolder]
  let gateway: GatewayProcess
  beforeAll(async () => {
    cpSync('examples/quickstart', config, { recursive: true })
    const file = join(config, 'access.yaml')
    const text = readFileSync(file, 'utf8')
    const filter = /allowedWorkflow: crm-sync\n *subject: caller\n *uidAttributeName: login\n/
    expect(text).toMatch(filter)
    writeFileSync(file, text.replace(filter, 'allowedWorkflow: [crm-sync, own-account, vault-access, scripted]\n'))
    writeFileSync(join(config, 'more.yaml'), more)
    gateway = await startGatewayProcess({ config, dataFolder })
  })
  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** With the id_token of a new login, since it is valid for one minute. */
  async function call(as: DemoLogin, body: object, path = '/call-workflow') {
    const person = await PortalPerson.logIn(gateway, as)
    const idToken = (await person.get('/token/user')).json.token.id_token
    const response = await fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${idToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  const about = (login: string, user: object = {}) => ({
    name: 'own-account',
    uidAttributeName: 'userName',
    user: { attributes: [{ name: 'userName', values: [login] }], ...user },
  })
  const groupsOf = async (login: DemoLogin): Promise<string[]> =>
    (await (await PortalPerson.logIn(gateway, login)).get('/main/user')).json.groups
  async function refusals(subject: string): Promise<{ [name: string]: unknown }[]> {
    const args = ['audit', 'tail', '--output', 'json', '--subject', subject, '--limit', '1000', ...place]
    const rows = JSON.parse(await commandOutput(...args)) as { [name: string]: unknown }[]
    return rows.filter(({ action, kind }) => action === 'refuse' && kind !== 'session')
  }

  test('a user cannot join a group by naming it in the body', async () => {
    const refused = await call('ada', about('ada', { groups: ['everyone', 'administrators'] }))
    expect(await groupsOf('ada')).toEqual(['engineering', 'everyone'])
    expect(refused).toMatchObject({
      status: 403,
      body: {
        errors: [
          { pointer: '#/user/groups/0', detail: expect.stringContaining('allowGroups') },
          { pointer: '#/user/groups/1', detail: expect.stringContaining('allowGroups') },
        ],
      },
    })
    expect(await refusals('ada')).toContainEqual(
      expect.objectContaining({ requestor: 'ada', kind: 'group', attribute: 'groups', value: 'administrators' }),
    )
  })

  test('an empty list of groups, as in the documented request, keeps memberships', async () => {
    expect(await call('ada', about('ada', { groups: [] }))).toMatchObject({ status: 200 })
    expect(await groupsOf('ada')).toEqual(['engineering', 'everyone'])
  })

  test('a user cannot act for another user, by any naming attribute', async () => {
    const attributes = (values: Record<string, string>) =>
      Object.entries(values).map(([name, value]) => ({ name, values: [value] }))
    const bodies = [
      about('alan', { groups: [] }),
      { ...about(''), uidAttributeName: 'mail', user: { attributes: attributes({ mail: 'alan@example.com' }) } },
      {
        ...about(''),
        uidAttributeName: 'displayName',
        user: { attributes: attributes({ displayName: 'alan', userName: 'ada' }), groups: [] },
      },
      { ...about(''), user: { attributes: attributes({ userName: 'ada', uid: 'alan' }) } },
    ]
    for (const body of bodies) {
      expect([body, await call('ada', body)]).toMatchObject([body, { status: 403, body: { errors: [{}] } }])
    }
    expect(await groupsOf('alan')).toEqual(['administrators', 'everyone'])
    expect(await refusals('alan')).toContainEqual(expect.objectContaining({ requestor: 'ada', attribute: 'subject' }))
  })

  test('a script cannot give the run of a caller the login of another user', async () => {
    const named = (values: Record<string, string>) => ({
      name: 'scripted',
      uidAttributeName: 'userName',
      user: { attributes: Object.entries(values).map(([name, value]) => ({ name, values: [value] })) },
    })
    const taken = { userName: 'ada', displayName: 'Taken over', nickname: 'alan' }
    const refused = await call('ada', named(taken))
    const alan = (await (await PortalPerson.logIn(gateway, 'alan')).get('/main/user')).json
    expect(JSON.stringify(alan)).not.toContain('Taken over')
    expect(refused).toMatchObject({ status: 403 })
    expect(JSON.stringify(refused.body)).toContain('another user')
    expect(await refusals('ada')).toContainEqual(
      expect.objectContaining({ requestor: 'ada', attribute: 'subject', value: 'alan' }),
    )
    expect(await call('ada', named({ ...taken, nickname: 'ada' }))).toMatchObject({ status: 200 })
  })

  test('if groups are allowed, memberships of these groups change and no others', async () => {
    const path = '/call-with-groups'
    expect(await call('ada', about('ada', { groups: ['vault'] }), path)).toMatchObject({ status: 200 })
    expect(await groupsOf('ada')).toEqual(['engineering', 'everyone', 'vault'])
    expect(await call('ada', about('ada', { groups: ['managers'] }), path)).toMatchObject({ status: 403 })
    expect(await call('ada', about('ada'), path)).toMatchObject({ status: 200 })
    expect(await groupsOf('ada')).toEqual(['engineering', 'everyone', 'vault'])
    expect(await call('ada', about('ada', { groups: [] }), path)).toMatchObject({ status: 200 })
    expect(await groupsOf('ada')).toEqual(['engineering', 'everyone'])
  })

  test('if a filter names the subjects, a caller only acts for users that it matches', async () => {
    const path = '/call-for-engineers'
    expect(await call('ada', about('grace'), path)).toMatchObject({ status: 200 })
    for (const login of ['alan', 'ada', 'nobody']) {
      expect(await call('ada', about(login), path)).toMatchObject({ status: 403 })
    }
  })

  const vault = { ...about('ada'), name: 'vault-access', reason: 'on call' }
  const approvalsOf = async (person: PortalPerson): Promise<ApprovalList['approvals']> =>
    (await person.get('/main/approvals')).json.approvals

  test('a user cannot request in the name of another user', async () => {
    expect(await call('ada', { ...vault, requestor: 'alan' })).toMatchObject({
      status: 403,
      body: { errors: [{ pointer: '#/requestor', detail: expect.stringContaining('requireRequestorMatch') }] },
    })
    expect(await approvalsOf(await PortalPerson.logIn(gateway, 'grace'))).toEqual([])
    expect(await refusals('ada')).toContainEqual(
      expect.objectContaining({ requestor: 'ada', attribute: 'requestor', value: 'alan' }),
    )
    expect(await call('ada', { ...vault, requestor: 'ada' })).toMatchObject({ status: 202 })
  })

  test('if allowed, approver, requester and caller see both', async () => {
    const { status, body } = await call('ada', { ...vault, requestor: 'alan' }, '/call-for-others')
    expect(status).toBe(202)
    const grace = await PortalPerson.logIn(gateway, 'grace')
    const listed = async () => (await approvalsOf(grace)).find(({ workflow }) => workflow === body.workflowId)
    await until(async () => (await listed()) !== undefined, 30_000)
    const item = await listed()
    expect(item).toMatchObject({ requestor: 'alan', caller: 'ada' })
    const details: ApprovalDetails = (await grace.get(`/main/approvals/${item?.approval}`)).json
    expect(details).toMatchObject({ requestor: 'alan', caller: 'ada' })
    for (const login of ['alan', 'ada'] as const) {
      const person = await PortalPerson.logIn(gateway, login)
      const request: RequestDetails = (await person.get(`/main/requests/${body.workflowId}`)).json
      expect([login, request]).toMatchObject([login, { requestor: 'alan', caller: 'ada' }])
    }
    const ofAlan: RequestList = (await (await PortalPerson.logIn(gateway, 'alan')).get('/main/requests')).json
    expect(ofAlan.requests).toMatchObject([{ id: body.workflowId, requestor: 'alan', caller: 'ada' }])
  })
})
