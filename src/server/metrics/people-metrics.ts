import { Counter, Histogram, type Registry } from 'prom-client'
import type { IssuerMeter } from '#features/issuer/service/issuer-audit.ts'
import type { RegistrationMeter } from '#features/registration/service/registrations.ts'
import type { ReportMeter } from '#features/reports/report-endpoint.ts'
import type { LabelBound } from '#server/metrics/label-bound.ts'

/** Metrics of own issuers, registration forms and reports. */
export function createPeopleMetrics(registry: Registry, bound: LabelBound) {
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
