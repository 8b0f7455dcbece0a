import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import type { Registry } from 'prom-client'
import type { Logger } from '#kernel/logger.ts'
import type { ConnectionMeter } from '#requests/listener/connections.ts'
import type { ConnectionLimits } from '#requests/listener/http-limits.ts'
import { createListener, noSchemas } from '#requests/listener/http-server.ts'
import { TrustedProxies } from '#requests/listener/trusted-proxies.ts'
import type { HealthReport } from '#server/health.ts'
import { metricsAccess } from '#server/metrics/metrics-access.ts'

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
export function createOperationsApp({ operations, limits, meter, log }: OperationsParts): FastifyInstance {
  const listening = { listener: 'operations', limits, log, meter, proxies: new TrustedProxies([]) }
  const app = Fastify({
    logger: false,
    schemaController: noSchemas,
    forceCloseConnections: 'idle',
    bodyLimit: 1,
    // The listener answers client errors itself.
    clientErrorHandler: () => {},
    serverFactory: (handler) => createListener(listening, undefined, handler),
  })
  app.get('/metrics', async ({ headers: { accept } }, reply) => {
    const { contentType, body } = await metricsAccess(() => operations.metrics()).write({ accept })
    return reply.type(contentType).send(body)
  })
  app.get('/health', async (_request, reply) => {
    const report = await operations.health()
    return reply
      .code(report.status === 'down' ? 503 : 200)
      .header('cache-control', 'no-store')
      .send(report)
  })
  app.get('/check_alive', (_request, reply) => reply.type('text/plain').send('alive\n'))
  app.get('/ready', (_request, reply) => answerReady({ ready: () => operations.ready(), log }, reply))
  return app
}

interface ReadyParts {
  /** Rejects with the reason if requests can't be served. */
  ready(): Promise<void>
  readonly log: Logger
}

export async function answerReady({ ready, log }: ReadyParts, reply: FastifyReply): Promise<FastifyReply> {
  try {
    await ready()
    return reply.type('text/plain').send('ready\n')
  } catch (err) {
    log.warn('not ready', { err })
    return reply.code(503).header('retry-after', '1').type('text/plain').send('not ready\n')
  }
}
