import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { bareInserts } from './bare-inserts.ts'
import { startBare } from './bare-process.ts'
import { peoplePath, tenants } from './configuration.ts'
import { changedUsers, measureDelta } from './delta.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { measureListing } from './listing.ts'
import { bareRoute, median, type Paired, paired } from './paired.ts'
import { type RequestMaker, readJson, scimRequests, someIds } from './requests.ts'
import { seedPeople } from './seed.ts'
import { millis, number, percent, rate, row, say } from './table.ts'
import { measureBare, measureTenants, type TenantFigures } from './tenants.ts'

/**
 * Rates for one size, each as a share of the bare route's beside it, creations also of bare inserts. Routes that only
 * read or store the same rows show the share of the database.
 */
async function measureRates(gateway: MeasuredGateway, folder: string, data: string, count: number): Promise<void> {
  const label = `${number(count)} users`
  const ids = await someIds(gateway, peoplePath, count, 10_000)
  const requests = scimRequests(gateway, peoplePath)
  const bare = await bareRoute(JSON.stringify(await readJson(gateway, `${peoplePath}/Users/${ids[0]}`)))
  const place = [join(data, 'gatehouse.db'), `${peoplePath}/Users`] as const
  const reading = await startBare('bench/reading-route.ts', ...place)
  const writing = await startBare('bench/writing-route.ts', ...place)
  const bareRates: number[] = []
  const measure = async (name: string, port: number, request: RequestMaker, wanted: string): Promise<void> =>
    report(name, await turn(port, request, 200), wanted)
  const turn = async (port: number, request: RequestMaker, status: number): Promise<Paired> => {
    const result = await paired(bare.port, port, request, status)
    bareRates.push(result.bare)
    return result
  }
  const report = (name: string, { perSecond, share }: Paired, wanted: string, more = ''): void =>
    row(`${name}, ${label}`, rate(perSecond), `${percent(share)} of the bare route${more}`, wanted)
  // The floors are for two cores that do 17,000 bare requests a second.
  const floor = (perSecond: number): string => `>= ${rate(perSecond)}; ${percent(perSecond / 17_000)} of 17,000/s`
  try {
    await measure('GET by id', gateway.port, requests.byId(ids), floor(3000))
    await measure('a bare route that reads the row', reading.port, requests.byId(ids), '')
    await measure('filter userName eq', gateway.port, requests.byLogin(count), floor(3000))
    await measure('page of 100', gateway.port, requests.page, floor(400))
    await measure('a bare route that reads 100 rows', reading.port, requests.page, '')
    await measure('PATCH active', gateway.port, requests.active(ids), '')
    const create = await turn(gateway.port, requests.create, 201)
    const inserts = bareInserts(folder, 3)
    const ofInserts = (perSecond: number): string =>
      `${percent(perSecond / inserts)} of ${rate(inserts)} bare durable inserts`
    report('create', create, floor(1500), `, ${ofInserts(create.perSecond)}`)
    const stored = await turn(writing.port, requests.create, 201)
    report('a bare route that stores the rows', stored, '', `, ${ofInserts(stored.perSecond)}`)
  } finally {
    bare.stop()
    reading.stop()
    writing.stop()
  }
  row(`bare Fastify route beside ${label}`, rate(median(bareRates)))
}

/** Milliseconds of a delta, by the number of users. */
const deltas = new Map<number, number>()
/** The base for comparing the delta of a large directory. */
const smallDelta = 10_000

function reportDelta(count: number, ms: number): void {
  deltas.set(count, ms)
  const small = count > smallDelta ? deltas.get(smallDelta) : undefined
  const ratio = small === undefined ? '' : `${(ms / small).toFixed(2)} times that of ${number(smallDelta)} users`
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
      row(
        `listing by cursor, ${number(listing.users)} users`,
        `${rate(listing.perSecond)} users`,
        `${number(listing.grownMegabytes)} MB more at the end than after a tenth`,
        'constant memory',
      )
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
  const times = ({ p50, p99 }: TenantFigures): [string, string] => [`p50 ${millis(p50)}`, `p99 ${millis(p99)}`]
  row(`${tenants} gateways, ${rate(many.perSecond)} together`, ...times(many), 'p99 < 50 ms')
  row(`bare Fastify route at ${rate(limit.perSecond)}`, ...times(limit))
}
