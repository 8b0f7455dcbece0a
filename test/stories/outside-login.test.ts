import { mkdtempSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser, type Visit } from '#testing/gateway/plain-browser.ts'
import { type OutsideIssuer, startOutsideIssuer } from '#testing/login/outside-issuer.ts'
import { addPerson } from '#testing/stories/add-person.ts'

const configuration = (issuer: string): string => `
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: oidc }
spec:
  className: com.tremolosecurity.unison.proxy.auth.openidconnect.OpenIDConnectAuthMech
  uri: /auth/oidc
  init: {}
  secretParams: []
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: outside }
spec:
  level: 20
  root: o=Tremolo
  authMechs:
    - name: oidc
      required: required
      params:
        issuer: ${issuer}
        clientid: gate
        responseType: code
        scope: openid email profile
        bearerTokenName: outsideToken
        forceAuthentication: "true"
        hd: ""
        linkToDirectory: "false"
        lookupFilter: (uid=\${sub})
        noMatchOU: outside
        uidAttr: sub
        defaultObjectClass: inetOrgPerson
        userLookupClassName: com.tremolosecurity.unison.proxy.auth.openidconnect.loadUser.LoadJWTFromAccessToken
        jwtTokenAttributeName: id_token
      secretParams:
        - name: secretid
          secretName: outside
          secretKey: client-secret
---
apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: staff }
spec: { className: directory.Database, suffix: "ou=staff,o=Tremolo" }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: linked }
spec:
  level: 20
  root: o=Tremolo
  authMechs:
    - name: oidc
      required: required
      params:
        issuer: ${issuer}
        clientid: gate
        scope: openid email profile
        linkToDirectory: "true"
        lookupFilter: (mail=\${email})
        noMatchOU: outside
        uidAttr: sub
      secretParams:
        - name: secretid
          secretName: outside
          secretKey: client-secret
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: desk }
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig: { sessionCookieName: desk, domain: "*", timeout: 900, secure: false, httpOnly: true, cookiesEnabled: true }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /desk
      authChain: linked
      azRules: [{ scope: dn, constraint: "ou=staff,o=Tremolo" }]
      filterChain:
        - className: filters.Plugin
          params: { module: hello.js }
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: hello }
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig:
    sessionCookieName: hello
    domain: "*"
    timeout: 900
    logoutURI: /hello/logout
    secure: false
    httpOnly: true
    cookiesEnabled: true
  urls:
    - hosts: ["127.0.0.1"]
      uri: /hello
      authChain: outside
      azRules: [{ scope: dn, constraint: "ou=outside,o=Tremolo" }]
      filterChain:
        - className: filters.Plugin
          params: { module: hello.js }
`
const hello = `export const handle = (_request, { subject }) => ({
  status: 200, json: { uid: subject.uid, dn: subject.dn, email: subject.attributes.email?.[0] },
})
`

const secret = 'a secret of the client'
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-outside-'))
const dataFolder = mkdtempSync(join(tmpdir(), 'gatehouse-outside-data-'))
let gateway: GatewayProcess
let issuer: OutsideIssuer

beforeAll(async () => {
  const port = await freePort()
  await writeFile(join(folder, 'outside.yaml'), configuration(`http://127.0.0.1:${port}`))
  await writeFile(join(folder, 'hello.js'), hello)
  await addPerson(folder, dataFolder, 'admin', 'correct horse battery', ['--attribute', 'mail=admin@corp.test'])
  gateway = await startGatewayProcess({
    config: folder,
    dataFolder,
    environment: { OUTSIDE_CLIENT_SECRET: secret },
  })
  issuer = await startOutsideIssuer(port, [
    {
      client_id: 'gate',
      client_secret: secret,
      token_endpoint_auth_method: 'client_secret_post',
      redirect_uris: [`${gateway.url}/auth/oidc`],
      backchannel_logout_uri: `${gateway.url}/auth/oidc/backchannel-logout`,
      backchannel_logout_session_required: true,
    },
  ])
}, 90_000)
afterAll(async () => {
  await gateway.stop()
  await issuer.stop()
  for (const one of [folder, dataFolder]) await rm(one, { recursive: true, force: true })
})

/** One user's browser, at both sites. */
class Person {
  readonly here = new PlainBrowser(gateway.url)
  readonly there = new PlainBrowser(issuer.url)

