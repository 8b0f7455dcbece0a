import { Counter, Gauge, type Registry } from 'prom-client'
import type { AuditMeter } from '#engine/audit/audit-meter.ts'

/** Metrics of audit sinks and anchors. */
export function createAuditMetrics(registry: Registry): AuditMeter {
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
    sent: (sink, records) => sent.inc({ sink }, records),
    failed: (sink) => failures.inc({ sink }),
    lag: (sink, records, seconds) => {
      lagRecords.set({ sink }, records)
      lagSeconds.set({ sink }, seconds)
    },
    forget: (sink) => {
      lagRecords.remove({ sink })
      lagSeconds.remove({ sink })
    },
    anchored: (anchor, outcome) => anchors.inc({ anchor, outcome }),
  }
}
