import type { Registry } from 'prom-client'
import type { Logger } from '#kernel/logger.ts'
import type { ConnectionMeter } from '#requests/listener/connections.ts'
import type { ConnectionLimits } from '#requests/listener/http-limits.ts'
import { Listener } from '#requests/listener/http-server.ts'
import { TrustedProxies } from '#requests/listener/trusted-proxies.ts'
import type { HealthReport } from '#server/health.ts'
import { metricsAccess } from '#server/metrics/metrics-access.ts'
import { answerPage, healthPages, jsonPage, type PlainPages } from '#server/plain-pages.ts'

/** What the metrics listener reports: of one process, or of all workers together. */
export interface Operations {
  /** The metrics of this time. */
  metrics(): Promise<Registry> | Registry
  /** Rejects with the reason if requests can't be served. */
  ready(): Promise<void>
  health(): Promise<HealthReport>
}

interface OperationsParts {
  readonly operations: Operations
  readonly limits: ConnectionLimits
  readonly meter: ConnectionMeter
  readonly log: Logger
}

/** Metrics and health checks, on a separate listener that need not be public. */
export function createOperationsApp({ operations, limits, meter, log }: OperationsParts): Listener {
  const pages: PlainPages = new Map([
    ...healthPages({ ready: () => operations.ready(), log }),
    [
      '/metrics',
      async ({ headers: { accept } }) => {
        const { contentType, body } = await metricsAccess(() => operations.metrics()).write({ accept })
        return { headers: { 'content-type': contentType }, body }
      },
    ],
    [
      '/health',
      async () => {
        const report = await operations.health()
        return jsonPage(report.status === 'down' ? 503 : 200, report, { 'cache-control': 'no-store' })
      },
    ],
  ])
  const listening = { listener: 'operations', limits, log, meter, proxies: new TrustedProxies([]) }
  return new Listener(listening, undefined, (request, response) => void answerPage(pages, request, response, log))
}
