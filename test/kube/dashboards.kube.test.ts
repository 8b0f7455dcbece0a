import { createHash, randomBytes } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { stringify } from 'yaml'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { type KubeApiServer, startKubeApiServer } from '#testing/kubernetes/kube-api-server.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import { addPerson } from '#testing/stories/add-person.ts'
import { trustingEnvironment } from '#testing/sts/sts-gateway.ts'
import { blockOf } from './consumer-guide.ts'

const guide = 'dashboards'
const password = 'correct horse battery'
const secret = 'the secret of a dashboard'
/** The issuer in the guide. */
const example = 'https://gatehouse.example.com/auth/idp/people'
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const team = 'cn=team,ou=groups,ou=staff,o=Tremolo'

interface GuideTrust {
  readonly spec: {
    readonly clientId: string
    readonly redirectURI: readonly [string]
    readonly clientSecret?: { readonly secretName: string }
  }
}
interface Tokens {
  readonly id_token: string
  readonly refresh_token: string
}
/** How a program uses the endpoints of an issuer. */
interface Client {
  readonly id: string
  readonly redirect: string
  readonly scope: string
  readonly hasSecret: boolean
  readonly hasPkce: boolean
}
interface Question {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

describe.skipIf(inject('kube') === undefined)('dashboards, and clusters without OpenID Connect', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-dashboards-'))
  const [config, data] = [join(folder, 'config'), join(folder, 'data')]
  const trusts = ['Trust', 'Trust of the dashboard'].map((name) => blockOf<GuideTrust>(guide, name))
  const clientOf = (id: string, more: Omit<Client, 'id' | 'redirect'>): Client => {
    const redirect =
      trusts.find(({ spec }) => spec.clientId === id)?.spec.redirectURI[0] ?? 'http://127.0.0.1:8000/callback'
    return { id, redirect, ...more }
  }
  let issuer = ''
  let server: KubeApiServer
  let gateway: GatewayProcess

  async function ask(url: string, { method = 'GET', headers = {}, body }: Question = {}) {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>()
    const ca = [testServerCertificate, server.client.connection.ca]
    const asked = request(url, { method, headers, ca, signal: AbortSignal.timeout(60_000) }, (answer) => {
      text(answer).then((content) => resolve({ status: answer.statusCode ?? 0, body: content }), reject)
    })
    asked.once('error', reject).end(body)
    return promise
  }

  beforeAll(async () => {
    const port = await freePort()
    issuer = `https://127.0.0.1:${port}/auth/idp/people`
    const written = JSON.stringify(blockOf(guide, 'API server')).replaceAll(example, issuer)
    const authentication = JSON.parse(written) as { jwt: { issuer: object }[] }
    for (const jwt of authentication.jwt) Object.assign(jwt.issuer, { certificateAuthority: testServerCertificate })
    const file = join(folder, 'authentication.json')
    writeFileSync(file, JSON.stringify(authentication))
    server = await startKubeApiServer(await kubeBinaries(), [`--authentication-config=${file}`])
    await server.client.must('POST', `${rbac}/clusterroles`, blockOf(guide, 'Rights of kube-oidc-proxy'))
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }]
    await server.client.must('POST', `${rbac}/clusterroles`, { metadata: { name: 'pods' }, rules })
    for (const [name, subject] of Object.entries({
      ada: { kind: 'User', name: 'ada' },
      team: { kind: 'Group', name: team },
    })) {
      const namespace = `of-${name}`
      await server.client.must('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
      await server.client.must('POST', `${rbac}/namespaces/${namespace}/rolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'pods' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', ...subject }],
      })
    }
    cpSync('examples/own-issuer', config, { recursive: true })
    writeFileSync(join(config, 'dashboards.yaml'), trusts.map((trust) => stringify(trust)).join('---\n'))
    for (const { spec } of trusts) {
      if (spec.clientSecret === undefined) continue
      const place = join(config, 'secrets', spec.clientSecret.secretName)
      mkdirSync(place, { recursive: true })
      writeFileSync(join(place, 'client-secret'), secret, { mode: 0o600 })
    }
    for (const [login, group] of Object.entries({ ada: 'team', eve: 'others' })) {
      await addPerson(config, data, login, password, ['--attribute', `mail=${login}@corp.test`, '--group', group])
    }
    const environment = { ...trustingEnvironment(folder), GATEHOUSE_URL: `https://127.0.0.1:${port}` }
    gateway = await startGatewayProcess({ config, dataFolder: data, port, tls: true, environment })
  })
  afterAll(async () => {
    await gateway?.stop()
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** The user logs in at the issuer for the program, and is sent back to it with a code. */
  async function codeFor(client: Client, login: string): Promise<{ code: string; verifier: string }> {
    const [verifier, state] = [randomBytes(32).toString('base64url'), randomBytes(8).toString('hex')]
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    const query = new URLSearchParams({
      response_type: 'code',
      ...{ client_id: client.id, redirect_uri: client.redirect, scope: client.scope, state, nonce: state },
      ...(client.hasPkce ? { code_challenge: challenge, code_challenge_method: 'S256' } : {}),
    })
    const browser = new PlainBrowser(gateway.url)
    const back = new URL((await browser.follow(`${issuer}/auth?${query}`, login, password)).location)
    expect([`${back.origin}${back.pathname}`, back.searchParams.get('state')]).toEqual([client.redirect, state])
    return { code: back.searchParams.get('code') ?? '', verifier }
  }

  async function tokens(client: Client, form: Readonly<Record<string, string>>): Promise<Tokens> {
    const basic = `Basic ${Buffer.from(`${client.id}:${encodeURIComponent(secret)}`).toString('base64')}`
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      ...(client.hasSecret ? { authorization: basic } : {}),
    }
    const known = client.hasSecret ? {} : { client_id: client.id }
    const body = new URLSearchParams({ ...known, ...form }).toString()
    const answer = await ask(`${issuer}/token`, { method: 'POST', headers, body })
    expect(answer.status, answer.body).toBe(200)
    return JSON.parse(answer.body) as Tokens
  }

  async function logIn(client: Client, login: string): Promise<Tokens> {
    const { code, verifier } = await codeFor(client, login)
    const pkce = client.hasPkce ? { code_verifier: verifier } : {}
    return tokens(client, { grant_type: 'authorization_code', code, redirect_uri: client.redirect, ...pkce })
  }

  /** The statuses of reading what belongs to Ada, to her team, and to the cluster. */
  async function access(headers: Readonly<Record<string, string>>): Promise<number[]> {
    const paths = ['/api/v1/namespaces/of-ada/pods', '/api/v1/namespaces/of-team/pods', '/api/v1/nodes']
    return Promise.all(paths.map(async (path) => (await ask(`${server.url}${path}`, { headers })).status))
  }
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  test.each([
    ['Headlamp', 'headlamp', { scope: 'openid profile email groups', hasSecret: false, hasPkce: true }],
    ['oauth2-proxy', 'kubernetes-dashboard', { scope: 'openid profile email groups', hasSecret: true, hasPkce: true }],
  ] as const)(
    'a client with the settings of %s logs in, and the API server allows what RBAC allows',
    async (_, id, more) => {
      const client = clientOf(id, more)
      const first = await logIn(client, 'ada')
      expect(decodeJwt(first.id_token)).toMatchObject({ iss: issuer, aud: id, sub: 'ada', groups: [team] })
      // The API server looks for the keys of a new issuer every ten seconds, and refuses its tokens before.
      const allowed = { timeout: 120_000, interval: 500 }
      await expect.poll(() => access(bearer(first.id_token)), allowed).toEqual([200, 200, 403])
      const next = await tokens(client, { grant_type: 'refresh_token', refresh_token: first.refresh_token })
      expect(await access(bearer(next.id_token))).toEqual([200, 200, 403])
      expect(await access(bearer((await logIn(client, 'eve')).id_token))).toEqual([403, 403, 403])
    },
  )

  test('what kube-oidc-proxy sends for a user is allowed and refused as for the user', async () => {
    const { oidc } = blockOf<{ oidc: Record<string, string> }>(guide, 'kube-oidc-proxy')
    expect(oidc['issuerUrl']).toBe(example)
    const name = 'kube-oidc-proxy'
    await server.client.must('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name } })
    await server.client.must('POST', `${rbac}/clusterrolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
    })
    const path = `/api/v1/namespaces/default/serviceaccounts/${name}/token`
    const { status } = await server.client.must<{ status: { token: string } }>('POST', path, { spec: {} })

    const jwks = createLocalJWKSet(JSON.parse((await ask(`${issuer}/certs`)).body) as JSONWebKeySet)
    /** As the proxy does: verifies the token by the issuer's keys, and acts for its user with its own token. */
    const forUserOf = async (token: string) => {
      const { payload } = await jwtVerify(token, jwks, { issuer, audience: oidc['clientId'] ?? '' })
      const [user, groups] = [payload[oidc['usernameClaim'] ?? ''], payload[oidc['groupsClaim'] ?? '']]
      const found: Record<string, string | string[]> = {
        ...bearer(status.token),
        'impersonate-user': String(user),
        'impersonate-group': [...[groups ?? []].flat().map(String), 'system:authenticated'],
      }
      return found as Record<string, string>
    }
    const kubectl = clientOf(oidc['clientId'] ?? '', { scope: 'openid groups', hasSecret: false, hasPkce: true })
    const [ada, eve] = [await logIn(kubectl, 'ada'), await logIn(kubectl, 'eve')]
    const asAda = async () => access(await forUserOf(ada.id_token))
    await expect.poll(asAda, { timeout: 60_000, interval: 250 }).toEqual([200, 200, 403])
    expect(await access(await forUserOf(eve.id_token))).toEqual([403, 403, 403])
    const reviewed = await ask(`${server.url}/apis/authentication.k8s.io/v1/selfsubjectreviews`, {
      method: 'POST',
      headers: { ...(await forUserOf(ada.id_token)), 'content-type': 'application/json' },
      body: JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }),
    })
    expect(JSON.parse(reviewed.body)).toMatchObject({
      status: { userInfo: { username: 'ada', groups: [team, 'system:authenticated'] } },
    })
    // A token for another program is none for the proxy, and without the rights it acts for nobody.
    const other = await logIn(clientOf('headlamp', { scope: 'openid', hasSecret: false, hasPkce: true }), 'ada')
    await expect(forUserOf(other.id_token)).rejects.toThrow('unexpected "aud" claim value')
    await server.client.must('DELETE', `${rbac}/clusterrolebindings/${name}`)
    await expect
      .poll(async () => access(await forUserOf((await logIn(kubectl, 'ada')).id_token)), { timeout: 60_000 })
      .toEqual([403, 403, 403])
  })
})