  /** Up to the address that the issuer redirects the browser back to. */
  async callback(path: string, login: string): Promise<string> {
    const begun = await this.here.get(path)
    expect([begun.status, begun.location]).toEqual([303, expect.stringContaining(`${issuer.url}/auth?`)])
    const page = await this.there.get(begun.location)
    const resumed = await this.there.get(`${page.location}?as=${login}`)
    return (await this.there.get(resumed.location)).location
  }

  async logIn(path: string, login: string): Promise<Visit> {
    return this.here.get(await this.callback(path, login))
  }
}

test('a user logs in at another issuer and comes back to the requested page', async () => {
  const person = new Person()
  const done = await person.logIn('/hello?x=1', 'ada')
  expect([done.status, done.location]).toEqual([303, '/hello?x=1'])
  const page = await person.here.get(done.location)
  expect(JSON.parse(page.body)).toEqual({ uid: 'ada', dn: 'sub=ada,ou=outside,o=Tremolo', email: 'ada@corp.test' })
  expect(gateway.output()).not.toContain(secret)
})

test('a callback address of the issuer is valid once, in one browser', async () => {
  const person = new Person()
  const callback = await person.callback('/hello', 'ada')
  expect((await new PlainBrowser(gateway.url).get(callback)).status).toBe(400)
  expect((await person.here.get(callback)).status).toBe(303)
  expect((await person.here.get(callback)).status).toBe(400)

  const [victim, attacker] = [new Person(), new Person()]
  const stolen = new URL(await attacker.callback('/hello', 'eve'))
  const begun = new URL((await victim.here.get('/hello')).location)
  stolen.searchParams.set('state', begun.searchParams.get('state') ?? '')
  expect((await victim.here.get(stolen.href)).status).toBe(401)
  expect((await victim.here.get('/hello')).status).toBe(303)
})

test('a user who is rejected there is rejected here', async () => {
  const person = new Person()
  const refused = await person.logIn('/hello', 'nobody')
  expect([refused.status, refused.location]).toEqual([401, ''])
  expect((await person.here.get('/hello')).status).toBe(303)
})

test('a logout at the issuer ends the session here, over the back channel', async () => {
  const [ada, grace] = [new Person(), new Person()]
  await ada.logIn('/hello', 'ada')
  await grace.logIn('/hello', 'grace')
  const page = await ada.there.get(`${issuer.url}/session/end`)
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(page.body)?.[1] ?? ''
  expect((await ada.there.post(`${issuer.url}/session/end/confirm`, { xsrf, logout: 'yes' })).status).toBe(303)
  await until(async () => (await ada.here.get('/hello')).status === 303, 10_000).catch((error: unknown) => {
    throw new Error(`${issuer.output()}\n${gateway.output()}`, { cause: error })
  })
  expect((await grace.here.get('/hello')).status).toBe(200)
  const forged = await fetch(`${gateway.url}/auth/oidc/backchannel-logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: 'e30.e30.e30' }),
  })
  expect(forged.status).toBe(400)
  expect((await grace.here.get('/hello')).status).toBe(200)
})

test('a logout here leads to the issuer, with its id_token', async () => {
  const person = new Person()
  await person.logIn('/hello', 'ada')
  const out = await person.here.get('/hello/logout')
  expect(out.status).toBe(303)
  const there = new URL(out.location)
  expect(`${there.origin}${there.pathname}`).toBe(`${issuer.url}/session/end`)
  expect(there.searchParams.get('id_token_hint')).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+$/)
  expect((await person.here.get('/hello')).status).toBe(303)
  expect((await person.there.get(there.href)).status).toBe(200)
})

test('an outsider who enters the administrator’s mail address at the issuer does not get their session', async () => {
  const outsider = new Person()
  const refused = await outsider.logIn('/desk', 'eve~admin@corp.test')
  expect([refused.status, refused.location]).toEqual([401, ''])
  expect(refused.body).not.toMatch(/verified|admin/)
  expect((await outsider.here.get('/desk')).status).toBe(303)
  await until(async () => gateway.output().includes('\\"email_verified\\" is not true'), 30_000)

  const owner = new Person()
  expect((await owner.logIn('/desk', 'ada~admin@corp.test~verified')).status).toBe(303)
  const page = await owner.here.get('/desk')
  expect(JSON.parse(page.body)).toMatchObject({ dn: 'uid=admin,ou=staff,o=Tremolo' })
})
