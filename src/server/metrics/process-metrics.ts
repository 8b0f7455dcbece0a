import type { StatsFs } from 'node:fs'
import { statfs } from 'node:fs/promises'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { Gauge, type Registry } from 'prom-client'
import type { Logger } from '#kernel/logger.ts'
import { version } from '#kernel/version.ts'

/** How long a scrape waits for a database that does not answer: less than a supervisor waits for a worker's metrics. */
const readyMillis = 3000

/** Which program this process runs, and where it keeps its data. */
export function createProcessMetrics(registry: Registry) {
  const registers = [registry]
  new Gauge({
    name: 'gatehouse_build_info',
    help: 'Always 1, with the version of the gateway and of Node.js.',
    labelNames: ['version', 'node'],
    registers,
    async collect() {
      this.set({ version: await version(), node: process.versions.node }, 1)
    },
  })
  return {
    /** From now on the disk of this folder is a metric. */
    watchDisk(folder: string, log: Pick<Logger, 'warn'>): void {
      const read = (): Promise<StatsFs | undefined> =>
        statfs(folder).catch((err: unknown) => {
          log.warn('the free space of the data folder cannot be read', { err })
          return undefined
        })
      new Gauge({
        name: 'gatehouse_data_size_bytes',
        help: 'Size of the file system of the data folder.',
        registers,
        async collect() {
          const disk = await read()
          this.set(disk === undefined ? Number.NaN : disk.blocks * disk.bsize)
        },
      })
      new Gauge({
        name: 'gatehouse_data_free_bytes',
        help: 'Free space of the file system of the data folder that this process may use.',
        registers,
        async collect() {
          const disk = await read()
          this.set(disk === undefined ? Number.NaN : disk.bavail * disk.bsize)
        },
      })
    },
  }
}

/** Whether requests can be served, as `/ready` says; `ready` rejects if they can't. */
export function createReadyMetric(registry: Registry, ready: () => Promise<void>): void {
  new Gauge({
    name: 'gatehouse_ready',
    help: '1 while requests can be served, 0 while /ready fails.',
    registers: [registry],
    async collect() {
      const answer = ready().then(
        () => 1,
        () => 0,
      )
      this.set(await Promise.race([answer, delay(readyMillis, 0, { ref: false })]))
    },
  })
}
