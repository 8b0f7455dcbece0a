import Fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from '#kernel/logger.ts'
import { answerReady } from '#server/app.ts'
import type { ConnectionLimits } from '#server/http-limits.ts'
import { createListener } from '#server/http-server.ts'
import type { Metrics } from '#server/metrics.ts'
import { noSchemas } from '#server/no-schemas.ts'
import { TrustedProxies } from '#server/trusted-proxies.ts'

/** The operators' listener: metrics and health, apart from the public one so that it can stay inside. */
export function createOperationsApp(parts: {
  metrics: Metrics
  log: Logger
  limits: ConnectionLimits
  ready(): Promise<void>
}): FastifyInstance {
  const { limits, log, metrics } = parts
  const listening = { listener: 'operations', limits, log, meter: metrics.connections, proxies: new TrustedProxies([]) }
  const app = Fastify({
    logger: false,
    schemaController: noSchemas,
    forceCloseConnections: 'idle',
    bodyLimit: 1,
    // The listener answers them itself.
    clientErrorHandler: () => {},
    serverFactory: (handler) => createListener(listening, undefined, handler),
  })
  const { registry } = parts.metrics
  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
  app.get('/check_alive', (_request, reply) => reply.type('text/plain').send('alive\n'))
  app.get('/ready', (_request, reply) => answerReady(parts, reply))
  return app
}
