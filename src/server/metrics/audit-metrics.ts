import { Counter, Gauge, type Registry } from 'prom-client'
import type { AuditMeter } from '#audit/audit-anchors.ts'
import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Logger } from '#kernel/logger.ts'
import type { LabelBound } from '#server/metrics/label-bound.ts'

interface AuditMetrics extends AuditMeter {
  /** From now on the size of this audit is a metric. */
  watch(audit: Pick<AuditStore, 'size'>, log: Logger): void
}

/** Metrics of the audit, its sinks and its anchors. */
export function createAuditMetrics(registry: Registry, bound: LabelBound): AuditMetrics {
  const registers = [registry]
  const sent = new Counter({
    name: 'gatehouse_audit_sink_records_total',
    help: 'Records that this process sent to an audit sink, repetitions included.',
    labelNames: ['sink'],
    registers,
  })
  const failures = new Counter({
    name: 'gatehouse_audit_sink_failures_total',
    help: 'Attempts of this process to send records to an audit sink that failed.',
    labelNames: ['sink'],
    registers,
  })
  const lagRecords = new Gauge({
    name: 'gatehouse_audit_sink_lag_records',
    help: 'Records that an audit sink has not received yet.',
    labelNames: ['sink'],
    registers,
  })
  const lagSeconds = new Gauge({
    name: 'gatehouse_audit_sink_lag_seconds',
    help: 'Age of the oldest record that an audit sink has not received yet; 0 when it has all.',
    labelNames: ['sink'],
    registers,
  })
  const anchors = new Counter({
    name: 'gatehouse_audit_anchors_total',
    help: 'Anchors of the audit, by AuditAnchor (or log) and outcome: kept or failed.',
    labelNames: ['anchor', 'outcome'],
    registers,
  })
  return {
    sent: (sink, records) => sent.inc(bound.of({ sink }), records),
    failed: (sink) => failures.inc(bound.of({ sink })),
    lag: (sink, records, seconds) => {
      lagRecords.set(bound.of({ sink }), records)
      lagSeconds.set(bound.of({ sink }), seconds)
    },
    forget: (sink) => {
      lagRecords.remove(bound.of({ sink }))
      lagSeconds.remove(bound.of({ sink }))
    },
    anchored: (anchor, outcome) => anchors.inc(bound.of({ anchor, outcome })),
    watch: (audit, log) => {
      new Gauge({
        name: 'gatehouse_audit_records',
        help: 'Records of the audit: of tokens, and others.',
        labelNames: ['part'],
        registers,
        async collect() {
          const unknown = { tokens: Number.NaN, others: Number.NaN }
          const size = await audit.size().catch((err: unknown) => {
            log.warn('the size of the audit cannot be read', { err })
            return unknown
          })
          for (const part of ['tokens', 'others'] as const) this.set({ part }, size[part])
        },
      })
    },
  }
}
