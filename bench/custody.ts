import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openBaoBinary, startOpenBao } from '#testing/sts/openbao.ts'
import { type Driven, drive } from './drive.ts'
import { secondsOf, turnsOf } from './effort.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { median } from './median.ts'
import { type Cost, medianCost } from './paired.ts'
import { type BenchCluster, startBenchCluster } from './sts-cluster.ts'

export interface CustodyFigures extends Cost {
  readonly algorithm: string
  /** Of exchanges with a local key in the same run. */
  readonly share: number
  /** One call at a time, in milliseconds. */
  readonly alone: { readonly local: number; readonly transit: number }
}

const algorithms = ['RS256', 'ES256'] as const
const connections = 64
const turns = turnsOf(3)
const turnSeconds = secondsOf(2)
const warmPods = 100

/** Undefined without a server. It shares the machine with the gateway, unlike in production. */
export async function measureCustody(folder: string): Promise<readonly CustodyFigures[] | undefined> {
  const binary = await openBaoBinary().catch(() => undefined)
  if (binary === undefined) return undefined
  const cluster = await startBenchCluster()
  const bao = await startOpenBao({ tls: true })
  try {
    await bao.call('POST', 'sys/mounts/transit', { type: 'transit' })
    const config = writeCustodyConfiguration(join(folder, 'custody'), cluster, bao)
    const gateway = await startMeasured(config, join(folder, 'custody-data'))
    try {
      const figures: CustodyFigures[] = []
      for (const algorithm of algorithms) figures.push(await measure(gateway, cluster, algorithm))
      return figures
    } finally {
      await gateway.stop()
    }
  } finally {
    await bao.stop()
    await cluster.close()
  }
}

async function measure(gateway: MeasuredGateway, cluster: BenchCluster, algorithm: string): Promise<CustodyFigures> {
  const { port } = gateway
  const tokens = Array.from({ length: warmPods }, () => cluster.token())
  const load = (place: string, seconds: number, at = connections) => {
    const requests = tokens.map((token) => exchangeOf(port, `${place}-${algorithm.toLowerCase()}`, token))
    const request = (n: number): string => requests[n % warmPods] ?? ''
    return drive(gateway, { connections: at, seconds, expectedStatus: 200, request })
  }
  for (const place of ['local', 'transit']) await load(place, turnSeconds)
  const costs: Driven[] = []
  const shares: number[] = []
  for (let turn = 0; turn < turns; turn++) {
    const [local, transit] = [await load('local', turnSeconds), await load('transit', turnSeconds)]
    costs.push(transit)
    shares.push(transit.perSecond / local.perSecond)
  }
  const alone = {
    local: (await load('local', turnSeconds, 1)).p50,
    transit: (await load('transit', turnSeconds, 1)).p50,
  }
  return { algorithm, ...medianCost(costs), share: median(shares), alone }
}

function exchangeOf(port: number, endpoint: string, token: string): string {
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  }).toString()
  return `POST /sts/${endpoint}/token HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: application/jwt\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

function writeCustodyConfiguration(
  folder: string,
  cluster: BenchCluster,
  bao: { readonly address: string; readonly ca: string; readonly rootToken: string },
): string {
  mkdirSync(join(folder, 'secrets', 'bao'), { recursive: true })
  writeFileSync(join(folder, 'secrets', 'bao', 'token'), bao.rootToken)
  const params = { url: cluster.url, token: 'reviewer' }
  const spec = { className: 'targets.Kubernetes', params }
  const target = { apiVersion: 'openunison.tremolo.io/v1', kind: 'Target', metadata: { name: 'k8s' }, spec }
  writeFileSync(join(folder, 'cluster.yaml'), JSON.stringify(target))
  const token = { secretName: 'bao', secretKey: 'token' }
  const endpoints = algorithms.flatMap((algorithm) =>
    ['local', 'transit'].map((place) => {
      const name = `${place}-${algorithm.toLowerCase()}`
      const custody = { type: 'transit', address: bao.address, ca: bao.ca, token }
      return {
        name,
        algorithm,
        audience: 'https://cloud.example.com',
        path: `/sts/${name}`,
        azRules: [{ scope: 'filter', constraint: '(&(namespace=shop)(saname=cart))' }],
        issuer: { host: `${name}.example.com` },
        rateLimit: { burst: 1000, perMinute: 60_000 },
        ...(place === 'local' ? {} : { keys: { custody } }),
      }
    }),
  )
  writeFileSync(join(folder, 'values.yaml'), JSON.stringify({ sts: { endpoints } }))
  return folder
}
