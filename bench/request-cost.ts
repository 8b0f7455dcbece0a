import { drive, type Server, warm } from './drive.ts'
import { secondsOf, turnsOf } from './effort.ts'
import type { PostgresCosts } from './postgres-costs.ts'
import type { RequestMaker } from './requests.ts'
import { number } from './table.ts'

const turns = turnsOf(4)
const turnSeconds = secondsOf(2)
const warmSeconds = secondsOf(5)

/** What one request costs the gateway and PostgreSQL: the least of several turns, since other work only adds. */
export interface RequestCost {
  readonly perSecond: number
  readonly gatewayMicros: number
  readonly databaseMicros: number
}

export const databaseText = ({ databaseMicros }: RequestCost): string =>
  `${number(databaseMicros)} µs CPU of PostgreSQL`

export async function costOf(
  server: Server,
  costs: PostgresCosts,
  connections: number,
  request: RequestMaker,
  expectedStatus: number,
): Promise<{ readonly cost: RequestCost; readonly count: number }> {
  const load = { connections, request, expectedStatus }
  let count = (await warm(server, { ...load, seconds: warmSeconds })).count
  const found: RequestCost[] = []
  for (let turn = 0; turn < turns; turn++) {
    const cpu = costs.cpu()
    const driven = await drive(server, { ...load, seconds: turnSeconds, first: count })
    const databaseMicros = (cpu() * 1_000_000) / driven.count
    found.push({ perSecond: driven.perSecond, gatewayMicros: driven.cpuMicros, databaseMicros })
    count += driven.count
  }
  const least = (name: 'gatewayMicros' | 'databaseMicros'): number => Math.min(...found.map((one) => one[name]))
  return {
    cost: {
      perSecond: Math.max(...found.map(({ perSecond }) => perSecond)),
      gatewayMicros: least('gatewayMicros'),
      databaseMicros: least('databaseMicros'),
    },
    count,
  }
}
