import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { describedRequests } from '#testing/hostile/described-requests.ts'
import { PortalPerson, unlimitedQuickstart } from '#testing/stories/portal-story.ts'
import { siegeRequests, siegeSeed } from '#testing/stories/siege.ts'
import { podOf } from '#testing/sts/injector-fixture.ts'
import { SigningCluster } from '#testing/sts/signing-cluster.ts'
import {
  type Actor,
  actors,
  type FuzzedRequest,
  fuzzedRequests,
  portalSamples,
  type Sample,
  tokenServiceSamples,
  unknownId,
} from './fuzzed-requests.ts'
import { moreApis } from './more-apis.ts'

const isFull = siegeRequests > 0
const count = isFull ? siegeRequests : 1000
/** To two replicas, which cost more. */
const clustered = isFull ? siegeRequests : 300
/** The bound; longer if the story runs beside many others, possibly on a slow machine. */
const slowMillis = isFull ? 2000 : 8000
const atOnce = 2

const samplesBeyond: readonly Sample[] = [
  { method: 'GET', path: '/decide?token=a.b.c' },
  {
    method: 'POST',
    path: '/decide',
    type: 'application/x-www-form-urlencoded',
    body: { token: 'a.b.c', comment: 'x' },
  },
  { method: 'POST', path: '/password', type: 'application/json', body: { user: 'nobody' } },
  {
    method: 'PUT',
    path: '/ops/search',
    type: 'application/json',
    body: { base: 'People', toSearch: [{ name: 'uid', value: '*a*', picked: true }] },
  },
  {
    method: 'POST',
    path: '/ops/user',
    type: 'application/json',
    body: {
      dn: 'uid=ada,ou=people,o=Tremolo',
      reason: 'fuzzed',
      attributes: [{ name: 'displayName', values: ['Ada'] }],
    },
  },
]

describe('fuzzed requests to every operation', () => {
  test(
    `${count} cause no failure, and none blocks the gateway`,
    async () => {
      const config = fuzzedConfig()
      const gateway = await startGatewayProcess({ config })
      onTestFinished(async () => void (await gateway.stop()))
      await besiege([gateway], config, count)
    },
    isFull ? 3_600_000 : 600_000,
  )

  test.skipIf(postgresUrl() === '')(
    `${clustered} cause no failure in two replicas with two workers each`,
    async () => {
      const config = fuzzedConfig()
      const args = ['--database', await freshSchema(), '--workers', '2']
      const environment = { GATEHOUSE_SECRET_KEY: Buffer.alloc(32, 9).toString('base64') }
      const a = await startGatewayProcess({ config, args, environment })
      onTestFinished(async () => void (await a.stop()))
      // Both have one public address, as behind a load balancer.
      const b = await startGatewayProcess({ config, args, environment: { ...environment, GATEHOUSE_URL: a.url } })
      onTestFinished(async () => void (await b.stop()))
      const exits = async (): Promise<number[]> => {
        const pages = await Promise.all([a, b].map(async (one) => (await fetch(`${one.metricsUrl}/metrics`)).text()))
        return pages.map((page) => Number(/^gatehouse_worker_exits_total\S* (\d+)$/m.exec(page)?.[1]))
      }
      await besiege([a, b], config, clustered, async () => expect(await exits()).toEqual([0, 0]))
    },
    isFull ? 3_600_000 : 600_000,
  )
})

function fuzzedConfig(): string {
  const config = unlimitedQuickstart()
  onTestFinished(() => rmSync(config, { recursive: true, force: true }))
  writeFileSync(join(config, 'fuzzed.yaml'), moreApis)
  return config
}

