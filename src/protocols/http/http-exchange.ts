import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { Agent as HttpAgent, request as httpRequest } from '#kernel/node-http.ts'

export interface HttpCall {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
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

/** The answer was longer than is read; the exchange itself may have had its effect. */
export class AnswerTooLong extends Error {}

/** Sends one call and reads its answer, whatever the status. Rejects with a plain Error when there is no whole answer. */
export type HttpSend = (call: HttpCall, limits: HttpLimits) => Promise<HttpAnswer>

export interface HttpPool {
  readonly send: HttpSend
  close(): void
}

/**
 * Exchanges over kept connections, without proxy, compression or redirects: what is sent goes to the address alone.
 * `authority` is the PEM text of the certificate authority; the system's own when absent.
 */
export function openHttpPool(authority?: string): HttpPool {
  const options = { keepAlive: true, maxSockets: 32, maxFreeSockets: 8, timeout: 60_000 }
  const plain = new HttpAgent(options)
  const secure = new HttpsAgent(authority === undefined ? options : { ...options, ca: authority })
  return {
    send: async (call, limits) => {
      const isSecure = call.url.protocol === 'https:'
      const response = await open(call, isSecure ? secure : plain, isSecure, limits.signal)
      return { status: response.statusCode ?? 0, headers: response.headers, body: await read(response, limits.bytes) }
    },
    close: () => {
      plain.destroy()
      secure.destroy()
    },
  }
}

function open(call: HttpCall, agent: HttpAgent, isSecure: boolean, signal: AbortSignal): Promise<IncomingMessage> {
  const { method, url, body } = call
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const send = isSecure ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    send(url, { method, agent, signal, headers: { ...call.headers, ...length } }, resolve)
      .on('error', reject)
      .end(body)
  })
}

async function read(response: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) {
      response.destroy()
      throw new AnswerTooLong(`the answer is longer than ${limit} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
