import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StsCredentials } from 'google-auth-library/build/src/auth/stscredentials.js'
import { createRemoteJWKSet, customFetch as joseFetch, jwtVerify } from 'jose'
import {
  allowInsecureRequests,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  type CustomFetch,
  customFetch,
  discovery,
  genericGrantRequest,
  None,
  ResponseBodyError,
} from 'openid-client'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { SigningCluster } from '#testing/sts/signing-cluster.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-exchange-'))
const issuer = 'https://issuer.example.com/hosted'
const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const subject_token_type = 'urn:ietf:params:oauth:token-type:jwt'
let cluster: SigningCluster
let gateway: GatewayProcess

beforeAll(async () => {
  cluster = await SigningCluster.start()
  const spec = { className: 'targets.Kubernetes', params: { url: cluster.api.url, token: 'reviewer' } }
  const target = { apiVersion: 'openunison.tremolo.io/v1', kind: 'Target', metadata: { name: 'k8s' }, spec }
  writeFileSync(join(folder, 'cluster.yaml'), JSON.stringify(target))
  const endpoint = {
    name: 'hosted',
    audience: 'https://api.example.com',
    path: '/sts/hosted',
    azRules: [{ scope: 'filter', constraint: '(&(namespace=shop)(saname=cart))' }],
    issuer: { host: 'issuer.example.com', path: '/hosted' },
    host_in_openunison: true,
    rateLimit: { burst: 3, perMinute: 1 },
  }
  writeFileSync(join(folder, 'values.yaml'), JSON.stringify({ sts: { endpoints: [endpoint] } }))
  gateway = await startGatewayProcess({ config: folder })
})

afterAll(async () => {
  await gateway?.stop()
  await cluster?.close()
  rmSync(folder, { recursive: true, force: true })
})

/** The network between client and gateway: the issuer's host resolves to the gateway, and TLS ends before it. */
const network = (
  url: string | URL,
  options: { method?: string; headers?: ConstructorParameters<typeof Headers>[0]; body?: unknown },
) =>
  new Promise<Response>((resolve, reject) => {
    const { host, pathname, search } = new URL(url)
    const { hostname, port } = new URL(gateway.url)
    const headers = { ...Object.fromEntries(new Headers(options.headers)), host }
    const sent = request(
      { host: hostname, port, path: `${pathname}${search}`, method: options.method ?? 'GET', headers },
      (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
        answer.on('end', () => {
          const got = new Headers()
          for (const [name, value] of Object.entries(answer.headers)) got.set(name, String(value))
          resolve(new Response(Buffer.concat(chunks), { status: answer.statusCode ?? 0, headers: got }))
        })
      },
    )
    sent.on('error', reject).end(options.body === undefined || options.body === null ? undefined : String(options.body))
  })
const throughNetwork: CustomFetch = (url, options) => network(url, options)

const clientAuthentications = {
  'no client authentication': None(),
  'a client secret in the form': ClientSecretPost('whatever'),
  'a client secret in the header': ClientSecretBasic('whatever'),
}

