import type { Agent, IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { Agent as HttpAgent, request as httpRequest } from '#kernel/node-http.ts'

export interface HttpCall {
  readonly method: string
  readonly url: URL
  readonly headers: OutgoingHttpHeaders
  readonly body?: string
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface HttpLimits {
  /** Ends the exchange, its body included. */
  readonly signal: AbortSignal
  /** The most bytes of an answer. */
  readonly bytes: number
}

/** The answer was longer than is read, and its connection was ended; the exchange itself may have had its effect. */
export class AnswerTooLong extends Error {
  readonly status: number
  readonly headers: IncomingHttpHeaders

  constructor({ statusCode = 0, headers }: IncomingMessage, limit: number) {
    super(`the answer is longer than ${limit} bytes`)
    this.status = statusCode
    this.headers = headers
  }
}

/** How connections are made: one agent keeps them; without one, each call has a connection of its own. */
export interface HttpConnections {
  readonly agent?: Agent | undefined
  /** The certificate authorities, as PEM; the system's own when absent. */
  readonly ca?: string | undefined
}

/**
 * Opens one exchange and returns its answer when the headers are there. Without proxy, compression or redirects: what is
 * sent goes to the address alone.
 */
export function openExchange(
  { method, url, headers, body }: HttpCall,
  { agent, ca }: HttpConnections,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
  const trusted = ca === undefined ? {} : { ca }
  const options = { method, agent: agent ?? false, signal, headers: { ...headers, ...length }, ...trusted } as const
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const sent = send(url, options, resolve)
  // The server may close a kept connection at the moment it is used again; `reusedSocket` marks such an error.
  sent.on('error', (error) => reject(Object.assign(error, { reusedSocket: sent.reusedSocket })))
  sent.end(body)
  return promise
}

/** Reads a whole body as text. Throws AnswerTooLong beyond the limit. */
export async function readBody(response: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) {
      response.destroy()
      throw new AnswerTooLong(response, limit)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Sends one call and reads its answer, whatever the status. Rejects with a plain Error when there is no whole answer. */
export async function exchange(
  call: HttpCall,
  connections: HttpConnections,
  { signal, bytes }: HttpLimits,
): Promise<HttpAnswer> {
  const response = await openExchange(call, connections, signal)
  return { status: response.statusCode ?? 0, headers: response.headers, body: await readBody(response, bytes) }
}

/** `exchange` over connections that the sender keeps. */
export type HttpSend = (call: HttpCall, limits: HttpLimits) => Promise<HttpAnswer>

export interface HttpPool {
  readonly send: HttpSend
  close(): void
}

/** Keeps connections to any number of servers: at most `maxSockets` each, of which `maxFreeSockets` may be idle. */
export function openHttpPool(ca?: string, { maxSockets = 32, maxFreeSockets = 8 } = {}): HttpPool {
  const options = { keepAlive: true, maxSockets, maxFreeSockets, timeout: 60_000 }
  const plain = new HttpAgent(options)
  const secure = new HttpsAgent(ca === undefined ? options : { ...options, ca })
  return {
    send: (call, limits) => exchange(call, { agent: call.url.protocol === 'https:' ? secure : plain }, limits),
    close: () => {
      plain.destroy()
      secure.destroy()
    },
  }
}
