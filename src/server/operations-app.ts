import Fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from '#kernel/logger.ts'
import { answerReady } from '#server/app.ts'
import { answerClientError } from '#server/client-errors.ts'
import { httpLimits } from '#server/http-limits.ts'
import type { Metrics } from '#server/metrics.ts'
import { noSchemas } from '#server/no-schemas.ts'

/** The operators' listener: metrics and health, apart from the public one so that it can stay inside. */
export function createOperationsApp(parts: { metrics: Metrics; log: Logger; ready(): Promise<void> }): FastifyInstance {
  const app = Fastify({
    logger: false,
    schemaController: noSchemas,
    forceCloseConnections: 'idle',
    bodyLimit: 1,
    requestTimeout: httpLimits.requestSeconds * 1000,
    keepAliveTimeout: httpLimits.keepAliveSeconds * 1000,
    clientErrorHandler: answerClientError,
    http: { maxHeaderSize: httpLimits.headerBytes },
  })
  const { registry } = parts.metrics
  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
  app.get('/check_alive', (_request, reply) => reply.type('text/plain').send('alive\n'))
  app.get('/ready', (_request, reply) => answerReady(parts, reply))
  return app
}
