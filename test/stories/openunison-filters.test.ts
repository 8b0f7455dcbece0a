import { mkdirSync, mkdtempSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { decodeJwt } from 'jose'
import * as oidc from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { addPerson } from '#testing/stories/add-person.ts'

const password = 'correct horse battery'
const callback = 'http://127.0.0.1:9001/callback'

/** In the form of OpenUnison's documentation, apart from the parts of this gateway around it. */
const objects = (hr: string): string => `
apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: people }
spec: { className: directory.Database, suffix: 'ou=staff,o=Tremolo' }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: hr }
spec:
  className: com.tremolosecurity.provisioning.core.providers.BasicDB
  params:
    - { name: url, value: 'sqlite:${hr}' }
    - { name: userTable, value: people }
    - { name: userName, value: login }
    - { name: readOnly, value: 'true' }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: basic }
spec: { className: com.tremolosecurity.proxy.auth.BasicAuth, uri: /auth/basic, init: {}, secretParams: [] }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: form }
spec: { className: com.tremolosecurity.proxy.auth.FormLoginAuthMech, uri: /auth/formLogin, init: {}, secretParams: [] }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: load-last-updated }
spec: { className: com.tremolosecurity.proxy.auth.LoadLastUpdatedAuth, uri: /auth/loadlastupdated, init: {}, secretParams: [] }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: api }
spec:
  level: 20
  root: o=Tremolo
  compliance: { enabled: true, maxFailedAttempts: 3, maxLockoutTime: 600000 }
  authMechs:
    - { name: basic, required: required, params: { realmName: k8s-api, uidAttr: uid }, secretParams: [] }
    - name: load-last-updated
      required: required
      params: { lastUpdatedForUser: lastUpdated, sql: 'SELECT updated FROM people WHERE login=?', target: hr, uidAttributeName: uid }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: login }
spec:
  level: 20
  root: o=Tremolo
  authMechs: [{ name: form, required: required, params: { uidAttr: uid } }]
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: api }
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ['*']
      uri: /json
      authChain: api
      azRules: [{ scope: dn, constraint: 'ou=staff,o=Tremolo' }]
      filterChain:
        - className: com.tremolosecurity.prelude.filters.Group2Attribute
          params: { attributeName: roles, attributeValue: admin, groupDN: 'cn=admins,ou=groups,ou=staff,o=Tremolo' }
        - className: com.tremolosecurity.prelude.filters.DNBase2Attribute
          params: { attributeName: roles, attributeValue: staff, dn: 'ou=staff,o=Tremolo' }
        - className: com.tremolosecurity.prelude.filters.Groups2Attribute
          params: { base: o=Tremolo, attrName: teams, pattern: 'team-(.*)', groupNum: '1' }
        - className: com.tremolosecurity.proxy.filters.UserToJSON
          params: { doProxy: 'false' }
    - hosts: ['*']
      uri: /metrics
      authChain: api
      azRules: [{ scope: group, constraint: 'cn=admins,ou=groups,ou=staff,o=Tremolo' }]
      filterChain: [{ className: com.tremolosecurity.prometheus.filter.MetricsFilter, params: {} }]
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: portal }
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig: { sessionCookieName: s, domain: '*', timeout: 900, logoutURI: /logout, secure: false, cookiesEnabled: true }
  urls:
    - hosts: ['*']
      uri: /who
      authChain: login
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain: [{ className: com.tremolosecurity.prelude.filters.LoginTest, params: { logoutURI: /logout } }]
    - hosts: ['127.0.0.1']
      uri: /auth/idp/people
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: com.tremolosecurity.prelude.filters.Groups2Attribute
          params: { base: o=Tremolo, attrName: groups }
        - className: com.tremolosecurity.prelude.filters.Group2Attribute
          params: { attributeName: roles, attributeValue: admin, groupDN: 'cn=admins,ou=groups,ou=staff,o=Tremolo' }
      idp:
        className: com.tremolosecurity.idp.providers.OpenIDConnectIdP
        params: { updateClaimsClassName: com.tremolosecurity.oidc.k8s.AddClusterGroupsToClaims }
        mappings:
          strict: true
          map:
            - { targetAttributeName: sub, targetAttributeSource: uid, sourceType: user }
            - { targetAttributeName: roles, targetAttributeSource: roles, sourceType: user }
            - { targetAttributeName: cluster, targetAttributeSource: k8s, sourceType: static }
        trusts:
          - name: wiki
            params: { clientID: wiki, publicEndpoint: 'true', redirectURI: '${callback}', authChainName: login }
`

describe('filters, mechanisms and claims in the form of OpenUnison', () => {
  let gateway: GatewayProcess
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openunison-filters-'))
  const config = join(folder, 'config')
  const dataFolder = join(folder, 'data')

  beforeAll(async () => {
    mkdirSync(config)
    const hr = join(folder, 'hr.db')
    const database = new DatabaseSync(hr)
    database.exec(
      "create table people (login text primary key, updated integer); insert into people values ('ada', 1900000000000)",
    )
    database.close()
    await writeFile(join(config, 'objects.yaml'), objects(hr))
    const groups = ['admins', 'team-blue', 'k8s-cluster-k8s-admins', 'k8s-namespace-viewers-gone-x'].flatMap((name) => [
      '--group',
      name,
    ])
    await addPerson(config, dataFolder, 'ada', password, groups)
    await addPerson(config, dataFolder, 'bob', password)
    gateway = await startGatewayProcess({ config, dataFolder })
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const get = (path: string, user?: string, pwd = password) => {
    const credential = { authorization: `Basic ${Buffer.from(`${user}:${pwd}`).toString('base64')}` }
    return fetch(`${gateway.url}${path}`, { headers: user === undefined ? {} : credential })
  }

  test('HTTP Basic logs in to the directory, and filters see attributes of groups, place and database', async () => {
    const open = await get('/json')
    expect([open.status, open.headers.get('www-authenticate')]).toEqual([401, 'Basic realm="k8s-api", charset="UTF-8"'])
    const valuesOf = async (user: string) => {
      const { attribs } = (await (await get('/json', user)).json()) as {
        attribs: Record<string, { values: string[] } | undefined>
      }
      return [attribs['roles']?.values, attribs['teams']?.values, attribs['lastUpdated']?.values]
    }
    expect(await valuesOf('ada')).toEqual([['admin', 'staff'], ['blue'], ['1900000000000']])
    expect(await valuesOf('bob')).toEqual([['staff'], undefined, undefined])
  })

  test('many requests at once are one try, and wrong passwords lock the account for others', async () => {
    const all = await Promise.all(Array.from({ length: 12 }, () => get('/json', 'ada')))
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]))
    const statuses: number[] = []
    for (let i = 0; i < 4; i++) statuses.push((await get('/json', 'nobody', `guess ${i}`)).status)
    expect(statuses).toEqual([401, 401, 401, 429])
    const locked = await get('/json', 'nobody', password)
    expect([locked.status, Number(locked.headers.get('retry-after')) > 0]).toEqual([429, true])
    expect((await get('/json', 'ada')).status).toBe(200)
  })

  test('metrics are for users whom the rules of the URL allow', async () => {
    expect((await get('/metrics')).status).toBe(401)
    expect((await get('/metrics', 'bob')).status).toBe(403)
    const scraped = await get('/metrics', 'ada')
    expect([scraped.status, scraped.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/plain')])
    expect(await scraped.text()).toContain('gatehouse_')
  })

  test('the page about the own login shows the attributes, and leads out', async () => {
    const browser = new PlainBrowser(gateway.url)
    const done = await browser.logIn('/who', 'ada', password)
    const page = await browser.get(done.location)
    expect([page.status, page.body.includes('uid=ada,ou=staff,o=Tremolo')]).toEqual([200, true])
    expect(page.body).toContain('href="/logout"')
    expect(page.body).not.toContain(password)
  })

  test('claims are made of what the filters of an identity provider added, and have the groups of its cluster', async () => {
    const insecure = { execute: [oidc.allowInsecureRequests] }
    const issuer = new URL(`${gateway.url}/auth/idp/people`)
    const client = await oidc.discovery(issuer, 'wiki', undefined, oidc.None(), insecure)
    const verifier = oidc.randomPKCECodeVerifier()
    const address = oidc.buildAuthorizationUrl(client, {
      redirect_uri: callback,
      scope: 'openid',
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    const back = await new PlainBrowser(gateway.url).follow(address.href, 'ada', password)
    const tokens = await oidc.authorizationCodeGrant(client, new URL(back.location), { pkceCodeVerifier: verifier })
    expect(decodeJwt(tokens.id_token ?? '')).toMatchObject({
      sub: 'ada',
      cluster: 'k8s',
      roles: ['admin'],
      groups: ['admins', 'k8s-cluster-k8s-admins', 'team-blue'],
    })
  })
})
