import { once } from 'node:events'
import type http from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { type ErrorCode, errorCodes } from '#kernel/errors.ts'
import { createServer, STATUS_CODES } from '#protocols/http/node-http.ts'
import { Connections, type ConnectionsParts } from './connections.ts'
import { httpLimits } from './http-limits.ts'
import { ReservedPort } from './reserved-port.ts'
import { securityHeaders } from './security-headers.ts'

/** A certificate that is already read, as PEM. */
export interface ListenerTls {
  readonly cert: string
  readonly key: string
  /** Only clients with a certificate of these CAs can connect. */
  readonly clientAuthorities?: string | undefined
}

/**
 * The server of any listener: with limits for connections, headers and times, each of which ends with a closed
 * socket.
 */
export function createListener(
  parts: ConnectionsParts,
  tls: ListenerTls | undefined,
  handler: http.RequestListener,
): http.Server {
  const { headerSeconds, requestSeconds, idleSeconds } = parts.limits
  const options: http.ServerOptions = {
    maxHeaderSize: httpLimits.headerBytes,
    headersTimeout: headerSeconds * 1000,
    requestTimeout: Math.max(requestSeconds, headerSeconds) * 1000,
    keepAliveTimeout: idleSeconds * 1000,
    connectionsCheckingInterval: 1000,
    // HttpRequest rejects a missing Host like a malformed one, with a response that explains it.
    requireHostHeader: false,
  }
  const connections = new Connections(parts)
  const admit: http.RequestListener = (request, response) => {
    const admission = connections.request(request, response)
    if (admission === 'closing') return
    if (admission === 'admitted-once') response.shouldKeepAlive = false
    if (admission === 'over-limit') refuse(response, 'TOO_MANY_CONNECTIONS', { 'retry-after': '1' })
    else if (admission === 'over-pipelined') refuse(response, 'TOO_MANY_REQUESTS', { 'retry-after': '1' })
    else {
      const code = problemOf(request)
      if (code === undefined) return handler(request, response)
      parts.meter.refused(parts.listener, 'malformed')
      refuse(response, code)
      // What follows on the connection may not be what its sender takes for a request.
      connections.closeSoon(request.socket)
    }
  }
  const server =
    tls === undefined
      ? createServer(options, admit)
      : https.createServer(
          { ...options, ...certificateOf(tls), minVersion: 'TLSv1.2', handshakeTimeout: headerSeconds * 1000 },
          admit,
        )
  // An expectation other than 100-continue may be ignored (RFC 9110 10.1.1). Node.js would answer it without a trace.
  server.on('checkExpectation', admit)
  // Counted here and rejected, because Node.js would silently drop headers beyond its limit.
  server.maxHeadersCount = 0
  server.timeout = httpLimits.quietSeconds * 1000
  server.prependListener('connection', (socket: Socket) => connections.open(socket))
  if (tls !== undefined) server.prependListener('secureConnection', (socket: Socket) => connections.secured(socket))
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) =>
    answerClientError(connections, error, socket),
  )
  return server
}

/** Another transfer coding is not decoded, and in HTTP/1.0 a proxy may not know any (RFC 9112 6.1). */
function problemOf({ rawHeaders, headers, httpVersion }: http.IncomingMessage): ErrorCode | undefined {
  if (rawHeaders.length > 2 * httpLimits.headerCount) return 'HEADERS_TOO_LARGE'
  const coding = headers['transfer-encoding']
  if (coding === undefined || (coding.toLowerCase() === 'chunked' && httpVersion !== '1.0')) return undefined
  return 'BAD_REQUEST'
}

const parserErrors: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
}

/** Answers a request that is malformed or did not arrive completely, and closes the socket. */
function answerClientError(connections: Connections, error: Error & { code?: string }, socket: Socket): void {
  if (socket.destroyed) return
  const code = parserErrors[error.code ?? ''] ?? 'BAD_REQUEST'
  const answers = error.code === 'ECONNRESET' ? undefined : connections.failed(socket, code)
  if (answers === undefined || !connections.isOpen(socket)) {
    socket.destroy()
    return
  }
  if (answers === 'listener') {
    const { status, body } = answerTo(code)
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      ...Object.entries(securityHeaders()).map(([name, value]) => `${name}: ${value}`),
    ]
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  }
  connections.closeSoon(socket)
}

/** No application is known yet, so it is in no API's format. */
function refuse(response: http.ServerResponse, code: ErrorCode, headers: http.OutgoingHttpHeaders = {}): void {
  const { status, body } = answerTo(code)
  const head = { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(body) }
  response.writeHead(status, { ...securityHeaders(), ...head, connection: 'close', ...headers }).end(body)
}

const answerTo = (code: ErrorCode): { readonly status: number; readonly body: string } => {
  const { status, text } = errorCodes[code]
  return { status, body: JSON.stringify({ errors: [text], code }) }
}

function certificateOf({ cert, key, clientAuthorities: ca }: ListenerTls): https.ServerOptions {
  return ca === undefined ? { cert, key } : { cert, key, ca, requestCert: true, rejectUnauthorized: true }
}

/** Many simultaneous clients must not overflow the queue of the system. */
const backlog = 2048

/** A server that an address is given to once, and that ends without cutting off requests. */
export class Listener {
  readonly server: http.Server
  #isClosing = false
  #closed: Promise<void> | undefined

  /** Calls `serve` for each request that the limits let pass. */
  constructor(parts: ConnectionsParts, tls: ListenerTls | undefined, serve: http.RequestListener) {
    this.server = createListener(parts, tls, (request, response) => {
      if (this.#isClosing) response.shouldKeepAlive = false
      serve(request, response)
    })
  }

  /** Returns the address, with the actual port. Rejects if it is not free. */
  async listen(at: { readonly host: string; readonly port: number } | ReservedPort): Promise<string> {
    if (at instanceof ReservedPort) this.server.listen(at.take(), backlog)
    else this.server.listen({ host: at.host, port: at.port, backlog })
    await once(this.server, 'listening')
    const { address, port: actual, family } = this.server.address() as AddressInfo
    const scheme = this.server instanceof https.Server ? 'https' : 'http'
    return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${actual}`
  }

  /** Accepts no new connections, and resolves when the open requests are finished. */
  close(): Promise<void> {
    this.#isClosing = true
    this.#closed ??= this.server.listening ? this.#drain() : Promise.resolve()
    return this.#closed
  }

  async #drain(): Promise<void> {
    // A connection with an open request becomes idle after its response.
    const sweeper = setInterval(() => this.server.closeIdleConnections(), 100)
    const closed = once(this.server, 'close')
    this.server.close()
    await closed.finally(() => clearInterval(sweeper))
  }
}