describe('openid-client', () => {
  for (const [how, authentication] of Object.entries(clientAuthentications)) {
    it(`discovers the issuer and exchanges a token with ${how}`, async () => {
      const options = { [customFetch]: throughNetwork }
      const config = await discovery(new URL(issuer), 'any-client-id', undefined, authentication, options)
      const subject_token = await cluster.token()
      const answer = await genericGrantRequest(config, grant, {
        subject_token,
        subject_token_type,
        audience: 'https://api.example.com',
      })
      expect(answer).toMatchObject({ token_type: 'n_a', issued_token_type: subject_token_type, expires_in: 900 })
      const keys = createRemoteJWKSet(new URL(config.serverMetadata().jwks_uri ?? ''), { [joseFetch]: network })
      const { payload } = await jwtVerify(answer.access_token, keys, { issuer, audience: 'https://api.example.com' })
      expect(payload.sub).toBe('k8s:shop:cart')
    })
  }

  it('gets an access token on request', async () => {
    const config = await discovery(new URL(issuer), 'any-client-id', undefined, None(), {
      [customFetch]: throughNetwork,
    })
    const requested_token_type = 'urn:ietf:params:oauth:token-type:access_token'
    const parameters = { subject_token: await cluster.token(), subject_token_type, requested_token_type }
    const answer = await genericGrantRequest(config, grant, parameters)
    expect(answer).toMatchObject({ token_type: 'bearer', issued_token_type: requested_token_type })
  })

  it('gets registered errors with the reason', async () => {
    const config = new Configuration(
      { issuer, token_endpoint: `${gateway.url}/sts/hosted/token` },
      'any-client-id',
      undefined,
      None(),
    )
    config[customFetch] = throughNetwork
    allowInsecureRequests(config)
    const refusal = async (subject_token: string, more: Record<string, string> = {}): Promise<unknown[]> => {
      const parameters = { subject_token, subject_token_type, ...more }
      const error = await genericGrantRequest(config, grant, parameters).catch((thrown: unknown) => thrown)
      if (!(error instanceof ResponseBodyError)) throw error
      return [error.status, error.error, error.error_description]
    }
    const expired = await cluster.token({ seconds: -60, audiences: ['elsewhere'] })
    expect(await refusal(expired)).toEqual([400, 'invalid_request', 'The subject token is expired.'])
    expect(await refusal(await cluster.token({ audiences: ['elsewhere'] }))).toEqual([
      400,
      'invalid_request',
      'The subject token is for another audience; wanted: gatehouse-sts.',
    ])
    expect((await refusal(await cluster.token({ account: 'other' }))).slice(0, 2)).toEqual([403, 'access_denied'])
    expect((await refusal(await cluster.token(), { audience: 'https://x.example.com' }))[1]).toBe('invalid_target')
    const pod = { name: 'busy-0', uid: 'busy' }
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push(await refusal(await cluster.token({ pod })).catch(() => 'issued'))
    expect(statuses.slice(0, 3)).toEqual(['issued', 'issued', 'issued'])
    expect(statuses[3]).toEqual([429, 'slow_down', 'This workload asks for too many tokens.'])
  })
})

describe('google-auth-library', () => {
  it('exchanges a token with its own client', async () => {
    const client = new StsCredentials({
      tokenExchangeEndpoint: `${gateway.url}/sts/hosted/token`,
      clientAuthentication: { confidentialClientType: 'basic', clientId: 'any', clientSecret: 'whatever' },
    })
    const answer = await client.exchangeToken({
      grantType: grant,
      subjectToken: await cluster.token(),
      subjectTokenType: subject_token_type,
      requestedTokenType: 'urn:ietf:params:oauth:token-type:access_token',
      audience: 'https://api.example.com',
    })
    expect(answer).toMatchObject({ token_type: 'Bearer', expires_in: 900, access_token: expect.any(String) })
  })
})

describe('the log of token exchange', () => {
  it('names the workload, and contains no part of a token', async () => {
    const token = await cluster.token({ pod: { name: 'cart-7', uid: 'uid-7' } })
    const form = new URLSearchParams({ grant_type: grant, subject_token: token, subject_token_type })
    const { status } = await fetch(`${gateway.url}/sts/hosted/token`, { method: 'POST', body: form })
    expect(status).toBe(200)
    await fetch(`${gateway.url}/sts/hosted/token/${token}`, { method: 'POST', body: form })
    const entries = (): Record<string, unknown>[] =>
      gateway
        .output()
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    const workload = { cluster: 'k8s', namespace: 'shop', serviceAccount: 'cart', pod: 'cart-7', podUid: 'uid-7' }
    const seen = { msg: 'request', subject: 'system:serviceaccount:shop:cart', endpoint: 'hosted', workload }
    await vi.waitFor(() => expect(entries()).toContainEqual(expect.objectContaining(seen)), { timeout: 20_000 })
    await vi.waitFor(() => expect(entries().at(-1)).toMatchObject({ status: 404 }), { timeout: 20_000 })
    expect(gateway.output()).not.toContain('eyJ')
    expect(gateway.output()).not.toContain(token.slice(-40))
  })
})
