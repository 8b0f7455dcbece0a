import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { version } from '#kernel/version.ts'
import { createProcessMetrics, createReadyMetric } from './process-metrics.ts'

const valuesOf = async (registry: Registry): Promise<Record<string, number>> =>
  Object.fromEntries(
    Array.from((await registry.metrics()).matchAll(/^(gatehouse_\S+) (\S+)$/gm), ([, name = '', value = '']) => [
      name,
      value === 'Nan' ? Number.NaN : Number(value),
    ]),
  )

test('a scrape has the version, the disk of the data folder and whether the process is ready', async () => {
  const registry = new Registry()
  const folder = import.meta.dirname
  let isReady = false
  createProcessMetrics(registry).watchDisk(folder, silentLogger)
  createReadyMetric(registry, async () => {
    if (!isReady) throw new Error('starting')
  })
  const values = await valuesOf(registry)
  const { bsize, blocks } = statfsSync(folder)
  expect(values[`gatehouse_build_info{version="${await version()}",node="${process.versions.node}"}`]).toBe(1)
  expect(values['gatehouse_data_size_bytes']).toBe(bsize * blocks)
  expect(values['gatehouse_data_free_bytes']).toBeGreaterThan(0)
  expect(values['gatehouse_data_free_bytes']).toBeLessThanOrEqual(bsize * blocks)
  expect(values['gatehouse_ready']).toBe(0)
  isReady = true
  expect((await valuesOf(registry))['gatehouse_ready']).toBe(1)
})

test('a folder that is gone has no numbers', async () => {
  const registry = new Registry()
  createProcessMetrics(registry).watchDisk(join(import.meta.dirname, 'nowhere'), silentLogger)
  const { gatehouse_data_free_bytes: free, gatehouse_data_size_bytes: size } = await valuesOf(registry)
  expect([free, size]).toEqual([Number.NaN, Number.NaN])
})
