import { mkdtempSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser, type Visit } from '#testing/gateway/plain-browser.ts'
import { FakeGitHub, type FakeGitHubAccount } from '#testing/login/fake-github.ts'

/** In the form of OpenUnison's login portal with GitHub. The chain `anon` is not defined, and SOME_SUFFIX is not set. */
const configuration = ({ url, clientId }: FakeGitHub): string => `
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: github }
spec: { className: com.tremolosecurity.unison.proxy.auth.github.GithubAuthMech, uri: /auth/github, init: {} }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: az }
spec: { className: com.tremolosecurity.proxy.auth.AuthorizationAuthMech, uri: /auth/az, init: {} }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: login-service }
spec: { className: com.tremolosecurity.proxy.auth.LoginService, uri: /auth/loginservice, init: {} }
---
apiVersion: openunison.tremolo.io/v1
kind: CustomAuthorization
metadata: { name: github }
spec: { className: com.tremolosecurity.unison.proxy.auth.github.GithubTeamRule, params: {} }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: enterprise-idp }
spec:
  level: 20
  root: o=Tremolo
  authMechs:
    - name: github
      required: required
      params:
        bearerTokenName: githubToken
        clientid: ${clientId}
        scope: user:read user:email read:org
        linkToDirectory: "false"
        noMatchOU: github
        lookupFilter: (uid=\${login})
        uidAttr: login
        defaultObjectClass: inetOrgPerson
        idpURL: ${url}/login/oauth/authorize
        loadTokenURL: ${url}/login/oauth/access_token
        apiUrl: ${url}
      secretParams:
        - { name: secretid, secretName: "github#[SOME_SUFFIX]", secretKey: client-secret }
    - name: az
      required: required
      params: { rules: "custom;github!engines/Platform!calculus/" }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: login-service }
spec:
  level: 20
  root: o=Tremolo
  authMechs:
    - name: login-service
      required: required
      params: { chains: Login=/login/auth, serviceUrl: /auth/forms/chooseLogin.jsp, cookieName: choice, cookieDays: "30" }
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: completelogin }
spec:
  isApp: true
  cookieConfig: { sessionCookieName: tremolosession, domain: "*", timeout: 900, secure: false, cookiesEnabled: true }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /login/auth
      authChain: enterprise-idp
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain: [{ className: com.tremolosecurity.prelude.filters.CompleteLogin, params: {} }]
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: hello }
spec:
  isApp: true
  cookieConfig: { sessionCookieName: tremolosession, domain: "*", timeout: 900, secure: false, cookiesEnabled: true }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /hello
      authChain: login-service
      azRules: [{ scope: dn, constraint: "ou=github,o=Tremolo" }]
      filterChain: &filters
        - { className: com.tremolosecurity.proxy.filters.XForward, params: { createHeaders: "false" } }
        - { className: com.tremolosecurity.proxy.filters.SetNoCacheHeaders, params: {} }
        - { className: filters.Plugin, params: { module: hello.js } }
    - hosts: ["127.0.0.1"]
      uri: /hello/admins
      authChain: login-service
      azRules: [{ scope: dn, constraint: "ou=github,o=Tremolo" }]
      filterChain:
        - className: com.tremolosecurity.proxy.filters.AzFilter
          params: { rules: ["filter;(githubTeams=engines/Admins)"], azFail: force-logout }
        - { className: filters.Plugin, params: { module: hello.js } }
    - hosts: ["127.0.0.1"]
      uri: /open
      authChain: anon
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain: [{ className: com.tremolosecurity.prelude.filters.StopProcessing, params: {} }]
    - hosts: ["127.0.0.1"]
      uri: /dashboard
      proxyTo: http://127.0.0.1:1/\${fullURI}
      authChain: login-service
      azRules: [{ scope: dn, constraint: "ou=github,o=Tremolo" }]
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: scale }
spec:
  isApp: true
  cookieConfig: { sessionCookieName: tremolosession, domain: "*", timeout: 900, secure: false, cookiesEnabled: true }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /scale
      proxyTo: http://ouhtml-orchestra.openunison.svc:8080\${fullURI}
      authChain: login-service
      azRules: [{ scope: dn, constraint: "ou=github,o=Tremolo" }]
    - hosts: ["127.0.0.1"]
      uri: /scale/main
      authChain: login-service
      azRules: [{ scope: dn, constraint: "ou=github,o=Tremolo" }]
      filterChain:
        - className: com.tremolosecurity.scalejs.ws.ScaleMain
          params:
            displayNameAttribute: login
            frontPage.title: Kubernetes Access Portal
            frontPage.text: Use this portal
            canEditUser: "false"
            workflowName: ""
            warnMinutesLeft: "5"
            attributeNames: login
            login.displayName: Login ID
            login.readOnly: "true"
            uidAttributeName: login
            roleAttribute: githubTeams
            showPortalOrgs: "false"
            logoutURL: /logout
            loadPortalGroupsClassName: com.tremolosecurity.scalejs.LoadClusterGroups
            canDelegate: "NO"
            canPreApprove: "no"
            enableApprovals: "false"
`
const hello = `export const handle = (_request, { subject: { uid, dn, attributes } }) => ({
  status: 200, json: { uid, dn, orgs: attributes.githubOrgs, teams: attributes.githubTeams, mail: attributes.mail?.[0] },
})
`

const ada: FakeGitHubAccount = {
  id: 1815,
  login: 'ada',
  emails: [{ email: 'ada@corp.test', primary: true, verified: true }],
  orgs: ['engines'],
  teams: ['engines/Platform'],
}

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-github-'))
let gateway: GatewayProcess
let github: FakeGitHub

