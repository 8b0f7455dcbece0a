import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { startBare } from './bare-process.ts'
import { drive, warm } from './drive.ts'
import { quick, secondsOf, turnsOf } from './effort.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { runLoad } from './load.ts'
import { median, percentile } from './median.ts'
import { type Cost, medianCost } from './paired.ts'
import { megabytesOf } from './process-figures.ts'
import { type BenchCluster, startBenchCluster } from './sts-cluster.ts'

/** The signature algorithms, each with an endpoint of its name in lower case. */
const algorithms = ['RS256', 'ES256', 'EdDSA'] as const
export type Algorithm = (typeof algorithms)[number]

export interface ExchangeFigures extends Cost {
  readonly algorithm: Algorithm
  /** A bare Fastify route that only signs, in turns with the exchanges. */
  readonly bare: Cost
  readonly share: number
}

export interface StsFigures {
  /** Exchanges with a warm review. */
  readonly exchanges: readonly ExchangeFigures[]
  /** RSA-2048 signatures a second on all cores, and the share of one in the CPU time of an exchange. */
  readonly bareSigning: { readonly perSecond: number; readonly cpuShare: number }
  /** At 167 per second: 100,000 pods that call every 600 s. */
  readonly steady: { readonly p50: number; readonly p99: number }
  /** Pods that all call at once after a restart, with cold reviews. */
  readonly burst: { readonly pods: number; readonly seconds: number; readonly p99: number; readonly reviews: number }
  /** After the burst, and the most of all measurements. */
  readonly residentMegabytes: number
  readonly peakMegabytes: number
}

/** Enough that the signing threads have work while the audit is written. */
const connections = 64
const turns = turnsOf(5)
const turnSeconds = secondsOf(2)
const warmPods = 200
/** Until then the JavaScript engine still compiles. */
const warmExchanges = quick ? 500 : 15_000
const steadyRate = 167
const steadySeconds = secondsOf(6)
const burstPods = quick ? 500 : 10_000
const burstConnections = 500

export async function measureSts(folder: string): Promise<StsFigures> {
  const cluster = await startBenchCluster()
  const config = writeStsConfiguration(join(folder, 'sts'), cluster)
  const gateway = await startMeasured(config, join(folder, 'sts-data'))
  try {
    const exchanges = await measureExchanges(gateway, cluster)
    const steady = await measureSteady(gateway, cluster)
    const burst = await measureBurst(gateway, cluster)
    const peakMegabytes = megabytesOf(gateway.pid, 'VmHWM')
    return { ...exchanges, steady, burst, residentMegabytes: gateway.residentMegabytes(), peakMegabytes }
  } finally {
    await gateway.stop()
    await cluster.close()
  }
}

async function measureExchanges(
  gateway: MeasuredGateway,
  cluster: BenchCluster,
): Promise<Pick<StsFigures, 'exchanges' | 'bareSigning'>> {
  const tokens = Array.from({ length: warmPods }, () => cluster.token())
  const route = await startBare('bench/signing-route.ts')
  try {
    const exchanges: ExchangeFigures[] = []
    const limits: number[] = []
    const cpuShares: number[] = []
    for (const algorithm of algorithms) {
      const requests = tokens.map((token) => exchangeOf(gateway.port, token, algorithm))
      const request = (n: number): string => requests[n % warmPods] ?? ''
      const load = { connections, request, expectedStatus: 200, seconds: turnSeconds }
      let warmed = 0
      await runLoad({ ...load, port: gateway.port, seconds: 30, until: () => warmed++ >= warmExchanges })
      await warm(route, load)
      const costs: Cost[] = []
      const bare: Cost[] = []
      const shares: number[] = []
      for (let turn = 0; turn < turns; turn++) {
        const one = await drive(gateway, load)
        const limit = await drive(route, load)
        costs.push(one)
        bare.push(limit)
        shares.push(one.perSecond / limit.perSecond)
        if (algorithm !== 'RS256') continue
        const signing = bareSigning()
        limits.push(signing.perSecond)
        cpuShares.push(signing.cpuMicros / one.cpuMicros)
      }
      exchanges.push({ algorithm, ...medianCost(costs), bare: medianCost(bare), share: median(shares) })
    }
    return { exchanges, bareSigning: { perSecond: median(limits), cpuShare: median(cpuShares) } }
  } finally {
    route.stop()
  }
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
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) }
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

export function exchangeOf(port: number, token: string, algorithm: Algorithm = 'RS256'): string {
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  }).toString()
  return `POST /sts/${algorithm.toLowerCase()}/token HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: application/jwt\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

export function writeStsConfiguration(folder: string, cluster: BenchCluster): string {
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'cluster.yaml'),
    `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: {name: k8s}
spec: {className: targets.Kubernetes, params: {url: '${cluster.url}', token: reviewer}}
`,
  )
  const endpoints = algorithms.map((algorithm) => stsEndpoint(algorithm.toLowerCase(), algorithm))
  writeFileSync(join(folder, 'values.yaml'), JSON.stringify({ sts: { endpoints } }))
  return folder
}

/** A token endpoint for the pods of the cluster, without a limit that a measurement reaches. */
export const stsEndpoint = (name: string, algorithm: Algorithm): object => ({
  name,
  algorithm,
  audience: 'https://cloud.example.com',
  path: `/sts/${name}`,
  azRules: [{ scope: 'filter', constraint: '(&(namespace=shop)(saname=cart))' }],
  issuer: { host: `${name}.example.com` },
  rateLimit: { burst: 1000, perMinute: 60_000 },
})
