import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { request as requestOverTls } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { SigningCluster } from '#testing/sts/signing-cluster.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-specification-'))
const keyPair = generateKeyPairSync('rsa', { modulusLength: 2048 })
let cluster: SigningCluster
let gateway: GatewayProcess

/** The path of an endpoint does not follow from its name. */
const pathOf = { cloud: '/sts/cloud', vault: '/tokens/of-vault', elsewhere: '/sts/elsewhere' }
type Endpoint = keyof typeof pathOf

/** With the fields of the specification, section 2.6, by its names. */
const values = `sts:
  injector: { tokenService: https://gatehouse.example.com }
  endpoints:
    - name: cloud
      audience: https://cloud.example.com
      path: /sts/cloud
      azRules:
        - { scope: filter, constraint: '(&(namespace=shop)(saname=cart)(cluster=k8s))' }
      issuer: { host: cloud-issuer.example.com, keypair: issuer-key }
      host_in_openunison: true
      injector:
        label: cloud-role
        token_environment_variable_name: CLOUD_TOKEN_FILE
        label_value_environment_variable_name: CLOUD_ROLE
      explicit_certificate_trust: true
    - name: vault
      audience: https://vault.example.com
      path: /tokens/of-vault
      azRules: [{ scope: filter, constraint: (namespace=shop) }]
      issuer: { host: vault-issuer.example.com, keypair: issuer-key }
      injector: { label: vault, token_environment_variable_name: VAULT_TOKEN_FILE }
    - name: elsewhere
      audience: https://elsewhere.example.com
      path: /sts/elsewhere
      azRules: [{ scope: filter, constraint: (cluster=other) }]
      issuer: { host: elsewhere-issuer.example.com, keypair: other-key }
      injector: { label: elsewhere, token_environment_variable_name: ELSEWHERE_TOKEN_FILE }
`

beforeAll(async () => {
  cluster = await SigningCluster.start()
  writeFileSync(
    join(folder, 'cluster.yaml'),
    `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: k8s }
spec: { className: targets.Kubernetes, params: { url: '${cluster.api.url}', token: reviewer } }
`,
  )
  writeFileSync(join(folder, 'values.yaml'), values)
  mkdirSync(join(folder, 'keys'), { mode: 0o700 })
  const pem = keyPair.privateKey.export({ type: 'pkcs8', format: 'pem' })
  writeFileSync(join(folder, 'keys', 'issuer-key.key'), pem, { mode: 0o600 })
  gateway = await startGatewayProcess({ config: folder })
}, 120_000)

afterAll(async () => {
  await gateway?.stop()
  await cluster?.close()
  rmSync(folder, { recursive: true, force: true })
})