/** Sends the requests to the replicas in turn, and stops them. */
async function besiege(
  replicas: readonly GatewayProcess[],
  config: string,
  total: number,
  atEnd: () => Promise<void> = async () => undefined,
): Promise<void> {
  console.log(`seed ${siegeSeed}`)
  const [first] = replicas
  if (first === undefined) throw new Error('no gateway')
  const headers = await credentials(first)
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
  onTestFinished(() => agent.destroy())
  const statuses = new Map<number, number>()
  const accepted = new Map<Actor, number>()
  const faults: string[] = []
  let slowest = { ms: 0, what: '' }
  const described = await describedRequests(config, unknownId)
  const samples = [...portalSamples, ...samplesBeyond, ...described]
  const requests = fuzzedRequests(total, siegeSeed, samples)
  const work = async (): Promise<void> => {
    for (const fuzzed of requests) {
      const what = `#${fuzzed.number} ${fuzzed.as} ${fuzzed.method} ${fuzzed.path.slice(0, 150)} ${String(fuzzed.body ?? '').slice(0, 300)}`
      const { url } = replicas[fuzzed.number % replicas.length] ?? first
      const started = performance.now()
      const answer = await send(url, agent, fuzzed, headers[fuzzed.as]).catch((error: Error) => error)
      const ms = Math.round(performance.now() - started)
      if (ms > slowest.ms) slowest = { ms, what }
      if (ms > slowMillis) faults.push(`${ms} ms: ${what}`)
      if (answer instanceof Error) faults.push(`${answer.message}: ${what}`)
      else {
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
        if (answer.status < 300) accepted.set(fuzzed.as, (accepted.get(fuzzed.as) ?? 0) + 1)
        if (answer.status >= 500 && !isSpecified(fuzzed, answer))
          faults.push(`${answer.status} ${answer.body}: ${what}`)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce * replicas.length }, work))
  console.log(
    `${total} requests from ${samples.length} samples, seed ${siegeSeed}: statuses`,
    Object.fromEntries([...statuses].sort()),
    'slowest',
    slowest,
  )
  console.log('accepted', Object.fromEntries(accepted))
  expect(faults.slice(0, 20)).toEqual([])
  // The requests must not all be rejected for the same reason.
  for (const status of [200, 400, 401, 403, 404]) expect(statuses.get(status) ?? 0).toBeGreaterThan(total / 500)
  // No actor may lose its login on the way.
  for (const actor of actors) expect(accepted.get(actor) ?? 0, actor).toBeGreaterThan(total / 500)
  await atEnd()
  for (const { url } of replicas) expect((await fetch(`${url}/check_alive`)).status).toBe(200)
  for (const gateway of replicas) expect(await gateway.stop()).toBe(0)
  const lines = replicas.flatMap((gateway) => gateway.output().split('\n'))
  // The only manager's own requests are incidents: no other user may decide them.
  const failures = lines.filter((line) => /"level":(?:50|"error")|Unhandled/.test(line) && !/"NO_APPROVERS"/.test(line))
  expect(failures.slice(0, 5)).toEqual([])
  // No rejected request has a stack in the log.
  const refused = lines.filter((line) => line.includes('"request refused"'))
  expect(refused.length).toBeGreaterThan(total / 10)
  expect(refused.filter((line) => line.includes('    at '))).toEqual([])
}

/**
 * The API server is a stand-in that signs and reviews tokens. The injector answers on the public listener here; the TLS
 * listener that `webhook` opens has the same handler.
 */
