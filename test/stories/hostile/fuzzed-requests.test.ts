import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PortalPerson, unlimitedQuickstart } from '#testing/stories/portal-story.ts'
import { siegeRequests, siegeSeed } from '#testing/stories/siege.ts'
import { podOf } from '#testing/sts/injector-fixture.ts'
import { SigningCluster } from '#testing/sts/signing-cluster.ts'
import { type Actor, actors, type FuzzedRequest, fuzzedRequests, tokenServiceSamples } from './fuzzed-requests.ts'

const isFull = siegeRequests > 0
const count = isFull ? siegeRequests : 1000
/** The bound; longer if the story runs beside many others, possibly on a slow machine. */
const slowMillis = isFull ? 2000 : 8000
const atOnce = 2

/** What the quickstart lacks: call-workflow for programs with any token, and the account pages. */
const more = `
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: call }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ['127.0.0.1', 'localhost']
      uri: /call
      authChain: api
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain: [{ className: filters.CallWorkflow, params: { allowedWorkflow: crm-sync } }]
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: account }
spec:
  cookieConfig: { sessionCookieName: portal, domain: '*', timeout: 900, secure: false, httpOnly: true, cookiesEnabled: true }
  urls:
    - hosts: ['127.0.0.1', 'localhost']
      uri: /account
      authChain: login
      azRules: [{ scope: dn, constraint: 'ou=people,o=Tremolo' }]
      filterChain: [{ className: filters.Account, params: { stepUpChain: login, enrolChain: login, homeURL: /portal } }]
`

test(
  `${count} fuzzed requests over all APIs cause no failure, and none blocks the gateway`,
  async () => {
    console.log(`seed ${siegeSeed}`)
    const config = unlimitedQuickstart()
    onTestFinished(() => rmSync(config, { recursive: true, force: true }))
    writeFileSync(join(config, 'fuzzed.yaml'), more)
    const gateway = await startGatewayProcess({ config })
    onTestFinished(async () => void (await gateway.stop()))
    const headers = await credentials(gateway)
    const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
    onTestFinished(() => agent.destroy())
    const statuses = new Map<number, number>()
    const accepted = new Map<Actor, number>()
    const faults: string[] = []
    let slowest = { ms: 0, what: '' }
    const requests = fuzzedRequests(count, siegeSeed)
    const work = async (): Promise<void> => {
      for (const fuzzed of requests) {
        const what = `#${fuzzed.number} ${fuzzed.as} ${fuzzed.method} ${fuzzed.path.slice(0, 150)} ${String(fuzzed.body ?? '').slice(0, 300)}`
        const started = performance.now()
        const answer = await send(gateway.url, agent, fuzzed, headers[fuzzed.as]).catch((error: Error) => error)
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
    await Promise.all(Array.from({ length: atOnce }, work))
    console.log(
      `${count} requests, seed ${siegeSeed}: statuses`,
      Object.fromEntries([...statuses].sort()),
      'slowest',
      slowest,
    )
    console.log('accepted', Object.fromEntries(accepted))
    expect(faults.slice(0, 20)).toEqual([])
    // The requests must not all be rejected for the same reason.
    for (const status of [200, 400, 401, 403, 404]) expect(statuses.get(status) ?? 0).toBeGreaterThan(count / 500)
    // No actor may lose its login on the way.
    for (const actor of actors) expect(accepted.get(actor) ?? 0, actor).toBeGreaterThan(count / 500)
    expect((await fetch(`${gateway.url}/check_alive`)).status).toBe(200)
    expect(await gateway.stop()).toBe(0)
    // The only manager's own requests are incidents: no other user may decide them.
    const failures = gateway
      .output()
      .split('\n')
      .filter((line) => /"level":50|Unhandled/.test(line) && !/"NO_APPROVERS"/.test(line))
    expect(failures.slice(0, 5)).toEqual([])
    // No rejected request has a stack in the log.
    const refused = gateway
      .output()
      .split('\n')
      .filter((line) => line.includes('"request refused"'))
    expect(refused.length).toBeGreaterThan(count / 10)
    expect(refused.filter((line) => line.includes('    at '))).toEqual([])
  },
  isFull ? 3_600_000 : 600_000,
)

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
      .filter((line) => /"level":50|Unhandled/.test(line))
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
