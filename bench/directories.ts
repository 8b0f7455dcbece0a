import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { bareInserts } from './bare-inserts.ts'
import { startBare } from './bare-process.ts'
import { peoplePath, tenants } from './configuration.ts'
import { changedUsers, measureDelta } from './delta.ts'
import type { Server } from './drive.ts'
import { secondsOf } from './effort.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { measureListing } from './listing.ts'
import { bareRequest, bareRoute, type Cost, medianCost, paired } from './paired.ts'
import { type RequestMaker, readJson, scimRequests, someIds } from './requests.ts'
import { seedPeople } from './seed.ts'
import { millis, number, percent, rate, row, say } from './table.ts'
import { measureBare, measureTenants, type TenantFigures } from './tenants.ts'

/** Costs by size, for the lines that compare sizes. */
const costs = new Map<string, Map<number, Cost>>()
/** The base for comparing large directories. */
const smallSize = 10_000

/** How many times longer a request takes than with 10,000 users. */
function reportGrowth(name: string, count: number, cost: Cost): void {
  const bySize = costs.get(name) ?? new Map<number, Cost>()
  costs.set(name, bySize.set(count, cost))
  const small = bySize.get(smallSize)
  if (small === undefined || count <= smallSize) return
  const label = `${name}, ${number(count)} users against ${number(smallSize)}`
  const times = (ratio: number): string => `${ratio.toFixed(2)} times`
  row(label, times(small.perSecond / cost.perSecond), '', '<= 1.5 times')
  row(`${label}, CPU`, times(cost.cpuMicros / small.cpuMicros))
}

/**
 * Rates for one size. Reads and creations are compared with a bare route that reads or stores the same rows, creations
 * also with bare inserts, other requests with a bare route that answers from memory.
 */
async function measureRates(gateway: MeasuredGateway, folder: string, data: string, count: number): Promise<void> {
  const label = `${number(count)} users`
  const ids = await someIds(gateway, peoplePath, count, 10_000)
  const requests = scimRequests(gateway, peoplePath)
  const bare = await bareRoute(JSON.stringify(await readJson(gateway, `${peoplePath}/Users/${ids[0]}`)))
  const place = [join(data, 'gatehouse.db'), `${peoplePath}/Users`] as const
  const reading = await startBare('bench/reading-route.ts', ...place)
  const writing = await startBare('bench/writing-route.ts', ...place)
  const same = async (name: string, work: string, server: Server, request: RequestMaker, expectedStatus = 200) => {
    const result = await paired({ server, request, expectedStatus }, { server: gateway, request, expectedStatus })
    const { perSecond, cpuMicros, share, bare: limit } = result
    row(`${name}, ${label}`, rate(perSecond, cpuMicros), `${percent(share)} of ${work}`, '>= 70.0 %')
    row(`${work}, ${label}`, rate(limit.perSecond, limit.cpuMicros))
    return result
  }
  const bareRates: Cost[] = []
  const other = async (name: string, request: RequestMaker): Promise<Cost> => {
    const result = await paired({ server: bare, request: bareRequest }, { server: gateway, request })
    bareRates.push(result.bare)
    const { perSecond, cpuMicros, share } = result
    row(`${name}, ${label}`, rate(perSecond, cpuMicros), `${percent(share)} of a bare route`)
    return result
  }
  try {
    await same('GET by id', 'a bare route that reads the row', reading, requests.byId(ids))
    const eq = await other('filter userName eq', requests.byLogin(count))
    reportGrowth('filter userName eq', count, eq)
    const page = await same('page of 100', 'a bare route that reads 100 rows', reading, requests.page)
    reportGrowth('page of 100', count, page)
    await other('PATCH active', requests.active(ids))
    const create = await same('create', 'a bare route that stores the rows', writing, requests.create, 201)
    const inserts = bareInserts(folder, secondsOf(3))
    row(`bare durable inserts beside ${label}`, rate(inserts), `create ${percent(create.perSecond / inserts)} of them`)
  } finally {
    bare.stop()
    reading.stop()
    writing.stop()
  }
  const { perSecond, cpuMicros } = medianCost(bareRates)
  row(`bare Fastify route beside ${label}`, rate(perSecond, cpuMicros))
}

/** Milliseconds of a delta, by the number of users. */
const deltas = new Map<number, number>()

function reportDelta(count: number, ms: number): void {
  deltas.set(count, ms)
  const small = count > smallSize ? deltas.get(smallSize) : undefined
  const ratio = small === undefined ? '' : `${(ms / small).toFixed(2)} times that of ${number(smallSize)} users`
  row(
    `meta.lastModified gt, ${changedUsers} of ${number(count)} users`,
    millis(ms),
    ratio,
    small === undefined ? '' : '<= 1.5 times',
  )
}

/** Measures one size; `largest` adds the measurements that depend on the largest size. */
export async function measureDirectory(folder: string, config: string, count: number, largest: boolean): Promise<void> {
  const data = join(folder, `people-${count}`)
  const started = performance.now()
  await seedPeople(data, count)
  say(`\nmade ${number(count)} users in ${((performance.now() - started) / 1000).toFixed(1)} s`)
  const gateway = await startMeasured(config, data)
  try {
    await measureRates(gateway, folder, data, count)
    reportDelta(count, await measureDelta(gateway, count))
    if (largest) {
      const listing = await measureListing(gateway, count)
      const label = `listing by cursor, ${number(count)} users and those created before`
      row(label, `${rate(listing.perSecond)} users`)
      const since = `at the end of ${number(listing.users)} than after a tenth`
      row(`${label}, memory`, `${number(listing.grownMegabytes)} MB more`, since, 'constant memory')
      await measureTogether(gateway)
    }
  } finally {
    await gateway.stop()
    rmSync(data, { recursive: true, force: true })
  }
}

/** Twenty gateways at once, and the bare route at the same pace, since waking up for each request costs that one too. */
async function measureTogether(gateway: MeasuredGateway): Promise<void> {
  const many = await measureTenants(gateway)
  const bare = await bareRoute('{}')
  const limit = await measureBare(bare.port)
  bare.stop()
  const times = ({ p50, p99 }: TenantFigures): [string, string] => [`p99 ${millis(p99)}`, `p50 ${millis(p50)}`]
  row(`${tenants} gateways, ${rate(many.perSecond)} together`, ...times(many), '< 50 ms')
  row(`bare Fastify route at ${rate(limit.perSecond)}`, ...times(limit))
}
