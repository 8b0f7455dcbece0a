import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { createWorkflowMetrics, type FigureStores } from '#server/metrics/workflow-metrics.ts'

function stores() {
  const asked = { times: 0, down: false }
  const answer = async <T>(value: T): Promise<T> => {
    asked.times++
    if (asked.down) throw new Error('down')
    return value
  }
  const made: FigureStores = {
    runs: {
      figures: () => answer({ ready: 4, running: 3, waiting: 2, incident: 1, unfinished: 2, oldestReadyMillis: 1500 }),
    },
    approvals: { figures: () => answer({ open: 9, oldestMillis: 60_000 }) },
    mails: { figures: () => answer({ queued: 5, unknown: 1, failed: 6 }) },
    grants: { due: () => answer([]) },
    clientTokens: { expiring: () => answer(7) },
  }
  return { made, asked }
}

const values = async (registry: Registry): Promise<string[]> =>
  (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))

test('a scrape returns the figures of the stores, and reads each store once', async () => {
  const registry = new Registry()
  const { made, asked } = stores()
  createWorkflowMetrics(registry).watch(made, silentLogger)
  const lines = await values(registry)
  expect(lines).toEqual(
    expect.arrayContaining([
      'gatehouse_workflow_runs{state="ready"} 4',
      'gatehouse_workflow_runs{state="incident"} 1',
      'gatehouse_workflow_oldest_ready_seconds 1.5',
      'gatehouse_workflow_oldest_incident_seconds 0',
      'gatehouse_unfinished_changes 2',
      'gatehouse_approvals_open 9',
      'gatehouse_approvals_oldest_seconds 60',
      'gatehouse_mails_queued 5',
      'gatehouse_mails_unknown 1',
      'gatehouse_mails_failed 6',
      'gatehouse_grants_due 0',
      'gatehouse_scim_tokens_expiring 7',
    ]),
  )
  await registry.metrics()
  expect(asked.times).toBe(5)
})

test('a scrape works while the database is down, and omits unknown figures', async () => {
  const registry = new Registry()
  const { made, asked } = stores()
  asked.down = true
  createWorkflowMetrics(registry).watch(made, silentLogger)
  const lines = await values(registry)
  expect(lines).toContain('gatehouse_workflow_oldest_ready_seconds Nan')
  expect(lines).toContain('gatehouse_workflow_runs{state="ready"} Nan')
})

test('steps, waits and jobs are counted as they happen', async () => {
  const registry = new Registry()
  const metrics = createWorkflowMetrics(registry)
  metrics.observer.executed({ workflow: 'w', taskType: 'provision', outcome: 'next', millis: 30 })
  metrics.observer.claimed(-5)
  metrics.jobs.ended('nightly', 'failed', 1500)
  const lines = await values(registry)
  expect(lines).toEqual(
    expect.arrayContaining([
      'gatehouse_workflow_step_seconds_sum{task_type="provision",outcome="next"} 0.03',
      'gatehouse_workflow_queue_seconds_sum 0',
      'gatehouse_job_runs_total{job="nightly",outcome="failed"} 1',
      'gatehouse_job_seconds_sum{job="nightly"} 1.5',
    ]),
  )
})
