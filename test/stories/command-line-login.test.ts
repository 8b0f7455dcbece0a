import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TokenUser } from '#features/portal/contract/token.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { addPerson } from '#testing/stories/add-person.ts'

const password = 'correct horse battery'
const local = 'http://127.0.0.1:8400/redirect'
const secret = 'only-an-example-secret-0123456789'

const application = (name: string, url: string) => `
---
apiVersion: openunison.tremolo.io/v1
kind: Application
metadata: { name: ${name} }
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig:
    sessionCookieName: people
    domain: "*"
    secure: false
    httpOnly: true
    logoutURI: /logout
    timeout: 900
    cookiesEnabled: ${name === 'k8s-login-cli' || name === 'k8s-login-cli-redirect'}
  urls:
    - hosts: ["127.0.0.1"]
      azRules: [{ scope: filter, constraint: "(!(uid=grace))" }]
${url.replaceAll(/^/gm, '      ')}`

const tokenPage = (name: string, chain: string, params = '') =>
  application(
    name,
    `uri: /${name}/token
authChain: ${chain}
filterChain:
  - className: com.tremolosecurity.scalejs.token.ws.ScaleToken
    params:
      displayNameAttribute: uid
      frontPage.title: Kubernetes kubectl command
      frontPage.text: Use this command
      uidAttributeName: uid
      logoutURL: /logout
      homeURL: /scale/
      warnMinutesLeft: "5"
      tokenClassName: com.tremolosecurity.scalejs.KubectlTokenLoader
      kubectlUsage: Run the kubectl command
      k8sCaCertName: cluster
      unisonCaCertName: cluster
      kubectlTemplate: kubernetes
      kubectlWinUsage: https://api.acme.test:6443${params}`,
  )

const chain = (name: string, tie: string) => `
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: ${name} }
spec:
  level: 20
  root: o=Tremolo
  authMechs:
    - name: jwt
      required: required
      params:
        issuer: "#[GATEHOUSE_URL]/auth/idp/k8s-login-cli"
        fromWellKnown: "true"
        linkToDirectory: "true"
        noMatchOU: oauth2
        uidAttr: sub
        lookupFilter: (uid=\${sub})
        defaultObjectClass: inetOrgPerson
        realm: kubernetes
        audience: [cli-local, cli-short]
    - name: genoidctoken
      required: required
      params: { idpName: people, trustName: kubernetes${tie} }`

const trust = (id: string, uris: readonly string[], more = '') => `
    - name: ${id}
      params: { clientID: ${id}, redirectURI: ${JSON.stringify(uris)}, authChainName: login, ${more} }`

/** In the form of OpenUnison's charts. */
const objects = `
apiVersion: openunison.tremolo.io/v1
kind: ResultGroup
metadata: { name: redirect-to-local-login }
spec: [{ resultType: redirect, source: static, value: "http://127.0.0.1:8400" }]
${application(
  'k8s-login-cli-redirect',
  `uri: /cli-login
regex: true
authChain: login
filterChain: [{ className: com.tremolosecurity.prelude.filters.StopProcessing, params: {} }]
results: { azSuccess: redirect-to-local-login }`,
)}
${application(
  'k8s-login-cli',
  `uri: /auth/idp/k8s-login-cli
idp:
  className: com.tremolosecurity.idp.providers.OpenIDConnectIdP
  params: { sessionStoreClassName: com.tremolosecurity.idp.providers.oidc.none.NoneBackend }
  mappings:
    strict: true
    map: [{ targetAttributeName: sub, targetAttributeSource: uid, sourceType: user }]
  trusts:${[
    trust('cli-local', [local], 'publicEndpoint: "true"'),
    trust('cli-short', [local], 'publicEndpoint: "true", accessTokenTimeToLive: "1000"'),
    trust('cli-mixed', [local, 'https://elsewhere.test/back'], 'publicEndpoint: "true"'),
    trust('cli-secret', [local], `clientSecret: ${secret}`),
  ].join('')}`,
)}
${chain('oauth2jwt-login', ', doNotTieSession: "true"')}
${chain('oauth2jwt-tied', ', doNotTieSession: "false"')}
${tokenPage('k8slogin', 'oauth2jwt-login')}
${tokenPage('k8stied', 'oauth2jwt-tied')}
`

