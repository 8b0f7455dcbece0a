import { type Metric, Registry } from 'prom-client'

interface Value {
  /** Of a histogram: with its ending, such as `_bucket`. */
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  readonly exemplar?: object | null
}

/** A metric as prom-client exports it. */
export interface MetricSnapshot {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly values: readonly Value[]
}

type Rule = 'sum' | 'max' | 'min' | 'each'

/**
 * How the gauges of several workers become one. Counters and histograms are added up. `each` keeps the value of each worker,
 * with the label `worker`: also for a gauge that is not listed, and for everything that Node.js reports about a process.
 */
export const gaugeRules: Readonly<Record<string, Rule>> = {
  gatehouse_connections_open: 'sum',
  gatehouse_workers: 'sum',
  gatehouse_http_requests_in_flight: 'sum',
  gatehouse_database_connections: 'sum',
  gatehouse_database_connections_max: 'sum',
  gatehouse_database_waiting: 'sum',
  // The same for all workers, or ready while one of them is.
  gatehouse_build_info: 'max',
  gatehouse_ready: 'max',
  gatehouse_data_size_bytes: 'max',
  // Read from the database by every worker, so that they differ only by the time of reading.
  gatehouse_workflow_runs: 'max',
  gatehouse_workflow_oldest_ready_seconds: 'max',
  gatehouse_workflow_oldest_incident_seconds: 'max',
  gatehouse_unfinished_changes: 'max',
  gatehouse_approvals_open: 'max',
  gatehouse_approvals_oldest_seconds: 'max',
  gatehouse_mails_queued: 'max',
  gatehouse_mails_failed: 'max',
  gatehouse_mails_unknown: 'max',
  gatehouse_mails_oldest_seconds: 'max',
  gatehouse_grants_due: 'max',
  gatehouse_scim_tokens_expiring: 'max',
  gatehouse_audit_records: 'max',
  gatehouse_audit_sink_lag_records: 'max',
  gatehouse_audit_sink_lag_seconds: 'max',
  gatehouse_events_oldest_seconds: 'max',
  gatehouse_reconciliation_accounts: 'max',
  gatehouse_reconciliation_last_success_timestamp_seconds: 'max',
  gatehouse_reconciliation_differs_since_timestamp_seconds: 'max',
  // The worker that is worst off counts.
  gatehouse_sts_api_server_away: 'max',
  gatehouse_sts_grants_age_seconds: 'max',
  gatehouse_configuration_objects: 'max',
  gatehouse_configuration_current: 'min',
  gatehouse_data_free_bytes: 'min',
  gatehouse_sts_key_readable: 'min',
  gatehouse_sts_key_source_ok: 'min',
  gatehouse_sts_webhook_certificate_expiry_timestamp_seconds: 'min',
  gatehouse_sts_webhook_current: 'min',
  gatehouse_tls_certificate_current: 'min',
  gatehouse_tls_certificate_expiry_timestamp_seconds: 'min',
}

const ofProcess = /^(?:process|nodejs)_/

function ruleOf({ name, type }: MetricSnapshot): Rule {
  if (ofProcess.test(name)) return 'each'
  return type === 'gauge' ? (gaugeRules[name] ?? 'each') : 'sum'
}

/** The metrics of one process, and the value of its label `worker`. */
export interface ProcessMetrics {
  readonly worker: string
  readonly metrics: readonly MetricSnapshot[]
}

/** The metrics of a registry at this time. */
export const readSnapshots = async (registry: Registry): Promise<MetricSnapshot[]> =>
  // prom-client declares the type of a metric as a number and leaves out the names of values.
  (await registry.getMetricsAsJSON()) as unknown as MetricSnapshot[]

/** One metric of each name. */
export function combineMetrics(processes: readonly ProcessMetrics[]): MetricSnapshot[] {
  const combined = new Map<string, { readonly metric: MetricSnapshot; readonly values: Map<string, Value> }>()
  for (const { worker, metrics } of processes) {
    for (const metric of metrics) {
      const rule = ruleOf(metric)
      let entry = combined.get(metric.name)
      if (entry === undefined) {
        entry = { metric, values: new Map() }
        combined.set(metric.name, entry)
      }
      for (const given of metric.values) {
        const value = rule === 'each' ? { ...given, labels: { ...given.labels, worker } } : given
        const key = keyOf(value)
        const other = entry.values.get(key)
        entry.values.set(key, other === undefined ? value : joined(rule, other, value))
      }
    }
  }
  return Array.from(combined.values(), ({ metric, values }) => ({ ...metric, values: [...values.values()] }))
}

const keyOf = (value: Value): string => {
  const labels = Object.entries(value.labels).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([value.metricName, ...labels])
}

const joined = (rule: Rule, a: Value, b: Value): Value => ({
  ...a,
  ...b,
  value: joinedNumber(rule, a.value, b.value),
  exemplar: b.exemplar ?? a.exemplar ?? null,
})

/** A figure that one worker could not read (NaN) is that of the others. */
function joinedNumber(rule: Rule, a: number, b: number): number {
  if (rule === 'sum') return a + b
  if (Number.isNaN(a)) return b
  if (Number.isNaN(b)) return a
  return rule === 'min' ? Math.min(a, b) : Math.max(a, b)
}

/** What still counts after a process has ended: a sum that drops would look like a restart of all. */
export const remaining = (metrics: readonly MetricSnapshot[]): MetricSnapshot[] =>
  metrics.filter((metric) => ruleOf(metric) === 'sum' && metric.type !== 'gauge')

/** For the writers of both formats. */
export function metricsRegistry(metrics: readonly MetricSnapshot[]): Registry {
  const registry = new Registry()
  for (const metric of metrics) {
    registry.registerMetric({
      ...metric,
      // The writer of OpenMetrics gives counters other names.
      async get(this: { readonly name: string }) {
        return { ...metric, name: this.name }
      },
    } as unknown as Metric)
  }
  return registry
}
