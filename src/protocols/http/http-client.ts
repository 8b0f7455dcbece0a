import type { Agent, IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import type { Socket } from 'node:net'
import { urlToHttpOptions } from 'node:url'
import { type Tracer, tracer, writeTraceparent } from '#kernel/tracing.ts'
import { Agent as HttpAgent, request as httpRequest } from './node-http.ts'
import {
  awaitedProxy,
  environmentProxies,
  forwarded,
  OutgoingHttpsAgent,
  type OutgoingProxies,
  type OutgoingProxy,
} from './outgoing-proxy.ts'

export interface HttpCall {
  readonly method: string
  readonly url: URL
  /** Replaces path and query of the URL, and is sent unchanged: a URL would resolve `..`. */
  readonly path?: string
  readonly headers: OutgoingHttpHeaders
  readonly body?: string | undefined
  /** Sends the call a second time if the server closes a kept connection just when it is used again. */
  readonly retryClosed?: boolean
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

interface HttpLimits {
  /** Ends the exchange, including its body. */
  readonly signal: AbortSignal
  /** The maximum number of bytes of a response. */
  readonly bytes: number
}

/** The response was too long, and its connection was ended; the call may have had its effect. */
export class AnswerTooLong extends Error {
  readonly status: number
  readonly headers: IncomingHttpHeaders

  constructor({ statusCode = 0, headers }: IncomingMessage, limit: number) {
    super(`the answer is longer than ${limit} bytes`)
    this.status = statusCode
    this.headers = headers
  }
}

/** How connections are made: an agent keeps them; without one, each call has its own. */
interface HttpConnections {
  readonly agent?: Agent | undefined
  /** The CAs, as PEM; the system's own if absent. */
  readonly ca?: string | undefined
  /** Those of the environment if absent. */
  readonly proxies?: OutgoingProxies | undefined
}

/** Sockets that connected. `reusedSocket` is not enough: a request that waited for a socket in use doesn't set it. */
const connectedSockets = new WeakSet<Socket>()
/** Errors of calls that failed before there was a connection. */
const unsentErrors = new WeakSet<Error>()

/** Whether the call failed before the server can have seen it. */
export const wasNotSent = (error: unknown): boolean => error instanceof Error && unsentErrors.has(error)

/**
 * Opens one exchange and returns its response when the headers have arrived. It uses no compression and follows no redirects, so
 * only the given server gets the data; a call by https is encrypted for it also through a proxy.
 */
export function openExchange(
  call: HttpCall,
  connections: HttpConnections,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return tracer?.current() === undefined
    ? sendCall(call, connections, signal)
    : sendTraced(tracer, call, connections, signal)
}

/** Paths and queries have ids and logins of users, so the span has only the server. */
function sendTraced(
  tracer: Tracer,
  call: HttpCall,
  connections: HttpConnections,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { method, url } = call
  const attributes = {
    'http.request.method': method,
    'url.scheme': url.protocol.slice(0, -1),
    'server.address': url.hostname,
    'server.port': Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
  }
  return tracer.span({ name: method, kind: 'client', parent: 'current', attributes }, async (span) => {
    const { context } = span
    const state = context.state === undefined ? {} : { tracestate: context.state }
    const headers = { ...call.headers, traceparent: writeTraceparent(context), ...state }
    const response = await sendCall({ ...call, headers }, connections, signal)
    const { statusCode = 0 } = response
    span.set({ 'http.response.status_code': statusCode })
    if (statusCode >= 400) span.fail(String(statusCode))
    return response
  })
}

function sendCall(call: HttpCall, connections: HttpConnections, signal: AbortSignal): Promise<IncomingMessage> {
  const { url, body, retryClosed = false } = call
  const { proxies = environmentProxies() } = connections
  const isSecure = url.protocol === 'https:'
  // A call by https is sent to its server, through a tunnel of its agent.
  const proxy = isSecure ? undefined : proxies.find(url)
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const speaksTls = proxy?.isSecure ?? isSecure
  const options = { ...requestOptions(call, connections, proxies, proxy), signal }
  const sent = (speaksTls ? httpsRequest : httpRequest)(options)
  let socket: Socket | undefined
  let connected = false
  const fail = (error: Error): void => {
    if (!connected) unsentErrors.add(error)
    reject(error)
  }
  sent.on('response', (response) => {
    if (proxy === undefined || response.statusCode !== 407) resolve(response)
    else {
      response.destroy()
      connected = false
      fail(new Error(`the proxy ${proxy.name} wants another user name or password (407)`))
    }
  })
  sent.on('socket', (given) => {
    socket = given
    connected = connectedSockets.has(given)
    if (connected) return
    given.once(speaksTls ? 'secureConnect' : 'connect', () => {
      connectedSockets.add(given)
      connected = true
    })
  })
  sent.on('error', (error) => {
    const wasClosed = sent.reusedSocket && 'code' in error && error.code === 'ECONNRESET'
    if (wasClosed && retryClosed) resolve(sendCall({ ...call, retryClosed: false }, connections, signal))
    else if (proxy !== undefined) {
      fail(new Error(`the call through the proxy ${proxy.name} failed: ${error.message}`, { cause: error }))
    } else {
      const waited = signal.aborted && socket !== undefined ? awaitedProxy(socket) : undefined
      if (waited === undefined) fail(error)
      else fail(new Error(`the proxy ${waited.name} had not connected when the call was ended`, { cause: error }))
    }
  })
  // A server that switches protocols, which no call asks for, ends a call without an error.
  sent.on('close', () => reject(new Error('the connection closed before there was an answer')))
  sent.end(body)
  return promise
}

/** `proxy`: that of a call by http. */
function requestOptions(
  { method, url, path, headers: given, body }: HttpCall,
  { agent, ca }: HttpConnections,
  proxies: OutgoingProxies,
  proxy: OutgoingProxy | undefined,
): RequestOptions {
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
  const headers = { ...given, ...length }
  const asked = urlToHttpOptions(url)
  if (proxy === undefined) {
    const ownAgent = (): Agent | false => (url.protocol === 'https:' ? new OutgoingHttpsAgent({}, proxies) : false)
    return { ...asked, method, headers, agent: agent ?? ownAgent(), path: path ?? asked.path, ca }
  }
  return { method, agent: proxy.isSecure ? false : (agent ?? false), ...forwarded(url, headers, proxy, path) }
}

/** Reads a whole body. Throws AnswerTooLong beyond the limit. */
export async function readBytes(response: IncomingMessage, limit: number): Promise<Buffer> {
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
  return Buffer.concat(chunks)
}

/** `readBytes` as text. */
export const readBody = async (response: IncomingMessage, limit: number): Promise<string> =>
  (await readBytes(response, limit)).toString('utf8')

/**
 * Sends one call and reads its response, with any status. Rejects with a plain Error if there is no complete
 * response.
 */
export async function exchange(
  call: HttpCall,
  connections: HttpConnections,
  { signal, bytes }: HttpLimits,
): Promise<HttpAnswer> {
  const response = await openExchange(call, connections, signal)
  const body = await readBody(response, bytes)
  // A body without a length seems complete when the signal ends its connection.
  signal.throwIfAborted()
  return { status: response.statusCode ?? 0, headers: response.headers, body }
}

/** `exchange` over connections that the sender keeps. */
export type HttpSend = (call: HttpCall, limits: HttpLimits) => Promise<HttpAnswer>

export interface HttpPool {
  readonly send: HttpSend
  /** `openExchange` over kept connections. */
  open(call: HttpCall, signal: AbortSignal): Promise<IncomingMessage>
  close(): void
}

/** Keeps connections to any number of servers: at most `maxSockets` each, of which `maxFreeSockets` may be idle. */
export function openHttpPool(
  ca?: string,
  { maxSockets = 32, maxFreeSockets = 8 } = {},
  proxies = environmentProxies(),
): HttpPool {
  const options = { keepAlive: true, maxSockets, maxFreeSockets, timeout: 60_000 }
  const plain = new HttpAgent(options)
  const secure = new OutgoingHttpsAgent(ca === undefined ? options : { ...options, ca }, proxies)
  const agentFor = ({ url }: HttpCall): HttpConnections => ({
    agent: url.protocol === 'https:' ? secure : plain,
    proxies,
  })
  return {
    send: (call, limits) => exchange(call, agentFor(call), limits),
    open: (call, signal) => openExchange(call, agentFor(call), signal),
    close: () => {
      plain.destroy()
      secure.destroy()
    },
  }
}
