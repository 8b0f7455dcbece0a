import type { IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { Agent as HttpAgent, request as httpRequest } from '#kernel/node-http.ts'
import { readSmallFile } from '#kernel/small-file.ts'
import type { Authority } from './webhook-config.ts'

export interface HttpRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

export class AnswerTooLarge extends Error {}

/** A request that failed before the server can have seen it. */
export class NotSent extends Error {}

export interface ConnectionOptions {
  readonly url: URL
  readonly authority: Authority
  readonly connections: number
  readonly maxAnswerBytes: number
}

/** Connections to one server, kept and bounded. Redirects are answers like any other, and nothing is compressed. */
export class HttpConnection {
  readonly #url: URL
  readonly #agent: HttpAgent | HttpsAgent
  readonly #maxBytes: number
  /** Sockets that connected before: a request that had to wait gets one without `reusedSocket` being set. */
  readonly #connected = new WeakSet<Socket>()

  static async open(options: ConnectionOptions): Promise<HttpConnection> {
    const { authority } = options
    if (authority === undefined) return new HttpConnection(options, undefined)
    return new HttpConnection(options, 'pem' in authority ? authority.pem : await readSmallFile(authority.file))
  }

  constructor({ url, connections, maxAnswerBytes }: ConnectionOptions, ca: string | undefined) {
    this.#url = url
    this.#maxBytes = maxAnswerBytes
    const options = { keepAlive: true, maxSockets: connections, maxFreeSockets: connections }
    this.#agent =
      url.protocol === 'https:'
        ? new HttpsAgent({ ...options, ...(ca === undefined ? {} : { ca }) })
        : new HttpAgent(options)
  }

  /** The whole answer. Throws NotSent, AnswerTooLarge, or whatever broke the connection. */
  async send(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const response = await this.#open(request, signal)
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > this.#maxBytes) {
        response.destroy()
        throw new AnswerTooLarge(`more than ${this.#maxBytes} bytes`)
      }
      chunks.push(chunk)
    }
    return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }
  }

  close(): void {
    this.#agent.destroy()
  }

  #open({ method, path, headers, body }: HttpRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const isSecure = this.#url.protocol === 'https:'
    const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
    const options = { method, path, agent: this.#agent, signal, headers: { ...headers, ...length } }
    return new Promise((resolve, reject) => {
      let connected = false
      const outgoing = (isSecure ? httpsRequest : httpRequest)(this.#url, options, resolve)
      outgoing.on('socket', (socket) => {
        if (this.#connected.has(socket)) connected = true
        else
          socket.once(isSecure ? 'secureConnect' : 'connect', () => {
            this.#connected.add(socket)
            connected = true
          })
      })
      outgoing.on('error', (error) => {
        reject(connected ? error : new NotSent(error.message, { cause: error }))
      })
      outgoing.end(body)
    })
  }
}
