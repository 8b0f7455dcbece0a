import type { ServerResponse } from 'node:http'
import { Counter, Gauge, type Registry } from 'prom-client'
import { currentExemplar, histogramWithExemplars } from '#server/metrics/exemplar.ts'
import { type LabelBound, otherValue } from '#server/metrics/label-bound.ts'

/** Prometheus treats an empty label as no label. */
const noApplication = 'none'

/** Methods that a caller makes up count together. */
const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Metrics of requests and logins. */
export function createRequestMetrics(registry: Registry, bound: LabelBound) {
  const registers = [registry]
  const requests = new Counter({
    name: 'gatehouse_http_requests_total',
    help: 'Requests answered, by application, method, status and outcome: ok, refused for what the caller sent, or failed.',
    labelNames: ['application', 'method', 'status', 'outcome'],
    registers,
  })
  const seconds = histogramWithExemplars(registry, {
    name: 'gatehouse_http_request_seconds',
    help: 'Time to answer, by application.',
    labelNames: ['application'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30],
  })
  const inFlight = new Gauge({
    name: 'gatehouse_http_requests_in_flight',
    help: 'Requests that are being answered, by listener: public or webhook.',
    labelNames: ['listener'],
    registers,
  })
  const ignoredHeaders = new Counter({
    name: 'gatehouse_forwarded_headers_ignored_total',
    help: 'Requests with X-Forwarded-For or Forwarded from a peer that is not a trusted proxy.',
    registers,
  })
  const logins = new Counter({
    name: 'gatehouse_logins_total',
    help: 'Logins, by chain and outcome: begun, signed-in, refused, failed or locked tries, signed-out, ended.',
    labelNames: ['chain', 'outcome'],
    registers,
  })
  // Labels are resolved once per combination: applications come from the configuration, methods and statuses from
  // HTTP.
  const counters = new Map<string, ReturnType<typeof requests.labels>>()
  const timers = new Map<string, ReturnType<typeof seconds.labels>>()
  return {
    /** A request arrived whose response closes when it is sent, or when its client leaves. */
    arrived(listener: 'public' | 'webhook', response: ServerResponse): void {
      inFlight.inc({ listener })
      response.once('close', () => inFlight.dec({ listener }))
    },
    /**
     * One request of an application (empty if none was found) was answered. `isRefusal`: for what the caller sent, which
     * some APIs answer with a status of 500.
     */
    answered(name: string, requested: string, status: number, ms: number, isRefusal = status < 500): void {
      const application = bound.value('application', name === '' ? noApplication : name)
      const method = methods.has(requested) ? requested : otherValue
      const outcome = status < 400 ? 'ok' : isRefusal ? 'refused' : 'failed'
      const key = `${method} ${status} ${outcome} ${application}`
      let counter = counters.get(key)
      if (counter === undefined) {
        counter = requests.labels(application, method, String(status), outcome)
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
    forwardedHeadersIgnored(): void {
      ignoredHeaders.inc()
    },
    logins: {
      counted(chain: string, outcome: string): void {
        logins.inc(bound.of({ chain, outcome }))
      },
    },
  }
}
