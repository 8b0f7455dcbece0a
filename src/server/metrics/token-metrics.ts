import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { OpenGrants } from '#features/sts/grants/token-grants.ts'
import type { LabelBound } from '#server/metrics/label-bound.ts'

/** Metrics of the token service and of the keys that sign its tokens. */
export function createTokenMetrics(registry: Registry, bound: LabelBound) {
  const registers = [registry]
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
  let grants: Iterable<Pick<OpenGrants, 'name' | 'ageSeconds'>> = []
  new Gauge({
    name: 'gatehouse_sts_grants_age_seconds',
    help: 'Seconds since the API server of a cluster last confirmed its TokenGrants to this process, by cluster.',
    labelNames: ['cluster'],
    registers,
    collect() {
      this.reset()
      for (const { name: cluster, ageSeconds } of grants) {
        const seconds = ageSeconds()
        if (seconds !== undefined) this.set(bound.of({ cluster }), seconds)
      }
    },
  })
  // Labels are resolved once per combination.
  const exchangeCounters = new Map<string, ReturnType<typeof exchanges.labels>>()
  return {
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
    /** Those that are watched whenever the metrics are read. */
    watchGrants(open: typeof grants): void {
      grants = open
    },
    keys: createKeyMetrics(registry, bound),
    custody: createCustodyMetrics(registry),
  }
}

/** How the endpoints publish their keys, and get them. */
function createKeyMetrics(registry: Registry, bound: LabelBound) {
  const registers = [registry]
  const publications = new Counter({
    name: 'gatehouse_sts_publications_total',
    help: 'Attempts to publish the documents of an issuer, by endpoint, destination and outcome: done or failed.',
    labelNames: ['endpoint', 'destination', 'outcome'],
    registers,
  })
  const readable = new Gauge({
    name: 'gatehouse_sts_key_readable',
    help: 'Whether the key that signs could be read at the issuer URL when this process last looked, by endpoint.',
    labelNames: ['endpoint'],
    registers,
  })
  const keySource = new Gauge({
    name: 'gatehouse_sts_key_source_ok',
    help: 'Whether the given key, or the service that keeps the keys, could be used when this process last looked, by endpoint. 0: the endpoint continues with the key it has.',
    labelNames: ['endpoint'],
    registers,
  })
  return {
    published(endpoint: string, destination: string, ok: boolean): void {
      publications.inc(bound.of({ endpoint, destination, outcome: ok ? 'done' : 'failed' }))
    },
    readable(endpoint: string, ok: boolean): void {
      readable.set(bound.of({ endpoint }), ok ? 1 : 0)
    },
    source(endpoint: string, ok: boolean): void {
      keySource.set(bound.of({ endpoint }), ok ? 1 : 0)
    },
  }
}

/** The service that keeps signing keys. */
function createCustodyMetrics(registry: Registry) {
  const registers = [registry]
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
  return (operation: string, outcome: string, seconds: number): void => {
    custodyCalls.inc({ operation, outcome })
    if (outcome !== 'skipped') custodySeconds.observe({ operation }, seconds)
  }
}