describe('a login by the programs of OpenUnison for the command line, on SQLite', () => story())
describe.skipIf(postgresUrl() === '')('… on PostgreSQL', () => story(freshSchema))

/** Sends what OpenUnison's programs send: the plug-in "oulogin" for kubectl, and openunison-cli. */
function story(databaseUrl?: () => Promise<string>): void {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-cli-login-'))
  const [config, dataFolder] = [join(folder, 'config'), join(folder, 'data')]
  let gateway: GatewayProcess
  let issuer = ''

  beforeAll(async () => {
    cpSync('examples/own-issuer', config, { recursive: true })
    writeFileSync(join(config, 'command-line.yaml'), objects)
    const url = await databaseUrl?.()
    const args = url === undefined ? [] : ['--database', url]
    for (const login of ['ada', 'grace']) await addPerson(config, dataFolder, login, password, args)
    gateway = await startGatewayProcess({ config, dataFolder, args })
    issuer = `${gateway.url}/auth/idp/k8s-login-cli`
  }, 300_000)
  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const verifier = 'v'.repeat(64)
  const pkce = {
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }

  /** Where the browser ends up: at the program, with a code or an error. */
  async function authorize(client: string, more: Readonly<Record<string, string>> = {}) {
    const browser = new PlainBrowser(gateway.url)
    const query = { response_type: 'code', client_id: client, redirect_uri: local, scope: 'openid profile email' }
    const form = new URLSearchParams({ ...query, state: 'xyz', ...more })
    const back = await browser.follow(`${issuer}/auth?${form}`, 'ada', password)
    return new URL(back.location).searchParams
  }

  /** By Go's library for OAuth 2: with HTTP Basic first, and then with the client in the form. */
  async function token(at: string, client: string, form: Readonly<Record<string, string>>) {
    const ask = async (more: object, headers: Readonly<Record<string, string>>) => {
      const answer = await fetch(`${at}/token`, {
        method: 'POST',
        headers,
        body: new URLSearchParams({ ...form, ...more }),
      })
      return { status: answer.status, body: (await answer.json()) as Record<string, string> }
    }
    const basic = await ask({}, { authorization: `Basic ${Buffer.from(`${client}:`).toString('base64')}` })
    return basic.status === 200 ? basic : await ask({ client_id: client }, {})
  }

  async function idToken(client: string, more = {}, proof = {}): Promise<string> {
    const code = (await authorize(client, more)).get('code') ?? ''
    const { status, body } = await token(issuer, client, {
      ...{ grant_type: 'authorization_code', code, redirect_uri: local },
      ...proof,
    })
    expect([status, body['error']]).toEqual([200, undefined])
    return body['id_token'] ?? ''
  }

  async function read(page: string, authorization: string) {
    const answer = await fetch(`${gateway.url}/${page}/token/user`, { headers: { authorization } })
    return { status: answer.status, body: (await answer.json()) as TokenUser }
  }

  const refresh = (refreshToken: string) =>
    token(`${gateway.url}/auth/idp/people`, 'kubernetes', { grant_type: 'refresh_token', refresh_token: refreshToken })

  const whole = {
    displayName: 'ada',
    token: {
      id_token: expect.any(String),
      refresh_token: expect.any(String),
      'kubectl Command': 'kubernetes',
      'kubectl Windows Command': 'https://api.acme.test:6443',
    },
    state: { idToken: 'valid', refreshToken: 'unused', renewable: false },
  }

  test('the plug-in for kubectl logs in without PKCE, and its refresh token keeps working after the logout', async () => {
    const browser = new PlainBrowser(gateway.url)
    const opened = await browser.follow('/cli-login', 'ada', password)
    expect(opened.location).toBe('http://127.0.0.1:8400')
    const { status, body } = await read('k8slogin', await idToken('cli-local'))
    expect([status, body]).toMatchObject([200, whole])
    const { payload } = await jwtVerify(
      body.token['id_token'] ?? '',
      createRemoteJWKSet(new URL(`${gateway.url}/auth/idp/people/certs`)),
      { issuer: `${gateway.url}/auth/idp/people`, audience: 'kubernetes' },
    )
    expect(payload.sub).toBe('ada')
    await browser.get('/logout')
    const next = await refresh(body.token['refresh_token'] ?? '')
    expect((await refresh(next.body['refresh_token'] ?? '')).status).toBe(200)

    const done = await browser.get('/auth/forms/cli-login-finished.jsp')
    expect([done.status, done.body.includes('Continue in the terminal')]).toEqual([200, true])
  })

  test('openunison-cli logs in with PKCE, and uses the access token of a refresh as ID token', async () => {
    const { status, body } = await read(
      'k8slogin',
      `Bearer ${await idToken('cli-local', pkce, { code_verifier: verifier })}`,
    )
    expect([status, body]).toMatchObject([200, whole])
    const next = (await refresh(body.token['refresh_token'] ?? '')).body
    const { access_token: accessToken = '', refresh_token: refreshToken = '' } = next
    expect(decodeJwt(accessToken)).toMatchObject({ sub: 'ada', aud: 'kubernetes' })
    const bearer = { authorization: `Bearer ${accessToken}` }
    const info = () => fetch(`${gateway.url}/auth/idp/people/userinfo`, { headers: bearer })
    expect(await (await info()).json()).toMatchObject({ sub: 'ada' })
    const revoke = (token: string) =>
      fetch(`${gateway.url}/auth/idp/people/revoke`, {
        method: 'POST',
        body: new URLSearchParams({ token, client_id: 'kubernetes' }),
      })
    expect(await (await revoke(accessToken)).json()).toMatchObject({ error: 'unsupported_token_type' })
    expect((await info()).status).toBe(200)
    expect((await revoke(refreshToken)).status).toBe(200)
    expect((await info()).status).toBe(401)
  })

  test.each([
    ['another port of the machine', 'cli-local', { redirect_uri: 'http://127.0.0.1:8401/redirect' }],
    ['a client that also returns to another site', 'cli-mixed', {}],
    ['another site', 'cli-mixed', { redirect_uri: 'https://elsewhere.test/back' }],
  ])('without PKCE, no code is sent to %s', async (_what, client, more) => {
    const refused = await authorize(client, more)
    expect([refused.get('error'), refused.get('code')]).toEqual(['invalid_request', null])
    expect((await authorize(client, { ...more, ...pkce })).get('code')).not.toBeNull()
  })

  test('a client with a secret gets nothing without it', async () => {
    const code = (await authorize('cli-secret')).get('code') ?? ''
    const form = { grant_type: 'authorization_code', code, redirect_uri: local }
    expect(await token(issuer, 'cli-secret', form)).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  })

  test('a token that is expired, changed or absent gets nothing', async () => {
    const short = await idToken('cli-short')
    await until(async () => Date.now() > (decodeJwt(short).exp ?? 0) * 1000, 60_000)
    const good = await idToken('cli-local')
    for (const bearer of [`Bearer ${short}`, short, `Bearer ${good.slice(0, -4)}`, good.slice(0, -4), 'Bearer a', '']) {
      expect((await read('k8slogin', bearer)).status, bearer).toBe(401)
    }
  })

  test('there is no answer with a part of the tokens', async () => {
    const bearer = `Bearer ${await idToken('cli-local')}`
    const tied = await read('k8stied', bearer)
    expect(tied).toMatchObject({ status: 403, body: { errors: [expect.stringMatching(/^No tokens are issued here/)] } })
  })
}
