import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshSchema, postgresUrl, runSql } from '#testing/databases/postgres.ts'
import { commandOutput } from '#testing/gateway/command.ts'
import {
  type GatewayProcess,
  type GatewayProcessOptions,
  startGatewayProcess,
  until,
} from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { addPerson } from '#testing/stories/add-person.ts'
import { developmentLogin, staffPages } from '#testing/stories/story-documents.ts'

const password = 'correct horse battery'

/** Besides the example: other users with the same logins, a SCIM gateway and a workflow that set passwords. */
const documents = `
apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: partners }
spec: { className: directory.Database, suffix: "ou=partners,o=Tremolo" }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: partner-login }
spec:
  level: 10
  root: ou=partners,o=Tremolo
  authMechs: [{ name: login-form, required: required, params: { uidAttr: uid } }]
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: partner-pages }
spec:
  cookieConfig: { sessionCookieName: partners, domain: "*", timeout: 900, secure: false, cookiesEnabled: true }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /partners
      authChain: partner-login
      azRules: [{ scope: dn, constraint: "ou=partners,o=Tremolo" }]
      filterChain: [{ className: filters.CheckSession, params: { applicationName: partner-pages } }]
---
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
    - { taskType: provision, sync: true, setPassword: true, target: people }
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
          params: { mapping: scim, lookupTarget: people, workflowName: sync-person }
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: own-calls }
spec:
  cookieConfig: { sessionCookieName: people, domain: "*", timeout: 900, secure: false, cookiesEnabled: true }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /own-workflows
      authChain: login
      azRules: [{ scope: dn, constraint: "ou=staff,o=Tremolo" }]
      filterChain:
        - { className: filters.CallWorkflow, params: { allowedWorkflow: sync-person } }
---
${staffPages}
`

describe('a password that a workflow sets, on SQLite', () => story())
describe.skipIf(postgresUrl() === '')('a password that a workflow sets, on PostgreSQL', () => story(freshSchema))