beforeAll(async () => {
  github = await FakeGitHub.start()
  await writeFile(join(folder, 'portal.yaml'), configuration(github))
  await writeFile(join(folder, 'hello.js'), hello)
  gateway = await startGatewayProcess({
    config: folder,
    environment: { GITHUB_CLIENT_SECRET: github.clientSecret },
  })
}, 90_000)
afterAll(async () => {
  await gateway.stop()
  await github.close()
  await rm(folder, { recursive: true, force: true })
})

/** Up to the address that GitHub sends the browser back to. */
async function callback(browser: PlainBrowser, path: string, account: FakeGitHubAccount): Promise<URL> {
  let visit = await browser.get(path)
  for (let i = 0; i < 5 && visit.location.startsWith('/'); i++) visit = await browser.get(visit.location)
  const asked = new URL(visit.location)
  expect([visit.status, asked.origin]).toEqual([303, github.url])
  return github.consent(asked, account)
}

const logIn = async (browser: PlainBrowser, path: string, account: FakeGitHubAccount): Promise<Visit> =>
  browser.get((await callback(browser, path, account)).href)

test('a member of the team logs in with GitHub and comes back to the requested page', async () => {
  const browser = new PlainBrowser(gateway.url)
  const done = await logIn(browser, '/hello?x=1', ada)
  expect([done.status, done.location]).toEqual([303, '/hello?x=1'])
  const page = await browser.get(done.location)
  expect(JSON.parse(page.body)).toEqual({
    uid: 'ada',
    dn: 'login=ada,ou=github,o=Tremolo',
    orgs: ['engines'],
    teams: ['engines/Platform'],
    mail: 'ada@corp.test',
  })
  expect(page.headers.get('cache-control')).toBe('no-cache, no-store, must-revalidate')
  expect((await browser.get('/hello/admins')).status).toBe(403)
  expect(gateway.output()).not.toContain(github.clientSecret)
  expect(gateway.output()).not.toContain('gho_')
})

test('a member of an admitted org passes, and of the admins also the filter', async () => {
  const browser = new PlainBrowser(gateway.url)
  const account = { ...ada, id: 2, login: 'leibniz', orgs: ['Calculus', 'engines'], teams: ['engines/Admins'] }
  expect((await logIn(browser, '/hello', account)).status).toBe(303)
  expect((await browser.get('/hello/admins')).status).toBe(200)
})

test('a user of other orgs and teams gets no session', async () => {
  const browser = new PlainBrowser(gateway.url)
  const account = {
    ...ada,
    id: 666,
    login: 'eve',
    orgs: ['engines', 'evil'],
    teams: ['evil/Platform', 'engines/Other'],
  }
  const refused = await logIn(browser, '/hello', account)
  expect([refused.status, refused.location]).toEqual([403, ''])
  expect((await browser.get('/hello')).status).toBe(303)
})

test('a callback works once, in the browser that began, and only with the code of its own login', async () => {
  const browser = new PlainBrowser(gateway.url)
  const url = await callback(browser, '/hello', ada)
  expect((await new PlainBrowser(gateway.url).get(url.href)).status).toBe(400)
  expect((await browser.get(url.href)).status).toBe(303)
  expect((await browser.get(url.href)).status).toBe(400)

  const [victim, attacker] = [new PlainBrowser(gateway.url), new PlainBrowser(gateway.url)]
  const stolen = await callback(attacker, '/hello', { ...ada, id: 666, login: 'eve' })
  const own = await callback(victim, '/hello', ada)
  stolen.searchParams.set('state', own.searchParams.get('state') ?? '')
  expect((await victim.get(stolen.href)).status).toBe(401)
  expect((await victim.get('/hello')).status).toBe(303)
})

test('no parameter of the callback chooses where the browser goes', async () => {
  const browser = new PlainBrowser(gateway.url)
  const url = await callback(browser, '/hello', ada)
  for (const name of ['target', 'redirect_uri', 'RelayState']) url.searchParams.set(name, 'https://evil.test/')
  const done = await browser.get(url.href)
  expect([done.status, done.location]).toEqual([303, '/hello'])
})

test('the chain anon serves a URL without a login, and the page of the login service leads home', async () => {
  const browser = new PlainBrowser(gateway.url)
  const open = await browser.get('/open')
  expect([open.status, open.body]).toEqual([200, ''])
  const done = await logIn(browser, '/login/auth', ada)
  expect([done.status, done.location]).toEqual([303, '/login/auth'])
  expect((await browser.get('/login/auth')).location).toBe('/')
})

test("where OpenUnison proxies to its portal's pages, the portal of Gatehouse works; other proxied URLs stay closed", async () => {
  const browser = new PlainBrowser(gateway.url)
  expect((await browser.get('/dashboard')).status).toBe(303)
  expect((await browser.get('/scale/main/user', { accept: 'application/json', 'sec-fetch-mode': 'cors' })).status).toBe(
    401,
  )
  await logIn(browser, '/scale/', ada)
  const page = await browser.get('/scale/')
  expect([page.status, page.body]).toEqual([200, expect.stringContaining('"main":"/scale/main"')])
  const user = await browser.get('/scale/main/user', { accept: 'application/json' })
  expect([user.status, JSON.parse(user.body)]).toEqual([200, expect.objectContaining({ uid: 'ada' })])
  const proxied = await browser.get('/dashboard')
  expect([proxied.status, proxied.location]).toEqual([404, ''])
})
