import { join } from 'node:path'
import { startPostgres } from '#testing/databases/embedded-postgres.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { peoplePath, writeConfiguration } from './configuration.ts'
import { drive, warm } from './drive.ts'
import { secondsOf } from './effort.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { runLoad } from './load.ts'
import { median } from './median.ts'
import { connections, turnSeconds, turns } from './paired.ts'
import { scimRequests, someIds } from './requests.ts'

interface WorkerFigures {
  /** GETs by id a second of two workers, and as a multiple of one process on the same database. */
  readonly perSecond: number
  readonly ratio: number
  readonly supervisorMegabytes: number
}

const users = 1000
const warmSeconds = secondsOf(16)

/** Two gateways on one PostgreSQL, a single process and one with two workers, measured in turns. */
export async function measureWorkers(folder: string, quickstart: string): Promise<WorkerFigures> {
  const config = writeConfiguration(join(folder, 'workers'), quickstart)
  const data = join(folder, 'workers-data')
  const database = await startPostgres({ durable: true })
  const gateways: MeasuredGateway[] = []
  try {
    const one = await startMeasured(config, data, database.url)
    gateways.push(one)
    const metrics = `127.0.0.1:${await freePort()}`
    const two = await startMeasured(config, data, database.url, 'idp', ['--workers', '2', '--metrics', metrics])
    gateways.push(two)
    await until(async () => (await (await fetch(`http://${metrics}/metrics`)).text()).includes('"ready"} 2'), 60_000)
    let created = 0
    const { create } = scimRequests(one, peoplePath)
    await runLoad({
      port: one.port,
      connections,
      seconds: 120,
      request: create,
      expectedStatus: 201,
      until: () => created++ >= users,
    })
    const ids = await someIds(one, peoplePath, users)
    const load = (gateway: MeasuredGateway, seconds: number) => {
      const request = scimRequests(gateway, peoplePath).byId(ids)
      return { connections, seconds, request, expectedStatus: 200 }
    }
    for (const gateway of gateways) await warm(gateway, load(gateway, warmSeconds))
    const rateOf = async (gateway: MeasuredGateway): Promise<number> =>
      (await drive(gateway, load(gateway, turnSeconds))).perSecond
    const pairs: { readonly single: number; readonly shared: number }[] = []
    for (let turn = 0; turn < turns; turn++) {
      pairs.push({ single: await rateOf(one), shared: await rateOf(two) })
    }
    return {
      perSecond: median(pairs.map(({ shared }) => shared)),
      ratio: median(pairs.map(({ single, shared }) => shared / single)),
      supervisorMegabytes: two.residentMegabytes(),
    }
  } finally {
    for (const gateway of gateways) await gateway.stop()
    await database.stop()
  }
}
