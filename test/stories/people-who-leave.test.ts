import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser, type Visit } from '#testing/gateway/plain-browser.ts'
import { addPerson } from '#testing/stories/add-person.ts'
import { developmentLogin, staffPages } from '#testing/stories/story-documents.ts'

const password = 'correct horse battery'

/** Beside the example: a SCIM gateway to the users who log in, and a page for one of their groups. */
const scim = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: sync-person }
spec:
  tasks:
    - { taskType: provision, sync: true, target: people }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: delete-person }
spec:
  tasks:
    - { taskType: delete, target: people }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: change-membership }
spec:
  tasks:
    - taskType: customTask
      className: tasks.LoadGroupsFromTarget
      params: { nameAttr: userName, target: people }
    - { taskType: addGroup, name: $groupname$, remove: $removegroup$ }
    - { taskType: provision, sync: true, target: people, attributes: [userName] }
---
${developmentLogin}
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: scim }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /scim
      authChain: development
      azRules: [{ scope: dn, constraint: "sub=idp,ou=api,o=Tremolo" }]
      filterChain:
        - className: filters.ScimGateway
          params:
            mapping: scim
            lookupTarget: people
            workflowName: sync-person
            deleteUserWorkflowName: delete-person
            groupWorkflow: change-membership
---
${staffPages}
`

describe('users who leave, on SQLite', () => story())
describe.skipIf(postgresUrl() === '')('users who leave, on PostgreSQL', () => story(freshSchema))

function story(databaseUrl?: () => Promise<string>): void {
  let gateway: GatewayProcess
  let database: string[]
  let bearer: string
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-leaving-'))
  const config = join(folder, 'config')
  const dataFolder = join(folder, 'data')

  beforeAll(async () => {
    cpSync('examples/own-issuer', config, { recursive: true })
    writeFileSync(join(config, 'scim.yaml'), scim)
    const url = await databaseUrl?.()
    database = ['--data', dataFolder, ...(url === undefined ? [] : ['--database', url])]
    for (const login of ['ada', 'grace', 'alan']) await addUser(login)
    const args = [...database.slice(2), '--person-check-seconds', '1']
    gateway = await startGatewayProcess({ config, dataFolder, args })
    bearer = `Bearer ${await gateway.token('--subject', 'idp')}`
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const addUser = (login: string): Promise<void> => {
    const given = ['--attribute', `userName=${login}`, '--attribute', `mail=${login}@corp.test`, '--group', 'crew']
    return addPerson(config, dataFolder, login, password, [...database.slice(2), ...given])
  }

  /** A logged-in user, with tokens that end with the session of the browser. */
  const loggedIn = (login: string) => withTokens(login, '/k8stoken/token/user', 'kubernetes')

  async function withTokens(login: string, path: string, client: string) {
    const browser = new PlainBrowser(gateway.url)
    const page = await browser.follow(path, login, password)
    const refreshToken = /"refresh_token":"([^"]+)"/.exec(page.body)?.[1] ?? ''
    expect([page.status, refreshToken === '']).toEqual([200, false])
    const api = (path: string) => browser.get(path, { accept: 'application/json', 'sec-fetch-mode': 'cors' })
    return { browser, api, ...tokensOf(refreshToken, client) }
  }

  function tokensOf(first: string, client: string) {
    let [refreshToken, accessToken] = [first, '']
    const refresh = async (): Promise<number> => {
      const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: client }
      const answer = await fetch(`${gateway.url}/auth/idp/people/token`, {
        method: 'POST',
        body: new URLSearchParams(form),
      })
      const body = (await answer.json()) as Record<string, string>
      if (answer.ok) [refreshToken, accessToken] = [body['refresh_token'] ?? '', body['access_token'] ?? '']
      return answer.status
    }
    const userInfo = () =>
      fetch(`${gateway.url}/auth/idp/people/userinfo`, { headers: { authorization: `Bearer ${accessToken}` } })
    return { refresh, userInfo }
  }

  async function scimCall(method: string, path: string, body?: unknown) {
    const answer = await fetch(`${gateway.url}/scim${path}`, {
      method,
      headers: { authorization: bearer, 'content-type': 'application/scim+json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    expect(answer.ok).toBe(true)
    const text = await answer.text()
    return (text === '' ? {} : JSON.parse(text)) as { Resources?: { id: string }[]; id?: string }
  }

  async function idOf(kind: 'Users' | 'Groups', filter: string): Promise<string> {
    return (await scimCall('GET', `/${kind}?filter=${encodeURIComponent(filter)}`)).Resources?.[0]?.id ?? ''
  }

  const patch = (...Operations: unknown[]) => ({
    schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
    Operations,
  })

  const gone = async (api: (path: string) => Promise<Visit>): Promise<boolean> => (await api('/staff')).status === 401

  async function audited(login: string): Promise<string> {
    return await commandOutput('audit', 'tail', ...database, '--subject', login)
  }

  test('a user deactivated by SCIM is logged out within a second, with all tokens, and cannot log in', async () => {
    const { api, refresh, userInfo } = await loggedIn('ada')
    expect((await api('/staff')).status).toBe(200)
    expect(await refresh()).toBe(200)
    expect((await userInfo()).status).toBe(200)
    const id = await idOf('Users', 'userName eq "ada"')
    await scimCall('PATCH', `/Users/${id}`, patch({ op: 'replace', path: 'active', value: false }))
    await until(() => gone(api), 5_000)
    expect((await userInfo()).status).toBe(401)
    expect(await refresh()).toBe(400)
    expect(await audited('ada')).toMatch(/switched off in the directory/)
    const again = await new PlainBrowser(gateway.url).logIn('/staff', 'ada', password)
    expect(again.status).toBe(401)
    await scimCall('PATCH', `/Users/${id}`, patch({ op: 'replace', path: 'active', value: true }))
    expect(await refresh()).toBe(400)
    expect((await new PlainBrowser(gateway.url).logIn('/staff', 'ada', password)).status).toBe(303)
  })

  test('a user deleted by SCIM loses tokens that no browser uses, and a new user with the same name does not inherit them', async () => {
    const { browser, api, refresh, userInfo } = await withTokens('grace', '/workflow-token/token/user', 'workflows')
    expect((await api('/staff')).status).toBe(200)
    await browser.get('/k8stoken/logout')
    expect(await gone(api)).toBe(true)
    expect(await refresh()).toBe(200)
    await scimCall('DELETE', `/Users/${await idOf('Users', 'userName eq "grace"')}`)
    await addUser('grace')
    await until(async () => (await userInfo()).status === 401, 5_000)
    expect(await refresh()).toBe(400)
    expect(await audited('grace')).toMatch(/the name is another’s now/)
  })

  test('a removed membership takes effect within a second, for rules and for claims', async () => {
    const { api, refresh, userInfo } = await loggedIn('alan')
    expect([(await api('/crew')).status, await refresh()]).toEqual([200, 200])
    expect(await (await userInfo()).json()).toMatchObject({ groups: [expect.stringMatching(/^cn=crew,/)] })
    const [user, group] = [await idOf('Users', 'userName eq "alan"'), await idOf('Groups', 'displayName eq "crew"')]
    await scimCall('PATCH', `/Groups/${group}`, patch({ op: 'remove', path: `members[value eq "${user}"]` }))
    await until(async () => (await api('/crew')).status === 403, 5_000)
    expect((await api('/staff')).status).toBe(200)
    expect(await (await userInfo()).json()).not.toHaveProperty('groups')
  })
}
