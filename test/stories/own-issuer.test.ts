import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createLocalJWKSet, createRemoteJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from 'jose'
import * as oidc from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import type { TokenConfig, TokenUser } from '#features/portal/contract/token.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { expectDescribed } from '#testing/gateway/api-contract.ts'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser, type Visit } from '#testing/gateway/plain-browser.ts'
import { addPerson } from '#testing/stories/add-person.ts'

const password = 'correct horse battery'
const wikiSecret = 'only-an-example-secret-0123456789'
const wikiCallback = 'http://127.0.0.1:9001/callback'
const execute = promisify(execFile)

describe('our own issuer on SQLite', () => story())
describe.skipIf(postgresUrl() === '')('our own issuer on PostgreSQL', () => story(freshSchema))

function story(databaseUrl?: () => Promise<string>): void {
  let gateway: GatewayProcess
  let issuer: string
  let wiki: oidc.Configuration
  let kubectl: oidc.Configuration
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-issuer-'))
  const [config, dataFolder] = [join(folder, 'config'), join(folder, 'data')]
  let database: string[] = []

  beforeAll(async () => {
    cpSync('examples/own-issuer', config, { recursive: true })
    const url = await databaseUrl?.()
    database = ['--data', dataFolder, ...(url === undefined ? [] : ['--database', url])]
    for (const login of ['ada', 'grace']) {
      await addPerson(config, dataFolder, login, password, [
        ...database.slice(2),
        '--attribute',
        `mail=${login}@corp.test`,
      ])
    }
    gateway = await startGatewayProcess({ config, dataFolder, args: database.slice(2) })
    issuer = `${gateway.url}/auth/idp/people`
    const insecure = { execute: [oidc.allowInsecureRequests] }
    wiki = await oidc.discovery(new URL(issuer), 'wiki', wikiSecret, undefined, insecure)
    kubectl = await oidc.discovery(new URL(issuer), 'kubernetes', undefined, oidc.None(), insecure)
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const follow = (browser: PlainBrowser, address: string, login = 'ada'): Promise<Visit> =>
    browser.follow(address, login, password)

  interface Flow {
    readonly browser?: PlainBrowser
    readonly login?: string
    readonly redirect?: string
    readonly more?: Readonly<Record<string, string>>
  }

  async function authorize(client: oidc.Configuration, flow: Flow = {}) {
    const { browser = new PlainBrowser(gateway.url), login, redirect = wikiCallback, more = {} } = flow
    const [verifier, state, nonce] = [oidc.randomPKCECodeVerifier(), oidc.randomState(), oidc.randomNonce()]
    const address = oidc.buildAuthorizationUrl(client, {
      redirect_uri: redirect,
      scope: 'openid profile email groups',
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
      ...more,
    })
    const back = await follow(browser, address.href, login)
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce }
    return { browser, back, checks, location: back.location }
  }

  async function tokensFor(client: oidc.Configuration, flow: Flow = {}) {
    const { browser, location, checks } = await authorize(client, flow)
    return { browser, tokens: await oidc.authorizationCodeGrant(client, new URL(location), checks) }
  }

  /** Changes the issuer, and waits until the gateway uses the change. */
  async function reconfigure(change: (text: string) => string): Promise<void> {
    const applied = async () => {
      const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
      return Number(/configuration_reloads_total\{outcome="applied"\} (\d+)/.exec(metrics)?.[1] ?? 0)
    }
    const before = await applied()
    const file = join(config, 'issuer.yaml')
    writeFileSync(file, change(readFileSync(file, 'utf8')))
    await until(async () => (await applied()) > before, 20_000)
  }

  const keys = async () => (await (await fetch(`${issuer}/certs`)).json()) as JSONWebKeySet

  const token = (form: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${issuer}/token`, { method: 'POST', headers, body: new URLSearchParams(form) })

  async function tokenUser(browser: PlainBrowser, path: string, method: 'GET' | 'POST' = 'GET') {
    const cookie = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = {
      cookie,
      'x-requested-with': 'test',
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
    }
    const response = await fetch(`${gateway.url}${path}`, {
      method,
      headers,
      ...(method === 'POST' ? { body: '{}' } : {}),
    })
    const text = await response.text()
    const type = response.headers.get('content-type')
    const mount = path.replace(/\/token\/.*/, '')
    expectDescribed({ method, path, status: response.status, type, text }, [mount])
    return { status: response.status, headers: response.headers, body: JSON.parse(text) as TokenUser }
  }

  async function logIn(path: string, login = 'ada'): Promise<PlainBrowser> {
    const browser = new PlainBrowser(gateway.url)
    await follow(browser, path, login)
    return browser
  }

  test('an application with a secret: userinfo, introspection, refresh, revocation', async () => {
    const { tokens } = await tokensFor(wiki, { login: 'grace' })
    expect(tokens.claims()).toMatchObject({ sub: 'grace', email: 'grace@corp.test', aud: 'wiki' })
    const bearer = { authorization: `Bearer ${tokens.access_token}` }
    const info = await fetch(`${issuer}/userinfo`, { headers: bearer })
    expect(info.headers.get('content-type')).toMatch(/^application\/jwt/)
    const signed = await jwtVerify(await info.text(), createLocalJWKSet(await keys()), { issuer, audience: 'wiki' })
    expect(signed.payload).toMatchObject({ sub: 'grace', email: 'grace@corp.test' })
    expect((await fetch(`${issuer}/userinfo?access_token=${tokens.access_token}`)).status).toBe(400)
    expect(await oidc.tokenIntrospection(wiki, tokens.access_token)).toMatchObject({ active: true, sub: 'grace' })

    const first = tokens.refresh_token ?? ''
    const second = await oidc.refreshTokenGrant(wiki, first)
    expect(second.refresh_token).not.toBe(first)
    expect(second.access_token).not.toBe(tokens.access_token)
    await oidc.tokenRevocation(wiki, second.access_token)
    expect(await oidc.tokenIntrospection(wiki, second.access_token)).toMatchObject({ active: false })
    // A refresh token that is used twice was copied: the whole grant ends.
    const third = second.refresh_token ?? ''
    await expect(oidc.refreshTokenGrant(wiki, first)).rejects.toMatchObject({ error: 'invalid_grant' })
    await expect(oidc.refreshTokenGrant(wiki, third)).rejects.toMatchObject({ error: 'invalid_grant' })
  })

  test('a code is valid once, also for two concurrent clients', async () => {
    const { location, checks } = await authorize(wiki)
    const form = {
      grant_type: 'authorization_code',
      code: new URL(location).searchParams.get('code') ?? '',
      redirect_uri: wikiCallback,
      code_verifier: checks.pkceCodeVerifier,
      client_id: 'wiki',
      client_secret: wikiSecret,
    }
    const answers = await Promise.all(Array.from({ length: 6 }, () => token(form)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400, 400, 400])
  })

  // The store of the issuer is the same promise on both databases; pages and answers need one.
  if (databaseUrl === undefined) {
    test('the discovery document follows OpenID Connect Discovery 1.0, and each address answers', async () => {
      const response = await fetch(`${issuer}/.well-known/openid-configuration`)
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
      const document = (await response.json()) as Record<string, unknown>
      expect(document).toMatchObject({
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        userinfo_endpoint: `${issuer}/userinfo`,
        jwks_uri: `${issuer}/certs`,
        end_session_endpoint: `${issuer}/session/end`,
        revocation_endpoint: `${issuer}/revoke`,
        introspection_endpoint: `${issuer}/introspect`,
        device_authorization_endpoint: `${issuer}/device/auth`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
        code_challenge_methods_supported: ['S256'],
      })
      expect(document['scopes_supported']).toContain('openid')
      expect(document['claims_supported']).toEqual(expect.arrayContaining(['sub', 'email', 'groups']))
      for (const name of Object.keys(document).filter((key) => /_endpoint$|_uri$/.test(key))) {
        const status = (await fetch(String(document[name]), { method: /jwks/.test(name) ? 'GET' : 'POST' })).status
        expect([name, status < 500 && status !== 404]).toEqual([name, true])
      }
    })

    test('a program on the user’s machine logs in by the browser, at any port, with PKCE', async () => {
      const redirect = 'http://127.0.0.1:40123/callback'
      const { tokens, browser } = await tokensFor(kubectl, { redirect })
      const { payload } = await jwtVerify(tokens.id_token ?? '', createRemoteJWKSet(new URL(`${issuer}/certs`)), {
        issuer,
        audience: 'kubernetes',
      })
      expect(payload).toMatchObject({ sub: 'ada', preferred_username: 'ada', email: 'ada@corp.test' })
      expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(60)
      // The gateway reads the clock once for each of the two, so a slow machine adds a second or more.
      const ahead = (payload.iat ?? 0) - Number(payload['nbf'])
      expect(ahead).toBeGreaterThanOrEqual(120)
      expect(ahead).toBeLessThan(150)
      expect([...browser.jar.keys()].filter((name) => name.includes('_session'))).toEqual([])
      const again = await oidc.refreshTokenGrant(kubectl, tokens.refresh_token ?? '')
      expect(decodeJwt(again.id_token ?? '').sub).toBe('ada')
      // One login serves the other application too.
      const other = await authorize(wiki, { browser })
      expect(other.location).toMatch(/^http:\/\/127\.0\.0\.1:9001\/callback\?code=/)
    })

    test('tokens end with their session', async () => {
      const { tokens, browser } = await tokensFor(wiki)
      expect(await oidc.tokenIntrospection(wiki, tokens.access_token)).toMatchObject({ active: true })
      await browser.get('/k8stoken/logout')
      expect(await oidc.tokenIntrospection(wiki, tokens.access_token)).toMatchObject({ active: false })
      await expect(oidc.refreshTokenGrant(wiki, tokens.refresh_token ?? '')).rejects.toMatchObject({
        error: 'invalid_grant',
      })
      const { back } = await authorize(wiki, { browser, more: { prompt: 'none' } })
      expect(new URL(back.location).searchParams.get('error')).toBe('login_required')
    })

    test.each([
      ['another redirect', { redirect_uri: 'https://evil.test/callback' }],
      ['a redirect that only begins alike', { redirect_uri: `${wikiCallback}.evil.test` }],
      ['an unknown application', { client_id: 'nobody' }],
      ['a header in the redirect', { redirect_uri: `${wikiCallback}\r\nset-cookie: x=1` }],
    ])('%s redirects nowhere', async (_what, more) => {
      const { back } = await authorize(wiki, { more })
      expect([back.status, back.location]).toEqual([400, ''])
      expect(back.headers.get('content-security-policy')).not.toMatch(/unsafe/)
    })

    test('an error of the provider is explained in the language of its reader', async () => {
      const address = `${issuer}/auth?client_id=nobody&response_type=code&scope=openid&redirect_uri=https%3A%2F%2Fevil.test%2F`
      const { status, body } = await new PlainBrowser(gateway.url).get(address, { 'accept-language': 'es' })
      expect([status, body.includes('<html lang="es"')]).toEqual([400, true])
      expect(body).toContain('Esta aplicación no está configurada aquí')
      expect(body).toContain('<small lang="en">invalid_client')
    })

    test('a program without a secret must use PKCE, and no response comes in the address of a page', async () => {
      const browser = new PlainBrowser(gateway.url)
      const query = (more: object) =>
        new URLSearchParams({
          client_id: 'kubernetes',
          redirect_uri: 'http://localhost:8000',
          scope: 'openid',
          response_type: 'code',
          state: 'abc',
          ...more,
        })
      const plain = await follow(browser, `/auth/idp/people/auth?${query({})}`)
      expect(new URL(plain.location).searchParams.get('error')).toBe('invalid_request')
      const implicit = await follow(
        browser,
        `/auth/idp/people/auth?${query({ response_type: 'id_token', nonce: 'n' })}`,
      )
      expect(new URL(implicit.location.replace('#', '?')).searchParams.get('error')).toBe('unsupported_response_type')
    })

    test.each([
      ['no secret', {}],
      ['a wrong one', { client_secret: 'wrong' }],
    ])('the token endpoint rejects %s', async (_what, more) => {
      const answer = await token({ grant_type: 'refresh_token', refresh_token: 'x', client_id: 'wiki', ...more })
      expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([401, 'invalid_client'])
    })

    test('prompt=login requires another login, and the answer has its time', async () => {
      const { browser, tokens } = await tokensFor(wiki)
      const before = Number(tokens.claims()?.['auth_time'])
      await delay(1100)
      const visit = await browser.get(
        oidc.buildAuthorizationUrl(wiki, { redirect_uri: wikiCallback, scope: 'openid', prompt: 'login', state: 's' })
          .href,
      )
      expect(visit.location).toMatch(/\/interaction\//)
      const again = await tokensFor(wiki, { browser, more: { prompt: 'login' } })
      expect(Number(again.tokens.claims()?.['auth_time'])).toBeGreaterThan(before)
      const consented = await tokensFor(wiki, { browser, more: { prompt: 'consent', scope: 'openid offline_access' } })
      expect(consented.tokens.claims()?.sub).toBe('ada')
    })

    test('an application that requires a stronger login gets one', async () => {
      const { browser } = await tokensFor(wiki)
      const query = new URLSearchParams({
        client_id: 'workflows',
        redirect_uri: 'http://127.0.0.1/unused',
        response_type: 'code',
        scope: 'openid',
        code_challenge: 'a'.repeat(43),
        code_challenge_method: 'S256',
      })
      const address = `/auth/idp/people/auth?${query}`
      const step = await browser.get(address)
      expect(step.location).toMatch(/\/interaction\//)
      expect((await browser.get(step.location)).location).toMatch(/^\/auth\/formLogin/)
      expect((await follow(browser, address)).location).toMatch(/^http:\/\/127\.0\.0\.1\/unused\?code=/)
    })

    test('a login that starts in one browser cannot continue in another', async () => {
      const address = oidc.buildAuthorizationUrl(wiki, { redirect_uri: wikiCallback, scope: 'openid', state: 's' }).href
      const here = new PlainBrowser(gateway.url)
      const step = (await here.get(address)).location
      const victim = await logIn('/k8stoken/token/config')
      const answer = await victim.get(step)
      expect([answer.status, answer.location]).toEqual([400, ''])
    })

    test('an application may post its request, as in OpenID Connect', async () => {
      const answer = await fetch(`${issuer}/auth`, {
        method: 'POST',
        redirect: 'manual',
        body: new URLSearchParams({
          client_id: 'wiki',
          redirect_uri: wikiCallback,
          scope: 'openid',
          response_type: 'code',
        }),
      })
      expect([answer.status, answer.headers.get('location')]).toEqual([
        303,
        expect.stringMatching(/^\/auth\/idp\/people\/auth\?client_id=wiki&/),
      ])
    })

    test('a device logs in by a code that a user types, on pages without scripts', async () => {
      const begun = await oidc.initiateDeviceAuthorization(kubectl, { scope: 'openid email' })
      expect(begun.verification_uri).toBe(`${issuer}/device`)
      const poll = () =>
        token({
          grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
          device_code: begun.device_code,
          client_id: 'kubernetes',
        })
      expect(await (await poll()).json()).toMatchObject({ error: 'authorization_pending' })
      const browser = new PlainBrowser(gateway.url)
      const form = await follow(browser, begun.verification_uri_complete ?? '')
      expect(form.body).toContain(`value="${begun.user_code}"`)
      expect(form.body).not.toContain('<script')
      const xsrf = (page: Visit) => /name="xsrf" value="([^"]+)"/.exec(page.body)?.[1] ?? ''
      const wrong = await browser.post(form.action, { xsrf: xsrf(form), user_code: 'XXXX-XXXX' })
      expect(wrong.body).toMatch(/role="alert"[^>]*>There is no such code/)
      const forged = await browser.post(form.action, { xsrf: 'guess', user_code: begun.user_code })
      expect(forged.body).not.toContain('Log in this device?')
      const anew = await browser.get(`${issuer}/device`)
      const confirm = await browser.post(anew.action, { xsrf: xsrf(anew), user_code: begun.user_code })
      expect(confirm.body).toContain('Log in this device?')
      const elsewhere = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' }
      const answer = { xsrf: xsrf(confirm), user_code: begun.user_code, confirm: 'yes' }
      expect((await browser.post(confirm.action, answer, elsewhere)).status).toBe(403)
      expect((await browser.post(confirm.action, answer)).body).toContain('The device is logged in')
      const got = (await (await poll()).json()) as { id_token: string }
      expect(decodeJwt(got.id_token)).toMatchObject({ sub: 'ada', aud: 'kubernetes' })
      expect(await (await poll()).json()).toMatchObject({ error: 'invalid_grant' })
    })

    test('endpoints have no other spelling that would bypass the audit', async () => {
      const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'x', client_id: 'kubernetes' })
      for (const path of ['TOKEN', 'token/', 'token%3f', 'token%23', 'DEVICE/AUTH', 'device/auth/']) {
        const { status } = await fetch(`${issuer}/${path}`, { method: 'POST', body, redirect: 'manual' })
        expect([path, status]).toEqual([path, 404])
      }
    })

    test('an application without the device grant can neither start one nor collect a token by one', async () => {
      const refused = { error: 'unauthorized_client' }
      // The way to phish a user: a public client needs no secret.
      const begun = await fetch(`${issuer}/device/auth`, {
        method: 'POST',
        body: new URLSearchParams({ client_id: 'workflows', scope: 'openid' }),
      })
      expect([begun.status, await begun.json()]).toEqual([400, expect.objectContaining(refused)])
      const grant = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: 'x' }
      const asked = await token({ ...grant, client_id: 'workflows' })
      expect([asked.status, await asked.json()]).toEqual([400, expect.objectContaining(refused)])
      const basic = Buffer.from(`wiki:${wikiSecret}`).toString('base64')
      expect(await (await token(grant, { authorization: `Basic ${basic}` })).json()).toMatchObject(refused)
      expect(await (await token({ ...grant, client_id: 'kubernetes' })).json()).toMatchObject({
        error: 'invalid_grant',
      })
    })

    test('an application requests a logout: the user confirms it, and the session ends', async () => {
      const { browser, tokens } = await tokensFor(wiki)
      const address = oidc.buildEndSessionUrl(wiki, {
        id_token_hint: tokens.id_token ?? '',
        post_logout_redirect_uri: 'http://127.0.0.1:9001/goodbye',
        state: 'bye',
      })
      const page = await browser.get(address.href)
      expect(page.body).toContain('The wiki asks to sign you out')
      const xsrf = /name="xsrf" value="([^"]+)"/.exec(page.body)?.[1] ?? ''
      const done = await browser.post(page.action, { xsrf, logout: 'yes' })
      expect([done.status, done.location]).toEqual([303, 'http://127.0.0.1:9001/goodbye?state=bye'])
      expect(await oidc.tokenIntrospection(wiki, tokens.access_token)).toMatchObject({ active: false })
      expect((await browser.get('/k8stoken/token/user')).status).toBe(303)
      // No user is logged in any more; the way back still works, and leads to registered addresses only.
      expect((await browser.get(address.href)).location).toBe('http://127.0.0.1:9001/goodbye?state=bye')
      address.searchParams.set('post_logout_redirect_uri', 'https://evil.test/')
      expect((await browser.get(address.href)).location).toBe('')
    })

    test('the Token API: config, the tokens of the login, and new ones by POST', async () => {
      const browser = await logIn('/k8stoken/token/config')
      const { body: page } = await browser.get('/k8stoken/token/config')
      const shown = JSON.parse(page) as TokenConfig
      expect(Object.keys(shown).sort()).toEqual(
        ['frontPage', 'homeURL', 'logoutURL', 'warnMinutesLeft', 'errorColor', 'headerTitle', 'themePrimaryDark']
          .concat([
            'themePrimaryLight',
            'themePrimaryMain',
            'themeSecondaryDark',
            'themeSecondaryLight',
            'themeSecondaryMain',
          ])
          .sort(),
      )
      const first = await tokenUser(browser, '/k8stoken/token/user')
      expect([first.status, first.headers.get('cache-control')]).toEqual([200, 'no-store'])
      expect(first.body).toMatchObject({
        displayName: 'ada',
        claims: { sub: 'ada', aud: 'kubernetes', iss: issuer },
        state: { idToken: 'valid', refreshToken: 'unused', renewable: true },
      })
      const { token: shownTokens, expires } = first.body
      expect(Date.parse(expires ?? '')).toBeGreaterThan(Date.now())
      await jwtVerify(shownTokens['id_token'] ?? '', createLocalJWKSet(await keys()), {
        issuer,
        audience: 'kubernetes',
      })
      expect(shownTokens['kubectl Command']).toContain('kubectl config set-credentials ada@example ')
      const file = parse(shownTokens['kubeconfig'] ?? '') as {
        users: { user: { 'auth-provider': { config: object } } }[]
      }
      expect(file.users[0]?.user['auth-provider'].config).toMatchObject({
        'idp-issuer-url': issuer,
        'refresh-token': shownTokens['refresh_token'],
      })
      // D20: reading creates nothing.
      expect((await tokenUser(browser, '/k8stoken/token/user')).body).toEqual(first.body)
      const refreshed = await oidc.refreshTokenGrant(kubectl, shownTokens['refresh_token'] ?? '')
      expect(decodeJwt(refreshed.id_token ?? '').sub).toBe('ada')
      const used = await tokenUser(browser, '/k8stoken/token/user')
      expect(used.body.state?.refreshToken).toBe('used')
      expect(used.body.token['refresh_token']).toBeUndefined()
      const renewed = await tokenUser(browser, '/k8stoken/token/user', 'POST')
      expect(renewed.body.state).toMatchObject({ idToken: 'valid', refreshToken: 'unused' })
      expect(renewed.body.token['id_token']).not.toBe(shownTokens['id_token'])
      // The owner of the first token continues undisturbed.
      await oidc.refreshTokenGrant(kubectl, refreshed.refresh_token ?? '')
      expect((await tokenUser(browser, '/k8stoken/token/nothing')).status).toBe(404)
      const forged = await browser.post(
        '/k8stoken/token/user',
        {},
        { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' },
      )
      expect(forged.status).toBe(403)
    })

    test('the documented way to call a workflow: a token of one minute, and another after logging out and in', async () => {
      const call = (idToken: string, login = 'ada') =>
        fetch(`${gateway.url}/call-workflow`, {
          method: 'POST',
          headers: { authorization: `Bearer ${idToken}`, 'content-type': 'application/json' },
          body: JSON.stringify({
            name: 'onboard',
            uidAttributeName: 'uid',
            user: { uid: login, attributes: [{ name: 'uid', values: [login] }] },
            reason: 'story',
          }),
        })
      const browser = await logIn('/workflow-token/token/config')
      const first = await tokenUser(browser, '/workflow-token/token/user')
      const idToken = first.body.token['id_token'] ?? ''
      const { exp = 0, iat = 0 } = decodeJwt(idToken)
      expect(exp - iat).toBe(60)
      expect(first.body.state).toMatchObject({ idToken: 'valid', refreshToken: 'unused', renewable: false })
      const done = await call(idToken)
      expect([done.status, await done.json()]).toMatchObject([200, { status: 'completed' }])
      expect((await call(idToken, 'grace')).status).toBe(403)
      expect((await call(first.body.token['id_token']?.slice(0, -4) ?? '')).status).toBe(401)
      const renewal = await tokenUser(browser, '/workflow-token/token/user', 'POST')
      expect([renewal.status, renewal.body]).toMatchObject([
        403,
        { errors: ['To get a new token, log out and log in again.'] },
      ])
      const again = async () => {
        await browser.get('/k8stoken/logout')
        await follow(browser, '/workflow-token/token/config')
        return (await tokenUser(browser, '/workflow-token/token/user')).body.token['id_token'] ?? ''
      }
      // The minute of the next token is shorter.
      await reconfigure((text) => text.replace(/(login-with-tokens\s+accessTokenTimeToLive: )"60000"/, '$1"3000"'))
      const short = await again()
      expect(short).not.toBe(idToken)
      const { exp: ends = 0, iat: begins = 0 } = decodeJwt(short)
      expect(ends - begins).toBe(3)
      await delay(ends * 1000 + 1000 - Date.now())
      expect((await call(short)).status).toBe(401)
      const late = await tokenUser(browser, '/workflow-token/token/user')
      expect([late.body.token['id_token'], late.body.state?.idToken]).toEqual([short, 'expired'])
      await reconfigure((text) => text.replace('"3000"', '"60000"'))
      expect((await call(await again())).status).toBe(200)
    })

    test('a key is published before it signs, and older signatures still verify', async () => {
      const { tokens } = await tokensFor(wiki)
      const before = (await keys()).keys.map(({ kid }) => kid)
      expect(before).toHaveLength(1)
      const args = ['keys', 'rotate', '--config', config, ...database, '--endpoint', 'idp:people']
      await execute(gatehouse, args, { env: { ...process.env, GATEHOUSE_URL: gateway.url } })
      await until(async () => (await keys()).keys.length === 2, 30_000)
      const during = await keys()
      expect(during.keys.map(({ kid }) => kid)).toEqual([before[0], expect.any(String)])
      await jwtVerify(tokens.id_token ?? '', createLocalJWKSet(during), { issuer })
      const next = await tokensFor(wiki)
      const { protectedHeader } = await jwtVerify(next.tokens.id_token ?? '', createLocalJWKSet(during), { issuer })
      expect(protectedHeader.kid).toBe(before[0])
    }, 60_000)
  }

  test('the audit has every token, with its user and application', async () => {
    const output = await commandOutput('audit', 'tail', '--output', 'json', ...database, '--target', 'wiki')
    const rows = JSON.parse(output) as Record<string, unknown>[]
    expect(rows.some((row) => row['action'] === 'issue' && JSON.stringify(row).includes('grace'))).toBe(true)
    expect(gateway.output()).not.toMatch(/eyJ[\w-]{20}/)
    expect(gateway.output()).not.toContain('an issuer failed')
  })
}