const exchange = (endpoint: Endpoint, token: string): Promise<Response> =>
  fetch(`${gateway.url}${pathOf[endpoint]}/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    }),
  })

interface Documents {
  readonly discovery: Readonly<Record<string, unknown>>
  readonly keys: JSONWebKeySet
}

const documentsOf = async (endpoint: Endpoint): Promise<Documents> => {
  const response = await fetch(`${gateway.url}${pathOf[endpoint]}/issuer-docs`)
  expect(response.status).toBe(200)
  return (await response.json()) as Documents
}

/** What the issuer of the endpoint `cloud` serves on its own host, with or without TLS. */
const published = (path: string, from = gateway.url): Promise<unknown> => {
  const { protocol, hostname, port } = new URL(from)
  const get = protocol === 'https:' ? requestOverTls : request
  const headers = { host: 'cloud-issuer.example.com' }
  return new Promise((resolve, reject) =>
    get({ host: hostname, servername: '', port, path, headers, ca: testServerCertificate }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      response.on('end', () => resolve(JSON.parse(text)))
    })
      .on('error', reject)
      .end(),
  )
}

async function issued(endpoint: Endpoint): Promise<string> {
  const answer = await exchange(endpoint, await cluster.token())
  expect(answer.status).toBe(200)
  return ((await answer.json()) as { access_token: string }).access_token
}

describe('the token service of the specification', () => {
  test('an endpoint has a path, an audience, an issuer host and a key pair', async () => {
    const { discovery, keys } = await documentsOf('cloud')
    expect(discovery['issuer']).toBe('https://cloud-issuer.example.com')
    const { n } = createPublicKey(keyPair.privateKey).export({ format: 'jwk' })
    expect(keys.keys.map((key) => key.n)).toEqual([n])
    const { payload } = await jwtVerify(await issued('cloud'), createLocalJWKSet(keys), {
      issuer: 'https://cloud-issuer.example.com',
      audience: 'https://cloud.example.com',
    })
    expect(payload).toMatchObject({ cluster: 'k8s', namespace: 'shop', saname: 'cart' })
    expect((await documentsOf('elsewhere')).keys.keys.map((key) => key.n)).not.toContain(n)
  })

  test('an endpoint is at its path, and not at its name', async () => {
    expect((await exchange('vault', await cluster.token())).status).toBe(200)
    const byName = await fetch(`${gateway.url}/sts/vault/issuer-docs`)
    expect(byName.status).toBe(404)
  })

  test('only a valid bound token of a workload is exchanged', async () => {
    const [valid, deleted] = [await cluster.token(), await cluster.token()]
    cluster.forget(deleted)
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const tokens = [
      valid,
      await cluster.token({ key: privateKey }),
      await cluster.token({ seconds: -60 }),
      await cluster.token({ pod: null }),
      deleted,
      'not.a.token',
    ]
    const statuses = await Promise.all(tokens.map(async (token) => (await exchange('vault', token)).status))
    expect(statuses).toEqual([200, 400, 400, 400, 400, 400])
  })

  test('issuers of different hosts may share a key pair, and their tokens stay apart', async () => {
    const [cloud, vault] = [await documentsOf('cloud'), await documentsOf('vault')]
    expect(vault.keys.keys.map(({ n }) => n)).toEqual(cloud.keys.keys.map(({ n }) => n))
    const token = await issued('vault')
    await jwtVerify(token, createLocalJWKSet(vault.keys), { issuer: 'https://vault-issuer.example.com' })
    const asCloud = jwtVerify(token, createLocalJWKSet(cloud.keys), { issuer: 'https://cloud-issuer.example.com' })
    await expect(asCloud).rejects.toThrow(/iss/)
  })

  test('rules over namespace, saname and cluster decide who gets a token', async () => {
    const statuses = async (endpoint: Endpoint) =>
      Promise.all(
        [{}, { namespace: 'other' }, { account: 'other' }].map(
          async (account) => (await exchange(endpoint, await cluster.token(account))).status,
        ),
      )
    expect(await statuses('cloud')).toEqual([200, 403, 403])
    expect(await statuses('vault')).toEqual([200, 403, 200])
    expect(await statuses('elsewhere')).toEqual([403, 403, 403])
  })

  test('a bound token for another audience is rejected, and the answer names the required one', async () => {
    const answer = await exchange('cloud', await cluster.token({ audiences: ['vault'] }))
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({
      error_description: 'The subject token is for another audience; wanted: gatehouse-sts.',
    })
  })

  test('the discovery document has the fields of the specification', async () => {
    const { discovery } = await documentsOf('cloud')
    const issuer = 'https://cloud-issuer.example.com'
    expect(discovery).toMatchObject({
      issuer,
      authorization_endpoint: `${issuer}/auth`,
      token_endpoint: `${issuer}/token`,
      userinfo_endpoint: `${issuer}/userinfo`,
      revocation_endpoint: `${issuer}/revoke`,
      jwks_uri: `${issuer}/certs`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      scopes_supported: ['openid', 'email', 'profile'],
      token_endpoint_auth_methods_supported: ['client_secret_post'],
      claims_supported: expect.arrayContaining(['sub', 'aud', 'iss', 'exp', 'cluster', 'namespace', 'saname']),
      code_challenge_methods_supported: ['plain', 'S256'],
    })
  })

  test('the documents are published below the issuer', async () => {
    const { discovery, keys } = await documentsOf('cloud')
    expect(await published('/.well-known/openid-configuration')).toEqual(discovery)
    expect(await published('/certs')).toEqual(keys)
  })

  test('a remote service verifies a token with the published documents alone', async () => {
    const issuer = 'https://cloud-issuer.example.com'
    const secure = await startGatewayProcess({ config: folder, tls: true })
    onTestFinished(async () => void (await secure.stop()))
    expect(new URL(secure.url).protocol).toBe('https:')
    const discovery = await published('/.well-known/openid-configuration', secure.url)
    const { jwks_uri: keysAddress } = discovery as { jwks_uri: string }
    expect(new URL(keysAddress).origin).toBe(issuer)
    const keys = createLocalJWKSet((await published(new URL(keysAddress).pathname, secure.url)) as JSONWebKeySet)
    const expected = { issuer, audience: 'https://cloud.example.com' }
    const token = await issued('cloud')
    await jwtVerify(token, keys, expected)
    const [header, payload, signature] = token.split('.')
    const [forged] = (await issued('cloud')).split('.').slice(2)
    expect(forged).not.toBe(signature)
    await expect(jwtVerify(`${header}.${payload}.${forged}`, keys, expected)).rejects.toThrow(/signature/)
  })

  test('the injector gives labelled pods the variables, the annotation and the trusted certificates', async () => {
    const admit = async (name: string, label = name) => {
      const metadata = {
        name: 'app',
        labels: { [`tremolo.io/${label}`]: 'true' },
        annotations: { [`tremolo.io/${name}`]: 'the-role' },
      }
      const object = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata,
        spec: { containers: [{ name: 'app', image: 'app:1' }] },
      }
      const response = await fetch(`${gateway.url}/sts/inject`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          apiVersion: 'admission.k8s.io/v1',
          kind: 'AdmissionReview',
          request: {
            uid: 'u-1',
            operation: 'CREATE',
            kind: { group: '', version: 'v1', kind: 'Pod' },
            namespace: 'shop',
            object,
          },
        }),
      })
      const { response: review } = (await response.json()) as { response: { allowed: boolean; patch?: string } }
      expect(review.allowed).toBe(true)
      return Buffer.from(review.patch ?? '', 'base64').toString()
    }
    const cloud = await admit('cloud-role')
    const file = '/var/run/secrets/gatehouse/cloud/token'
    expect(cloud).toContain(`"name":"CLOUD_TOKEN_FILE","value":"${file}"`)
    // A sidecar writes the token of the endpoint there.
    expect(cloud).toMatch(/"name":"sts-creds-sidecar"/)
    expect(cloud).toContain(`https://gatehouse.example.com/sts/cloud/token ${file} `)
    expect(cloud).toContain('\\"https://cloud.example.com\\"')
    expect(cloud).toContain('"name":"CLOUD_ROLE","value":"the-role"')
    expect(cloud).toMatch(/"name":"ouca".*"ca\.crt"/)
    const vault = await admit('vault')
    expect(vault).toContain('VAULT_TOKEN_FILE')
    expect(vault).not.toContain('ouca')
    expect(vault).toContain('https://gatehouse.example.com/tokens/of-vault/token ')
    expect(await admit('other')).toBe('')
    expect(await admit('cloud-role', 'other')).toBe('')
  })
})
