import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import * as oidc from 'openid-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { addPerson } from '#testing/stories/add-person.ts'

const password = 'correct horse battery'
const wikiSecret = 'only-an-example-secret-0123456789'
const wikiCallback = 'http://127.0.0.1:9001/callback'
const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const idTokenType = 'urn:ietf:params:oauth:token-type:id_token'

/** In the form that OpenUnison documents. */
const objects = `apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: service-token }
spec: { className: auth.BearerToken, uri: /auth/service-token }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: services }
spec:
  level: 20
  authMechs:
    - { name: service-token, required: required, params: { token: service-token-0123456789, userName: gateway } }
---
apiVersion: openunison.tremolo.io/v1
kind: Trust
metadata: { name: orders }
spec:
  clientId: orders
  clientSecret: { secretName: wiki, keyName: client-secret }
  publicEndpoint: false
  redirectURI: []
  verifyRedirect: false
  signedUserInfo: false
  authChainName: login
  codeLastMileKeyName: lastmile-oidc
  codeTokenSkewMilis: 600000
  accessTokenTimeToLive: 600000
  accessTokenSkewMillis: 1200000
---
apiVersion: openunison.tremolo.io/v1
kind: Trust
metadata: { name: sts }
spec:
  clientId: sts
  clientSecret: { secretName: wiki, keyName: client-secret }
  publicEndpoint: false
  redirectURI: [${wikiCallback}]
  authChainName: services
  isSts: true
  stsImpersonation: true
  stsDelegation: true
  authorizedAudiences: [orders]
  clientAzRules: ['filter;(uid=gateway)', 'filter;(uid=grace)']
  subjectAzRules: ['dn;ou=staff,o=Tremolo']
`

let gateway: GatewayProcess
let issuer: string
const config = mkdtempSync(join(tmpdir(), 'gatehouse-exchange-config-'))
const data = mkdtempSync(join(tmpdir(), 'gatehouse-exchange-'))

beforeAll(async () => {
  cpSync('examples/own-issuer', config, { recursive: true })
  writeFileSync(join(config, 'exchange.yaml'), objects)
  for (const login of ['ada', 'grace']) {
    await addPerson(config, data, login, password, ['--attribute', `mail=${login}@corp.test`])
  }
  gateway = await startGatewayProcess({ config, dataFolder: data })
  issuer = `${gateway.url}/auth/idp/people`
}, 120_000)
afterAll(async () => {
  await gateway?.stop()
  for (const folder of [config, data]) rmSync(folder, { recursive: true, force: true })
})

async function logIn(login: string, clientId: string, browser = new PlainBrowser(gateway.url)) {
  const insecure = { execute: [oidc.allowInsecureRequests] }
  const client = await oidc.discovery(new URL(issuer), clientId, wikiSecret, undefined, insecure)
  const state = oidc.randomState()
  const address = oidc.buildAuthorizationUrl(client, { redirect_uri: wikiCallback, scope: 'openid', state })
  const { location } = await browser.follow(address.href, login, password)
  const tokens = await oidc.authorizationCodeGrant(client, new URL(location), { expectedState: state })
  return { browser, idToken: tokens.id_token ?? '' }
}

const common = { grant_type: exchangeGrant, subject_token_type: idTokenType, audience: 'orders', client_id: 'sts' }

async function exchange(form: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}) {
  const body = new URLSearchParams({ ...common, ...form })
  const answer = await fetch(`${issuer}/token`, { method: 'POST', headers, body })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

const asService = { authorization: 'Bearer service-token-0123456789' }

test('a service exchanges the token of a user until the user logs out', async () => {
  const discovery = (await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()) as Record<
    string,
    unknown
  >
  expect(discovery['grant_types_supported']).toContain(exchangeGrant)
  const { browser, idToken } = await logIn('ada', 'wiki')
  const { status, body } = await exchange({ subject_token: idToken }, asService)
  expect([status, body['token_type'], body['expires_in']]).toEqual([200, 'Bearer', 600])
  const { payload } = await jwtVerify(body['access_token'] ?? '', createRemoteJWKSet(new URL(`${issuer}/certs`)), {
    issuer,
    audience: 'orders',
  })
  expect(payload).toMatchObject({ sub: 'ada', email: 'ada@corp.test' })

  expect((await exchange({ subject_token: idToken })).status).toBe(401)
  expect((await exchange({ subject_token: idToken }, { authorization: 'Bearer other' })).status).toBe(401)
  // A session is not a credential here.
  expect((await browser.post(`${issuer}/token`, { ...common, subject_token: idToken })).status).toBe(401)

  const entries = await commandOutput('audit', 'tail', '--data', data, '--target', 'orders')
  expect(entries).toContain('gateway')
  expect(entries).toContain(String(payload.jti))

  const page = await browser.get(`${issuer}/session/end`)
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(page.body)?.[1] ?? ''
  await browser.post(`${issuer}/session/end/confirm`, { xsrf, logout: 'yes' })
  const ended = await exchange({ subject_token: idToken }, asService)
  expect([ended.status, ended.body['error']]).toEqual([400, 'invalid_request'])
}, 60_000)

test('an actor is named in the token', async () => {
  const user = await logIn('ada', 'wiki')
  const form = { subject_token: user.idToken, actor_token_type: idTokenType, client_secret: wikiSecret }
  // The actor logs in at the level of the trust's chain, which asks no one.
  const browser = new PlainBrowser(gateway.url)
  await browser.follow('/workflow-token/token/user', 'grace', password)
  const actor = await logIn('grace', 'sts', browser)
  const { status, body } = await exchange({ ...form, actor_token: actor.idToken })
  expect([status, decodeJwt(body['access_token'] ?? '')['act']]).toEqual([200, { sub: 'grace' }])
  const other = await logIn('grace', 'wiki')
  expect((await exchange({ ...form, actor_token: other.idToken })).status).toBe(400)
}, 60_000)