test(
  `${count} fuzzed requests to the token service and the admission webhook cause no failure`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-fuzzed-sts-'))
    const cluster = await SigningCluster.start()
    onTestFinished(async () => {
      await cluster.close()
      rmSync(folder, { recursive: true, force: true })
    })
    writeFileSync(join(folder, 'sts.yaml'), clusterTarget(cluster.api.url))
    writeFileSync(join(folder, 'values.yaml'), tokenService)
    const gateway = await startGatewayProcess({ config: folder })
    onTestFinished(async () => void (await gateway.stop()))
    const real = await cluster.token()
    const gone = await cluster.token()
    cluster.forget(gone)
    const [head = '', payload = '', signature = ''] = real.split('.')
    const claims = {
      ...JSON.parse(Buffer.from(payload, 'base64url').toString()),
      sub: 'system:serviceaccount:shop:root',
    }
    const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const forged = [`${head}.${encoded(claims)}.${signature}`, `${encoded({ alg: 'none' })}.${payload}.`, 'a.b.c']
    const pod = podOf()
    const samples = tokenServiceSamples('aws', [real, gone, ...forged], pod)
    const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
    onTestFinished(() => agent.destroy())
    const statuses = new Map<number, number>()
    const faults: string[] = []
    const issued = { real: 0, others: 0 }
    let patched = 0
    const requests = fuzzedRequests(count, siegeSeed, samples)
    const work = async (): Promise<void> => {
      for (const fuzzed of requests) {
        const what = `#${fuzzed.number} ${fuzzed.method} ${fuzzed.path.slice(0, 150)} ${String(fuzzed.body ?? '').slice(0, 300)}`
        const started = performance.now()
        const answer = await send(gateway.url, agent, fuzzed, {}).catch((error: Error) => error)
        const ms = Math.round(performance.now() - started)
        if (ms > slowMillis) faults.push(`${ms} ms: ${what}`)
        if (answer instanceof Error) {
          faults.push(`${answer.message}: ${what}`)
          continue
        }
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
        if (answer.status >= 500) faults.push(`${answer.status} ${answer.body}: ${what}`)
        if (answer.status === 200 && answer.body.includes('access_token')) {
          issued[String(fuzzed.body).includes(real) ? 'real' : 'others']++
        }
        if (answer.status === 200 && answer.body.includes('JSONPatch')) patched++
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
    console.log(
      `${count} requests, seed ${siegeSeed}: statuses`,
      Object.fromEntries([...statuses].sort()),
      issued,
      patched,
    )
    expect(faults.slice(0, 20)).toEqual([])
    // Only the real workload gets tokens, as often as the limits allow; pods get their sidecar.
    expect(issued.others).toBe(0)
    expect(issued.real).toBeGreaterThan(5)
    expect(patched).toBeGreaterThan(count / 200)
    expect((await fetch(`${gateway.url}/check_alive`)).status).toBe(200)
    expect(await gateway.stop()).toBe(0)
    const failures = gateway
      .output()
      .split('\n')
      .filter((line) => /"level":"error"|Unhandled/.test(line))
    expect(failures.slice(0, 5)).toEqual([])
  },
  isFull ? 3_600_000 : 600_000,
)

const clusterTarget = (url: string): string => `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: k8s }
spec:
  className: targets.Kubernetes
  params: { url: '${url}', token: reviewer }
`

const tokenService = `sts:
  injector: { tokenService: https://gatehouse.example.com }
  endpoints:
    - name: aws
      audience: https://aws.example.com
      path: /sts/aws
      azRules: [{ scope: filter, constraint: '(&(namespace=shop)(saname=cart))' }]
      issuer: { host: aws-issuer.example.com }
      injector: { label: aws-role, token_environment_variable_name: AWS_WEB_IDENTITY_TOKEN_FILE }
`

interface Answer {
  readonly status: number
  readonly body: string
}

/** Registration and profile answer 500 with the problems of the form; a target without the feature answers 501. */
function isSpecified({ path, method }: FuzzedRequest, { status, body }: Answer): boolean {
  if (status === 501) return true
  const isForm = /^\/+register\/submit/.test(path) || (/^\/+main\/user/.test(path) && method === 'PUT')
  return status === 500 && isForm && /^\{"errors":\[/.test(body) && !body.includes('"code"')
}

async function credentials(gateway: GatewayProcess): Promise<Record<Actor, Record<string, string>>> {
  const cookie = async (login: 'ada' | 'grace' | 'alan') => ({
    cookie: (await PortalPerson.logIn(gateway, login)).cookie,
  })
  const token = await gateway.token('--subject', 'idp', '--claim', 'role=crm', '--ttl', '86400')
  return {
    anonymous: {},
    user: await cookie('ada'),
    approver: await cookie('grace'),
    administrator: await cookie('alan'),
    'SCIM client': { authorization: `Bearer ${token}` },
  }
}

/** Not by `fetch`, which rejects methods and paths that hostile clients send. */
async function send(
  url: string,
  agent: Agent,
  { method, path, headers, body }: FuzzedRequest,
  own: Readonly<Record<string, string>>,
): Promise<Answer> {
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const sent = { ...headers, ...own, ...length }
  const { hostname, port } = new URL(url)
  const asked = request({ hostname, port, path, method, headers: sent, agent, signal: AbortSignal.timeout(60_000) })
  asked.end(body)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  return { status: response.statusCode ?? 0, body: (await text(response)).slice(0, 500) }
}
