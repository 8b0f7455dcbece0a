import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Where it listens, with the port it really got. */
export async function listenAt(
  app: FastifyInstance,
  at: { readonly host: string; readonly port: number },
  scheme: 'http' | 'https',
): Promise<string> {
  // Many clients at once must not find the queue of the system full.
  await app.listen({ host: at.host, port: at.port, backlog: 2048 })
  const { address, port, family } = app.server.address() as AddressInfo
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

/** Takes no new requests and ends those under way. */
export async function closeListener(app: FastifyInstance): Promise<void> {
  // A connection whose request was under way at the first call has nothing to do after its answer.
  const sweeper = setInterval(() => app.server.closeIdleConnections(), 100)
  await app.close().finally(() => clearInterval(sweeper))
}
