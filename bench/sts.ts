import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { startBare } from './bare-process.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { runLoad } from './load.ts'
import { type BenchCluster, startBenchCluster } from './sts-cluster.ts'

export interface StsFigures {
  /**
   * Exchanges per second with a warm review, and as a share of bare RSA-2048 signing on all cores; and the share of a
   * bare signature in the CPU time of an exchange, which a busy machine changes less.
   */
  readonly exchanges: { readonly perSecond: number; readonly share: number; readonly cpuShare: number }
  readonly bareSigning: number
  /** The share of a bare Fastify route that only signs. */
  readonly signingRoute: number
  /** At 167 per second: 100,000 pods that call every 600 s. */
  readonly steady: { readonly p50: number; readonly p99: number }
  /** Pods that all call at once after a restart, with cold reviews. */
  readonly burst: { readonly pods: number; readonly seconds: number; readonly p99: number; readonly reviews: number }
  readonly residentMegabytes: number
}

/** Enough that the signing threads have work while the audit is written. */
const connections = 64
const turns = 5
const turnSeconds = 2
const warmPods = 200
/** Until then the JavaScript engine still compiles. */
const warmExchanges = 15_000
const steadyRate = 167
const steadySeconds = 6
const burstPods = 10_000
const burstConnections = 500

export async function measureSts(folder: string): Promise<StsFigures> {
  const cluster = await startBenchCluster()
  const config = writeStsConfiguration(join(folder, 'sts'), cluster)
  const gateway = await startMeasured(config, join(folder, 'sts-data'))
  try {
    const exchanges = await measureExchanges(gateway, cluster)
    const steady = await measureSteady(gateway, cluster)
    const burst = await measureBurst(gateway, cluster)
    return { ...exchanges, steady, burst, residentMegabytes: gateway.residentMegabytes() }
  } finally {
    await gateway.stop()
    await cluster.close()
  }
}

async function measureExchanges(
  gateway: MeasuredGateway,
  cluster: BenchCluster,
): Promise<Pick<StsFigures, 'exchanges' | 'bareSigning' | 'signingRoute'>> {
  const requests = Array.from({ length: warmPods }, () => exchangeOf(gateway.port, cluster.token()))
  let sent = 0
  const request = (): string => requests[sent++ % warmPods] ?? ''
  const load = { port: gateway.port, connections, request, expectedStatus: 200 }
  const route = await startBare('bench/signing-route.ts')
  await runLoad({ ...load, seconds: 30, until: () => sent >= warmExchanges })
  await runLoad({ ...load, port: route.port, seconds: turnSeconds })
  const bare: number[] = []
  const rates: number[] = []
  const shares: number[] = []
  const routeShares: number[] = []
  const cpuShares: number[] = []
  for (let turn = 0; turn < turns; turn++) {
    const limit = bareSigning()
    const [cpu, before] = [gateway.cpuSeconds(), sent]
    const { perSecond } = await runLoad({ ...load, seconds: turnSeconds })
    bare.push(limit.perSecond)
    rates.push(perSecond)
    shares.push(perSecond / limit.perSecond)
    cpuShares.push(limit.cpuMicros / (((gateway.cpuSeconds() - cpu) * 1_000_000) / (sent - before)))
    routeShares.push((await runLoad({ ...load, port: route.port, seconds: turnSeconds })).perSecond / limit.perSecond)
  }
  route.stop()
  const exchanges = { perSecond: median(rates), share: median(shares), cpuShare: median(cpuShares) }
  return { exchanges, bareSigning: median(bare), signingRoute: median(routeShares) }
}

const bareSigning = (): { perSecond: number; cpuMicros: number } =>
  JSON.parse(execFileSync(process.execPath, ['bench/bare-signing.ts', String(turnSeconds)], { encoding: 'utf8' }))

/** Calls are sent when they are due, whether or not earlier ones were answered. */
async function measureSteady(gateway: MeasuredGateway, cluster: BenchCluster): Promise<StsFigures['steady']> {
  const requests = Array.from({ length: steadyRate * 2 }, () => exchangeOf(gateway.port, cluster.token()))
  const times: number[] = []
  const under: Promise<void>[] = []
  const started = performance.now()
  for (let n = 0; n < steadyRate * steadySeconds; n++) {
    const due = started + (n * 1000) / steadyRate
    const pause = due - performance.now()
    if (pause > 1) await delay(pause)
    const request = requests[n % requests.length] ?? ''
    under.push(once(gateway.port, request).then((ms) => void times.push(ms)))
  }
  await Promise.all(under)
  return { p50: at(times, 0.5), p99: at(times, 0.99) }
}

async function measureBurst(gateway: MeasuredGateway, cluster: BenchCluster): Promise<StsFigures['burst']> {
  const requests = Array.from({ length: burstPods }, () => exchangeOf(gateway.port, cluster.token()))
  const before = cluster.reviews()
  let sent = 0
  const started = performance.now()
  const { p99 } = await runLoad({
    port: gateway.port,
    connections: burstConnections,
    expectedStatus: 200,
    seconds: 600,
    request: () => requests[sent++] ?? '',
    until: () => sent >= burstPods,
  })
  return { pods: burstPods, seconds: (performance.now() - started) / 1000, p99, reviews: cluster.reviews() - before }
}

/** One call over its own connection. */
async function once(port: number, request: string): Promise<number> {
  let sent = 0
  const { p50 } = await runLoad({
    port,
    connections: 1,
    expectedStatus: 200,
    seconds: 30,
    request: () => {
      sent++
      return request
    },
    until: () => sent > 0,
  })
  return p50
}

function exchangeOf(port: number, token: string): string {
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  }).toString()
  return `POST /sts/cloud/token HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: application/jwt\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

const at = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
const median = (values: readonly number[]): number => at(values, 0.5)

function writeStsConfiguration(folder: string, cluster: BenchCluster): string {
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'cluster.yaml'),
    `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: {name: k8s}
spec: {className: targets.Kubernetes, params: {url: '${cluster.url}', token: reviewer}}
`,
  )
  writeFileSync(
    join(folder, 'values.yaml'),
    `sts:
  endpoints:
    - name: cloud
      audience: https://cloud.example.com
      path: /sts/cloud
      azRules: [{scope: filter, constraint: '(&(namespace=shop)(saname=cart))'}]
      issuer: {host: issuer.example.com}
      rateLimit: {burst: 1000, perMinute: 60000}
`,
  )
  return folder
}
