import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { AuditMeter } from '#audit/audit-anchors.ts'
import type { AuditStore } from '#audit/store/audit-store.ts'
import { kinds } from '#config/build/kinds.ts'
import { endpointKind, type FoundObject } from '#config/load/set-aside.ts'
import type { IssuerMeter } from '#features/issuer/service/issuer-audit.ts'
import type { RegistrationMeter } from '#features/registration/service/registrations.ts'
import type { ReportMeter } from '#features/reports/report-endpoint.ts'
import type { Logger } from '#kernel/logger.ts'
import { createConnectionMetrics } from '#server/metrics/connection-metrics.ts'
import { currentExemplar, histogramWithExemplars } from '#server/metrics/exemplar.ts'
import { LabelBound, otherValue } from '#server/metrics/label-bound.ts'
import { createWorkflowMetrics } from '#server/metrics/workflow-metrics.ts'
import type { SpanMeter } from '#server/tracing/otlp-exporter.ts'
import type { TargetMeter } from '#workflows/targets/target-health.ts'

/** Methods that a caller makes up count together. */
const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The metrics of the process, in a separate registry so that two servers in one process do not mix. */
export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const bound = new LabelBound()
  const requests = new Counter({
    name: 'gatehouse_http_requests_total',
    help: 'Requests answered, by application, method and status.',
    labelNames: ['application', 'method', 'status'],
    registers,
  })
  const seconds = histogramWithExemplars(registry, {
    name: 'gatehouse_http_request_seconds',
    help: 'Time to answer, by application.',
    labelNames: ['application'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30],
  })
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
  const publications = new Counter({
    name: 'gatehouse_sts_publications_total',
    help: 'Attempts to publish the documents of an issuer, by endpoint, destination and outcome: done or failed.',
    labelNames: ['endpoint', 'destination', 'outcome'],
    registers,
  })
  const exchanges = new Counter({
    name: 'gatehouse_sts_tokens_total',
    help: 'Exchanges of tokens, by endpoint, outcome (issued, refused or failed) and the reason where none was issued.',
    labelNames: ['endpoint', 'outcome', 'reason'],
    registers,
  })
  const awayServers = new Gauge({
    name: 'gatehouse_sts_api_server_away',
    help: '1 while the API server of a cluster answers no token reviews and no workload waits for it, by cluster.',
    labelNames: ['cluster'],
    registers,
  })
  const certificateExpires = new Gauge({
    name: 'gatehouse_tls_certificate_expires_seconds',
    help: 'When the certificate that a listener serves expires, as Unix time, by listener: public or webhook.',
    labelNames: ['listener'],
    registers,
  })
  const certificateCurrent = new Gauge({
    name: 'gatehouse_tls_certificate_current',
    help: '1 while a listener serves the newest certificate, 0 while a newer one cannot be used, by listener.',
    labelNames: ['listener'],
    registers,
  })
  const certificates = {
    serves(listener: string, expires: Date | undefined): void {
      if (expires !== undefined) certificateExpires.set({ listener }, expires.getTime() / 1000)
      else for (const gauge of [certificateExpires, certificateCurrent]) gauge.remove({ listener })
    },
    current(listener: string, isCurrent: boolean): void {
      certificateCurrent.set({ listener }, isCurrent ? 1 : 0)
    },
  }
  const webhookEnds = new Gauge({
    name: 'gatehouse_sts_webhook_certificate_ends_seconds',
    help: 'When the certificate that the injector serves ends, as Unix time; 0 where it has no listener.',
    registers,
  })
  const webhookRegistered = new Gauge({
    name: 'gatehouse_sts_webhook_current',
    help: 'Whether the webhook configuration of the API server could be written or was right when this process last looked.',
    registers,
  })
  const readable = new Gauge({
    name: 'gatehouse_sts_key_readable',
    help: 'Whether the key that signs could be read at the issuer URL when this process last looked, by endpoint.',
    labelNames: ['endpoint'],
    registers,
  })
  const custodyCalls = new Counter({
    name: 'gatehouse_key_custody_requests_total',
    help: 'Requests to the service that keeps signing keys, by operation and outcome: done, refused, failed, or skipped while it is away.',
    labelNames: ['operation', 'outcome'],
    registers,
  })
  const custodySeconds = new Histogram({
    name: 'gatehouse_key_custody_seconds',
    help: 'Duration of requests to the service that keeps signing keys, by operation.',
    labelNames: ['operation'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3],
    registers,
  })
  const keySource = new Gauge({
    name: 'gatehouse_sts_key_source_ok',
    help: 'Whether the given key, or the service that keeps the keys, could be used when this process last looked, by endpoint. 0: the endpoint continues with the key it has.',
    labelNames: ['endpoint'],
    registers,
  })
  const logins = new Counter({
    name: 'gatehouse_logins_total',
    help: 'Logins, by chain and outcome: begun, signed-in, refused, failed or locked tries, signed-out, ended.',
    labelNames: ['chain', 'outcome'],
    registers,
  })
  const ignoredHeaders = new Counter({
    name: 'gatehouse_forwarded_headers_ignored_total',
    help: 'Requests with X-Forwarded-For or Forwarded from a peer that is not a trusted proxy.',
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
  // Labels are resolved once per combination: applications come from the configuration, methods and statuses from
  // HTTP.
  const counters = new Map<string, ReturnType<typeof requests.labels>>()
  const timers = new Map<string, ReturnType<typeof seconds.labels>>()
  const exchangeCounters = new Map<string, ReturnType<typeof exchanges.labels>>()
  return {
    registry,
    /** One request of an application (empty if none was found) was answered. */
    answered(name: string, requested: string, status: number, ms: number): void {
      const application = bound.value('application', name)
      const method = methods.has(requested) ? requested : otherValue
      const key = `${method} ${status} ${application}`
      let counter = counters.get(key)
      if (counter === undefined) {
        counter = requests.labels(application, method, String(status))
        counters.set(key, counter)
      }
      counter.inc()
      let timer = timers.get(application)
      if (timer === undefined) {
        timer = seconds.labels(application)
        timers.set(application, timer)
      }
      const exemplar = currentExemplar()
      if (exemplar === undefined) timer.observe(ms / 1000)
      else seconds.observe({ labels: { application }, value: ms / 1000, ...exemplar })
    },
    spans: { counted: (outcome, count) => spans.inc({ outcome }, count) } satisfies SpanMeter,
    targets: {
      failed: (target, code) => targetFailures.inc(bound.of({ target, code })),
    } satisfies TargetMeter,
    forwardedHeadersIgnored(): void {
      ignoredHeaders.inc()
    },
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
    exchanged(name: string, outcome: string, reason: string): void {
      const endpoint = bound.value('endpoint', name)
      const key = `${outcome} ${reason} ${endpoint}`
      let counter = exchangeCounters.get(key)
      if (counter === undefined) {
        counter = exchanges.labels(endpoint, outcome, reason)
        exchangeCounters.set(key, counter)
      }
      counter.inc()
    },
    apiServers: {
      away: (cluster: string, isAway: boolean) => awayServers.set(bound.of({ cluster }), isAway ? 1 : 0),
    },
    connections: createConnectionMetrics(registry),
    certificates,
    webhook: {
      current: (isCurrent: boolean) => certificates.current('webhook', isCurrent),
      serves(ends: Date | undefined): void {
        certificates.serves('webhook', ends)
        webhookEnds.set(ends === undefined ? 0 : ends.getTime() / 1000)
      },
      registered(ok: boolean): void {
        webhookRegistered.set(ok ? 1 : 0)
      },
    },
    logins: {
      counted(chain: string, outcome: string): void {
        logins.inc(bound.of({ chain, outcome }))
      },
    },
    keys: {
      published(endpoint: string, destination: string, ok: boolean): void {
        publications.inc(bound.of({ endpoint, destination, outcome: ok ? 'done' : 'failed' }))
      },
      readable(endpoint: string, ok: boolean): void {
        readable.set(bound.of({ endpoint }), ok ? 1 : 0)
      },
      source(endpoint: string, ok: boolean): void {
        keySource.set(bound.of({ endpoint }), ok ? 1 : 0)
      },
    },
    custody(operation: string, outcome: string, seconds: number): void {
      custodyCalls.inc({ operation, outcome })
      if (outcome !== 'skipped') custodySeconds.observe({ operation }, seconds)
    },
    audit: createAuditMetrics(registry, bound),
    people: createPeopleMetrics(registry, bound),
    workflows: createWorkflowMetrics(registry, bound),
    reloads: new Counter({
      name: 'gatehouse_configuration_reloads_total',
      help: 'Configuration changes, by outcome: applied or refused.',
      labelNames: ['outcome'],
      registers,
    }),
    objects: objectGauge(registry),
    configurationOk: new Gauge({
      name: 'gatehouse_configuration_current',
      help: '1 while the running configuration is the newest one, 0 while a newer one was refused.',
      registers,
    }),
  }
}

export type Metrics = ReturnType<typeof createMetrics>

/** Counts the objects of the running configuration. */
function objectGauge(registry: Registry): (found: readonly FoundObject[]) => void {
  const gauge = new Gauge({
    name: 'gatehouse_configuration_objects',
    help: 'Objects of the running configuration, by kind and state: served, or set_aside because of an error.',
    labelNames: ['kind', 'state'],
    registers: [registry],
  })
  return (found) => {
    gauge.reset()
    for (const { kind, cause } of found) {
      const known =
        kinds.some((one) => one.kind === kind) || kind === 'values' || kind === endpointKind ? kind : 'other'
      gauge.inc({ kind: known, state: cause === undefined ? 'served' : 'set_aside' })
      gauge.inc({ kind: known, state: cause === undefined ? 'set_aside' : 'served' }, 0)
    }
  }
}

interface AuditMetrics extends AuditMeter {
  /** From now on the size of this audit is a metric. */
  watch(audit: Pick<AuditStore, 'size'>, log: Logger): void
}

/** Metrics of the audit, its sinks and its anchors. */
function createAuditMetrics(registry: Registry, bound: LabelBound): AuditMetrics {
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

/** Metrics of own issuers, registration forms and reports. */
function createPeopleMetrics(registry: Registry, bound: LabelBound) {
  const registers = [registry]
  const tokens = new Counter({
    name: 'gatehouse_issuer_tokens_total',
    help: 'Tokens of own issuers, by issuer, grant and outcome: issued, pending, refused or failed.',
    labelNames: ['issuer', 'how', 'outcome'],
    registers,
  })
  const answers = new Histogram({
    name: 'gatehouse_issuer_request_seconds',
    help: 'Time to answer at an own issuer, by issuer and endpoint.',
    labelNames: ['issuer', 'endpoint'],
    buckets: [0.005, 0.02, 0.05, 0.1, 0.5, 1, 5, 30],
    registers,
  })
  const registrations = new Counter({
    name: 'gatehouse_registrations_total',
    help: 'What was done at registration forms, by form and event.',
    labelNames: ['form', 'event'],
    registers,
  })
  const reports = new Counter({
    name: 'gatehouse_reports_total',
    help: 'Reports, by name, format and outcome: done, refused or failed.',
    labelNames: ['report', 'format', 'outcome'],
    registers,
  })
  const reportSeconds = new Histogram({
    name: 'gatehouse_report_seconds',
    help: 'Time from the question to the last byte of a report that was done.',
    labelNames: ['report'],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30],
    registers,
  })
  const issuer: IssuerMeter = {
    tokens: (name, how, outcome) => tokens.inc(bound.of({ issuer: name, how, outcome })),
    answered: (name, endpoint, millis) => answers.observe(bound.of({ issuer: name, endpoint }), millis / 1000),
  }
  const registration: RegistrationMeter = { counted: (form, event) => registrations.inc(bound.of({ form, event })) }
  const report: ReportMeter = {
    ran(name, format, outcome, millis) {
      reports.inc(bound.of({ report: name, format, outcome }))
      if (outcome === 'done') reportSeconds.observe(bound.of({ report: name }), millis / 1000)
    },
  }
  return { issuer, registration, report }
}

export type PeopleMetrics = ReturnType<typeof createPeopleMetrics>
