import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import type { Drift } from '#features/reconciliation/store/plan-record.ts'
import { silentLogger } from '#kernel/logger.ts'
import { LabelBound } from '#server/metrics/label-bound.ts'
import { createReconciliationMetrics } from './reconciliation-metrics.ts'

const report = {
  plan: 'p',
  reconciliation: 'chat',
  at: new Date(5_000),
  source: 12,
  target: 11,
  agree: 9,
  missing: 2,
  different: 1,
  extra: 0,
  ambiguous: 0,
  unknown: 0,
}

function watched(drift: () => Promise<ReadonlyMap<string, Drift>>) {
  const registry = new Registry()
  createReconciliationMetrics(registry, new LabelBound()).watch({
    store: { drift },
    isConfigured: (name) => name !== 'removed',
    log: silentLogger,
  })
  return async () => (await registry.metrics()).split('\n').filter((line) => line.startsWith('gatehouse_'))
}

test('the last comparison of each configured reconciliation is a metric', async () => {
  const read = watched(
    async () =>
      new Map<string, Drift>([
        ['chat', { report, differsSince: new Date(3_000) }],
        ['wiki', { report: { ...report, missing: 0, different: 0 } }],
        ['removed', { report }],
      ]),
  )
  const lines = await read()
  expect(lines).toContain('gatehouse_reconciliation_accounts{reconciliation="chat",state="agree"} 9')
  expect(lines).toContain('gatehouse_reconciliation_accounts{reconciliation="chat",state="missing"} 2')
  expect(lines).toContain('gatehouse_reconciliation_last_success_timestamp_seconds{reconciliation="chat"} 5')
  expect(lines).toContain('gatehouse_reconciliation_differs_since_timestamp_seconds{reconciliation="chat"} 3')
  expect(lines).toContain('gatehouse_reconciliation_differs_since_timestamp_seconds{reconciliation="wiki"} 0')
  expect(lines.join()).not.toContain('removed')
})

test('while the reports cannot be read, there is no value', async () => {
  const read = watched(() => Promise.reject(new Error('the database is away')))
  expect(await read()).toEqual([])
})
