import { setTimeout as delay } from 'node:timers/promises'
import { tenantPath, tenants } from './configuration.ts'
import type { MeasuredGateway } from './gateway.ts'
import { runLoad } from './load.ts'
import { bareRequest } from './paired.ts'
import { scimRequests, someIds } from './requests.ts'

const perTenant = 25
const seconds = 10
const people = 100

export interface TenantFigures {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

/** The latency of 25 requests per second at each of 20 gateways: half lookups, a quarter creations and changes each. */
export async function measureTenants(gateway: MeasuredGateway): Promise<TenantFigures> {
  const all = await Promise.all(Array.from({ length: tenants }, (_, n) => prepare(gateway, tenantPath(n))))
  return figuresOf(await Promise.all(all.map((requests) => pace(gateway.port, requests))))
}

/** The latency of as many requests to a bare route. */
export async function measureBare(port: number): Promise<TenantFigures> {
  const request = { bytes: bareRequest(), status: 200 }
  return figuresOf(await Promise.all(Array.from({ length: tenants }, () => pace(port, () => request))))
}

function figuresOf(results: readonly (readonly number[])[]): TenantFigures {
  const times = results.flat().sort((a, b) => a - b)
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
  return { perSecond: times.length / seconds, p50: at(0.5), p99: at(0.99) }
}

interface Paced {
  readonly bytes: string
  readonly status: number
}

async function prepare(gateway: MeasuredGateway, path: string): Promise<(n: number) => Paced> {
  const requests = scimRequests(gateway, path)
  let made = 0
  const create = (): string => {
    made++
    return requests.create()
  }
  const { port } = gateway
  await runLoad({
    port,
    connections: 2,
    seconds: 60,
    request: create,
    expectedStatus: 201,
    until: () => made >= people,
  })
  const ids = await someIds(gateway, path, people, people)
  const read = requests.byId(ids)
  const change = requests.active(ids)
  return (n) => {
    if (n % 4 === 0) return { bytes: requests.create(), status: 201 }
    return n % 4 === 1 ? { bytes: change(Math.floor(n / 4)), status: 200 } : { bytes: read(n), status: 200 }
  }
}

/** Sends requests at their times, whether or not earlier ones were answered, so that waiting is counted. */
async function pace(port: number, next: (n: number) => Paced): Promise<number[]> {
  const times: number[] = []
  const started = performance.now() + Math.random() * (1000 / perTenant)
  const underWay: Promise<void>[] = []
  for (let n = 0; n < perTenant * seconds; n++) {
    const due = started + (n * 1000) / perTenant
    const wait = due - performance.now()
    if (wait > 0) await delay(wait)
    const { bytes, status } = next(n)
    let sent = false
    const request = (): string => {
      sent = true
      return bytes
    }
    const once = { port, connections: 1, seconds: 10, request, expectedStatus: status, until: () => sent }
    underWay.push(runLoad(once).then(() => void times.push(performance.now() - due)))
  }
  await Promise.all(underWay)
  return times
}