function story(databaseUrl?: () => Promise<string>): void {
  let gateway: GatewayProcess
  let database: string[]
  let bearer: string
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-set-password-'))
  const config = join(folder, 'config')
  const dataFolder = join(folder, 'data')

  beforeAll(async () => {
    cpSync('examples/own-issuer', config, { recursive: true })
    writeFileSync(join(config, 'passwords.yaml'), documents)
    // Makes a login of the example find only its own users.
    const authentication = join(config, 'authentication.yaml')
    writeFileSync(authentication, readFileSync(authentication, 'utf8').replaceAll('root: o=', 'root: ou=staff,o='))
    const url = await databaseUrl?.()
    database = ['--data', dataFolder, ...(url === undefined ? [] : ['--database', url])]
    for (const login of ['ada', 'grace', 'rosa', 'alan', 'dora']) await addUser(login, 'people')
    await addUser('ada', 'partners')
    gateway = await startGatewayProcess({ config, dataFolder, args: database.slice(2) })
    bearer = `Bearer ${await gateway.token('--subject', 'idp')}`
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const addUser = (login: string, insert: string): Promise<void> => {
    const given = ['--insert', insert, '--attribute', `userName=${login}`, '--attribute', `mail=${login}@corp.test`]
    return addPerson(config, dataFolder, login, password, [...database.slice(2), ...given])
  }

  async function signedIn(path: string, login: string) {
    const browser = new PlainBrowser(gateway.url)
    expect((await browser.logIn(path, login, password)).status).toBe(303)
    const status = async () =>
      (await browser.get(path, { accept: 'application/json', 'sec-fetch-mode': 'cors' })).status
    expect(await status()).toBe(200)
    return { browser, status }
  }

  /** A session with a refresh token for kubectl. */
  async function withRefreshToken(login: string): Promise<() => Promise<number>> {
    const page = await new PlainBrowser(gateway.url).follow('/k8stoken/token/user', login, password)
    let refreshToken = /"refresh_token":"([^"]+)"/.exec(page.body)?.[1] ?? ''
    expect(refreshToken).not.toBe('')
    return async () => {
      const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: 'kubernetes' }
      const address = `${gateway.url}/auth/idp/people/token`
      const answer = await fetch(address, { method: 'POST', body: new URLSearchParams(form) })
      if (answer.ok) refreshToken = ((await answer.json()) as { refresh_token: string }).refresh_token
      return answer.status
    }
  }

  const api = (path: string, method: string, body?: unknown) =>
    fetch(`${gateway.url}${path}`, {
      method,
      headers: { authorization: bearer, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })

  async function audited(login: string): Promise<string> {
    return await commandOutput('audit', 'tail', ...database, '--subject', login)
  }

  // A gateway that dies is another matter on each database; the rest needs one.
  if (databaseUrl === undefined) {
    test('ends the sessions and refresh tokens of that entry, and not those of another with the same login', async () => {
      const [one, two] = [await signedIn('/staff', 'ada'), await signedIn('/staff', 'ada')]
      const [partner, grace] = [await signedIn('/partners', 'ada'), await signedIn('/staff', 'grace')]
      const refresh = await withRefreshToken('ada')
      expect(await refresh()).toBe(200)
      const found = await api('/scim/Users?filter=userName%20eq%20%22ada%22', 'GET')
      const id = ((await found.json()) as { Resources: { id: string }[] }).Resources[0]?.id
      const patch = {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
        Operations: [{ op: 'replace', path: 'password', value: 'another horse battery' }],
      }
      expect((await api(`/scim/Users/${id}`, 'PATCH', patch)).status).toBe(200)
      expect([await one.status(), await two.status(), await refresh()]).toEqual([401, 401, 400])
      expect([await partner.status(), await grace.status()]).toEqual([200, 200])
      // Both of /staff, and for the tokens: the one of their browser, and the one of the refresh token that outlives it.
      expect((await audited('ada')).match(/password changed/g)).toHaveLength(4)
      expect((await new PlainBrowser(gateway.url).logIn('/staff', 'ada', 'another horse battery')).status).toBe(303)
    })

    /** Sets the caller's own password, by the cookie of the browser. */
    async function setOwn(browser: PlainBrowser, login: string, requestParams: Record<string, string>) {
      const cookie = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ')
      const answer = await fetch(`${gateway.url}/own-workflows`, {
        method: 'POST',
        headers: { cookie, 'content-type': 'application/json', 'x-requested-with': 'test' },
        body: JSON.stringify({
          name: 'sync-person',
          uidAttributeName: 'userName',
          user: { attributes: [{ name: 'userName', values: [login] }], userPassword: 'another horse battery' },
          requestParams,
        }),
      })
      expect([answer.status, answer.ok ? '' : await answer.text()]).toEqual([expect.any(Number), ''])
    }

    test.each([
      ['immediate', 'rosa', {}],
      ['asynchronous', 'alan', { 'UNISON.EXEC.TYPE': 'UNISON.EXEC.ASYNC' }],
    ])('an %s run leaves the session that set its own password, and ends the others', async (_kind, login, params) => {
      const [here, elsewhere] = [await signedIn('/staff', login), await signedIn('/staff', login)]
      await setOwn(here.browser, login, params)
      await until(async () => (await elsewhere.status()) === 401, 20_000)
      expect(await here.status()).toBe(200)
      expect((await audited(login)).match(/password changed/g)).toHaveLength(1)
    })
  }

  test('a gateway that is killed after the password was written still ends the sessions', async () => {
    const [one, two] = [await signedIn('/staff', 'dora'), await signedIn('/staff', 'dora')]
    const grace = await signedIn('/staff', 'grace')
    const found = await api('/scim/Users?filter=userName%20eq%20%22dora%22', 'GET')
    const id = ((await found.json()) as { Resources: { id: string }[] }).Resources[0]?.id
    const { port } = new URL(gateway.url)
    const start = (more: Partial<GatewayProcessOptions>) =>
      startGatewayProcess({ config, dataFolder, args: database.slice(2), port: Number(port), ...more })
    const chaos = { GATEHOUSE_CHAOS_LEASE_MILLIS: '1500', GATEHOUSE_CHAOS_POINT: 'after-target-call' }
    await gateway.stop()
    gateway = await start({ environment: chaos, crashes: true })
    const patch = {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
      Operations: [{ op: 'replace', path: 'password', value: 'killed horse battery' }],
    }
    await expect(api(`/scim/Users/${id}`, 'PATCH', patch)).rejects.toThrow()
    await until(async () => gateway.process.signalCode === 'SIGKILL', 20_000)
    // The lease of the dead process expires. On SQLite a new one knows that it is alone.
    const [, , , url] = database
    if (url !== undefined) await runSql(url, 'update password_changes set lease = 0')
    gateway = await start({})
    expect((await new PlainBrowser(gateway.url).logIn('/staff', 'dora', 'killed horse battery')).status).toBe(303)
    expect([await one.status(), await two.status(), await grace.status()]).toEqual([401, 401, 200])
    expect((await audited('dora')).match(/password changed/g)).toHaveLength(2)
    expect(await audited('dora')).toContain('outcome unknown')
  })
}
