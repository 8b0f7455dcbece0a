import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { tenantPath, writeConfiguration } from './configuration.ts'
import { drive, warm } from './drive.ts'
import { quick, secondsOf, turnsOf } from './effort.ts'
import { startMeasured } from './gateway.ts'
import { connections } from './paired.ts'
import { scimRequests } from './requests.ts'
import { number, row } from './table.ts'

const turns = turnsOf(4)
const turnSeconds = secondsOf(2)
const warmSeconds = secondsOf(5)
const settledMillis = quick ? 1000 : 3000
const tenantCounts = quick ? [20, 100] : [20, 200, 1000]

/** Start, memory and a look-up of gateways with many tenants: each has a path, a target, workflows and a directory. */
export async function measureManyTenants(folder: string, quickstart: string): Promise<void> {
  let first: { readonly count: number; readonly megabytes: number } | undefined
  for (const count of tenantCounts) {
    const config = writeConfiguration(join(folder, `tenants-${count}`), quickstart, count)
    const data = join(folder, `tenants-data-${count}`)
    await (await startMeasured(config, data)).stop()
    const gateway = await startMeasured(config, data)
    try {
      const startSeconds = gateway.cpuSeconds()
      await delay(settledMillis)
      const megabytes = gateway.residentMegabytes()
      const each = first && ((megabytes - first.megabytes) * 1024) / (count - first.count)
      const more = each === undefined ? '' : `${number(each)} KB for each more`
      row(
        `${number(count)} tenants, start to ready`,
        `${number(gateway.readyMs)} ms`,
        `${startSeconds.toFixed(1)} s of CPU`,
      )
      row(`${number(count)} tenants, resident memory at rest`, `${number(megabytes)} MB`, more)
      first ??= { count, megabytes }
      const lookups = Array.from({ length: count }, (_, n) => scimRequests(gateway, tenantPath(n)).byLogin(1)(0))
      const load = { connections, request: (n: number) => lookups[n % count] ?? '', expectedStatus: 200 }
      await warm(gateway, { ...load, seconds: warmSeconds })
      const found: number[] = []
      for (let turn = 0; turn < turns; turn++) {
        found.push((await drive(gateway, { ...load, seconds: turnSeconds })).cpuMicros)
      }
      row(`${number(count)} tenants, filter userName eq in each`, `${number(Math.min(...found))} µs CPU`, 'SQLite')
    } finally {
      await gateway.stop()
    }
  }
}
