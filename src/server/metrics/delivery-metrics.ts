import { Counter, Gauge, type Registry } from 'prom-client'
import type { LabelBound } from '#server/metrics/label-bound.ts'
import type { SpanMeter } from '#server/tracing/otlp-exporter.ts'
import type { TargetMeter } from '#workflows/targets/target-health.ts'

/** Metrics of what the gateway sends to other systems: events, mails, spans and calls of targets. */
export function createDeliveryMetrics(registry: Registry, bound: LabelBound) {
  const registers = [registry]
  const events = new Counter({
    name: 'gatehouse_events_total',
    help: 'Security events, by stream and outcome: appended, delivered, refused, dropped, or failed attempts.',
    labelNames: ['stream', 'outcome'],
    registers,
  })
  const oldestEvent = new Gauge({
    name: 'gatehouse_events_oldest_seconds',
    help: 'How long the oldest event of a stream has been waiting for its receiver.',
    labelNames: ['stream'],
    registers,
  })
  const mails = new Counter({
    name: 'gatehouse_mails_total',
    help: 'Attempts to send a mail, by outcome: sent, retried later, failed for good, or unknown.',
    labelNames: ['outcome'],
    registers,
  })
  const spans = new Counter({
    name: 'gatehouse_trace_spans_total',
    help: 'Spans of traces, by outcome: sent, rejected by the receiver, or dropped because the receiver did not take them in time.',
    labelNames: ['outcome'],
    registers,
  })
  const targetFailures = new Counter({
    name: 'gatehouse_target_failures_total',
    help: 'Calls of targets that failed because the system behind them did not answer or did not do its work, by target and error code.',
    labelNames: ['target', 'code'],
    registers,
  })
  return {
    spans: { counted: (outcome, count) => spans.inc({ outcome }, count) } satisfies SpanMeter,
    targets: {
      failed: (target, code) => targetFailures.inc(bound.of({ target, code })),
    } satisfies TargetMeter,
    events: {
      counted(stream: string, outcome: string, count: number): void {
        if (count > 0) events.inc(bound.of({ stream, outcome }), count)
      },
      oldest(stream: string, seconds: number): void {
        oldestEvent.set(bound.of({ stream }), seconds)
      },
    },
    mails: {
      counted(outcome: string): void {
        mails.inc({ outcome })
      },
    },
  }
}
