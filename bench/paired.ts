import { startBare } from './bare-process.ts'
import { type Driven, drive, type Server, warm } from './drive.ts'
import { secondsOf, turnsOf } from './effort.ts'
import { median } from './median.ts'
import type { RequestMaker } from './requests.ts'

export const connections = 16
const warmSeconds = secondsOf(8)
const bareWarmSeconds = secondsOf(2)
export const turns = turnsOf(5)
export const turnSeconds = secondsOf(1)

/** A rate, with the CPU time of the server per request. */
export interface Cost {
  readonly perSecond: number
  readonly cpuMicros: number
}

export interface Paired extends Cost {
  readonly bare: Cost
  readonly share: number
}

export interface Side {
  readonly server: Server
  readonly request: RequestMaker
  readonly expectedStatus?: number
}

/** A bare Fastify route that answers the same bytes. */
export const bareRoute = (body: string) => startBare('bench/bare-route.ts', body)

export const bareRequest = (): string => `GET /user HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`

/**
 * Warms up, then alternates with the bare route, since a shared machine is not equally fast all the time: the share is
 * the median over the turns.
 */
export async function paired(bare: Side, measured: Side): Promise<Paired> {
  const loadOf = ({ request, expectedStatus = 200 }: Side) => ({ connections, request, expectedStatus })
  const [bareLoad, load] = [loadOf(bare), loadOf(measured)]
  let first = (await warm(measured.server, { ...load, seconds: warmSeconds })).count
  let bareFirst = (await warm(bare.server, { ...bareLoad, seconds: bareWarmSeconds })).count
  const bareCosts: Driven[] = []
  const costs: Driven[] = []
  const shares: number[] = []
  for (let turn = 0; turn < turns; turn++) {
    const limit = await drive(bare.server, { ...bareLoad, seconds: turnSeconds, first: bareFirst })
    const one = await drive(measured.server, { ...load, seconds: turnSeconds, first })
    bareFirst += limit.count
    first += one.count
    bareCosts.push(limit)
    costs.push(one)
    shares.push(one.perSecond / limit.perSecond)
  }
  return { ...medianCost(costs), bare: medianCost(bareCosts), share: median(shares) }
}

export const medianCost = (costs: readonly Cost[]): Cost => ({
  perSecond: median(costs.map(({ perSecond }) => perSecond)),
  cpuMicros: median(costs.map(({ cpuMicros }) => cpuMicros)),
})
