import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditCommand } from '#cli/commands/audit.ts'
import { stsCommand } from '#cli/commands/sts.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { SigningCluster } from '#testing/sts/signing-cluster.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sts-'))
let cluster: SigningCluster
let gateway: GatewayProcess

beforeAll(async () => {
  cluster = await SigningCluster.start()
  writeFileSync(
    join(folder, 'cluster.yaml'),
    `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: k8s }
spec:
  className: targets.Kubernetes
  params: { url: '${cluster.api.url}', token: reviewer }
`,
  )
  const endpoint = (name: string, more: string): string => `
    - name: ${name}
      audience: https://${name}.example.com
      path: /sts/${name}
      azRules: [{ scope: filter, constraint: '(&(namespace=shop)(saname=cart))' }]
      issuer: { host: ${name}-issuer.example.com }
      ${more}`
  writeFileSync(
    join(folder, 'values.yaml'),
    `sts:
  endpoints:${endpoint('aws', 'preset: aws')}${endpoint(
    'hosted',
    'host_in_openunison: true\n      algorithm: ES256\n      acceptApiServerAudience: true',
  )}
`,
  )
  gateway = await startGatewayProcess({ config: folder })
})

afterAll(async () => {
  await gateway?.stop()
  await cluster?.close()
  rmSync(folder, { recursive: true, force: true })
})

const exchange = (endpoint: string, token: string, accept = '*/*'): Promise<Response> =>
  fetch(`${gateway.url}/sts/${endpoint}/token`, {
    method: 'POST',
    headers: { accept },
    body: new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    }),
  })

const documents = async (endpoint: string) =>
  (await (await fetch(`${gateway.url}/sts/${endpoint}/issuer-docs`)).json()) as {
    discovery: { issuer: string; jwks_uri: string }
    keys: JSONWebKeySet
  }

/** The audit as an operator reads it. */
async function auditOf(target: string): Promise<{ readonly action: string }[]> {
  const lines: string[] = []
  const io = { stdout: (line: string) => void lines.push(line), stderr: (line: string) => void lines.push(line) }
  await auditCommand(['tail', '--output', 'json', '--data', gateway.dataFolder, '--target', target], io)
  const rows = JSON.parse(lines.join('\n')) as { action: string; kind: string }[]
  return rows.filter(({ kind }) => kind === 'token')
}

describe('the token service', () => {
  it('gives a pod a token that its published keys verify', async () => {
    const answer = await exchange('aws', await cluster.token(), 'application/jwt')
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('refresh-after')]).toEqual([
      200,
      'application/jwt',
      '600',
    ])
    const { discovery, keys } = await documents('aws')
    const { payload } = await jwtVerify(await answer.text(), createLocalJWKSet(keys), {
      issuer: discovery.issuer,
      audience: 'https://aws.example.com',
    })
    expect(payload).toMatchObject({ sub: 'k8s:shop:cart', iss: 'https://aws-issuer.example.com' })
  })

  it('C5, C9: gives each endpoint its own key', async () => {
    const kids = (await Promise.all(['aws', 'hosted'].map(documents))).map(({ keys }) =>
      keys.keys.map(({ kid }) => kid),
    )
    expect(new Set(kids.flat()).size).toBe(kids.flat().length)
  })

  it('serves the documents on the issuer’s own host, and nothing else there (C10)', async () => {
    const { hostname, port } = new URL(gateway.url)
    const { request } = await import('node:http')
    const get = (path: string) =>
      new Promise<number | undefined>((resolve, reject) =>
        request({ host: hostname, port, path, headers: { host: 'hosted-issuer.example.com' } }, (response) => {
          response.resume()
          resolve(response.statusCode)
        })
          .on('error', reject)
          .end(),
      )
    const statuses = await Promise.all(['/.well-known/openid-configuration', '/certs', '/certs/x', '/auth'].map(get))
    expect(statuses).toEqual([200, 200, 404, 404])
  })

  it('accepts the API server’s audience only at the configured endpoint', async () => {
    const issuer = 'https://kubernetes.default.svc.cluster.local'
    const token = await cluster.token({ audiences: [issuer, 'https://kubernetes.default.svc'] })
    const headers = { authorization: `Bearer ${token}` }
    const closed = await fetch(`${gateway.url}/sts/aws/token/user`, { headers })
    const old = await fetch(`${gateway.url}/sts/hosted/token/user`, { headers })
    const { token: given } = (await old.json()) as { token: { jwt: string } }
    expect([old.status, decodeJwt(given.jwt).aud, closed.status]).toEqual([200, 'https://hosted.example.com', 400])
  })

  it('rejects others with a typed error, and has a row for every decision', async () => {
    const codes = []
    for (const token of [await cluster.token({ account: 'other' }), await cluster.token({ audiences: ['x'] }), 'x']) {
      const answer = await exchange('aws', token)
      codes.push([answer.status, ((await answer.json()) as { error: string }).error])
    }
    expect(codes).toEqual([
      [403, 'access_denied'],
      [400, 'invalid_request'],
      [400, 'invalid_request'],
    ])
    const gone = await cluster.token()
    cluster.forget(gone)
    expect((await exchange('aws', gone)).status).toBe(400)
    const rows = await auditOf('aws')
    const actions = rows.map(({ action }) => action)
    expect([actions.filter((action) => action === 'issue').length, actions.slice(-4)]).toEqual([
      1,
      ['refuse', 'refuse', 'refuse', 'refuse'],
    ])
    expect(JSON.stringify(rows)).not.toContain(gone.slice(0, 30))
  })
})

describe('gatehouse sts explain', () => {
  const explain = async (...args: string[]) => {
    const out: string[] = []
    const io = { stdout: (line: string) => void out.push(line), stderr: (line: string) => void out.push(line) }
    return { code: await stsCommand(['explain', '--config', folder, ...args], io), text: out.join('\n') }
  }

  it('shows why a described workload would get a token, and its claims', async () => {
    const { code, text } = await explain('--as', 'namespace=shop', '--as', 'saname=cart', 'aws')
    expect(code).toBe(0)
    expect(text).toMatch(/^rule +pass +filter \(&\(namespace=shop\)\(saname=cart\)\)/m)
    expect(text).toMatch(/^decision +issued for 900 s with RS256$/m)
    expect(text).toMatch(/sub: "k8s:shop:cart"/)
  })

  it('shows why it would not', async () => {
    const { code, text } = await explain('--as', 'namespace=shop', '--as', 'saname=other', 'aws')
    expect([code, /^decision +refused: 403 access_denied$/m.test(text)]).toEqual([1, true])
  })

  it('verifies and reviews a given token, and never prints it', async () => {
    const token = await cluster.token({ audiences: ['elsewhere'] })
    const file = join(folder, 'token')
    writeFileSync(file, token)
    const refused = await explain('--token', file, 'aws')
    expect(refused.text).toMatch(/^token +the subject token is for another audience$/m)
    writeFileSync(file, `${await cluster.token()}\n`)
    const accepted = await explain('--token', file, 'aws')
    expect([accepted.code, /^token +accepted$/m.test(accepted.text)]).toEqual([0, true])
    expect(`${refused.text}${accepted.text}`).not.toContain(token)
    rmSync(file)
  })

  it('exits 2 for an unknown endpoint', async () => {
    expect(await explain('--as', 'namespace=a', '--as', 'saname=b', 'awz')).toEqual({
      code: 2,
      text: `gatehouse sts explain: no token endpoint "awz" (did you mean "aws"?); the endpoints are aws, hosted
Run "gatehouse sts explain --help" for usage.`,
    })
  })
})
