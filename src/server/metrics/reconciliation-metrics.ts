import { Gauge, type Registry } from 'prom-client'
import { differenceKinds } from '#features/reconciliation/contract/plan-words.ts'
import type { Drift } from '#features/reconciliation/store/plan-record.ts'
import type { ReconciliationStore } from '#features/reconciliation/store/reconciliation-store.ts'
import type { Logger } from '#kernel/logger.ts'
import type { LabelBound } from '#server/metrics/label-bound.ts'

/** The gauges of one scrape share one read. */
const keptMillis = 2_000

interface Watched {
  readonly store: Pick<ReconciliationStore, 'drift'>
  /** Whether the configuration has the reconciliation; reports of others are history. */
  isConfigured(name: string): boolean
  readonly log: Logger
}

/** Metrics of what the last comparison of each reconciliation found; without a value while they can't be read. */
export function createReconciliationMetrics(registry: Registry, bound: LabelBound) {
  return {
    /** From now on a scrape reads them. */
    watch: (watched: Watched): void => {
      const read = driftReader(watched)
      const gauge = (name: string, help: string, set: (gauge: Gauge, reconciliation: string, drift: Drift) => void) =>
        new Gauge({
          name,
          help,
          labelNames: name.endsWith('_accounts') ? ['reconciliation', 'state'] : ['reconciliation'],
          registers: [registry],
          async collect() {
            const found = await read()
            this.reset()
            for (const [name, drift] of found) set(this, bound.value('reconciliation', name), drift)
          },
        })
      gauge(
        'gatehouse_reconciliation_accounts',
        'Accounts and people by what the last comparison of a reconciliation found.',
        (to, reconciliation, { report }) => {
          for (const state of ['agree', ...differenceKinds] as const) to.set({ reconciliation, state }, report[state])
        },
      )
      gauge(
        'gatehouse_reconciliation_last_success_timestamp_seconds',
        'When the systems of a reconciliation were last compared to their end.',
        (to, reconciliation, { report }) => to.set({ reconciliation }, report.at.getTime() / 1000),
      )
      gauge(
        'gatehouse_reconciliation_differs_since_timestamp_seconds',
        'Since when every comparison of a reconciliation found differences; 0 if the last one found none.',
        (to, reconciliation, { differsSince }) =>
          to.set({ reconciliation }, (differsSince === undefined ? 0 : differsSince.getTime()) / 1000),
      )
    },
  }
}

function driftReader({ store, isConfigured, log }: Watched): () => Promise<readonly (readonly [string, Drift])[]> {
  let kept: Promise<readonly (readonly [string, Drift])[]> = Promise.resolve([])
  let until = 0
  return () => {
    if (performance.now() < until) return kept
    until = performance.now() + keptMillis
    kept = store.drift().then(
      (drift) => [...drift].filter(([name]) => isConfigured(name)),
      (err: unknown) => {
        log.warn('the reports of reconciliations cannot be read', { err })
        return []
      },
    )
    return kept
  }
}
