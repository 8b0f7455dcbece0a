import type http from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { type Awaitable, andThen, settle } from '#kernel/awaitable.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { LogFields, Logger } from '#kernel/logger.ts'
import { withoutTokens } from '#kernel/text/redaction.ts'
import { readTraceparent, type Span, type SpanStart, tracer } from '#kernel/tracing.ts'
import { isHealthCheck } from '#requests/listener/connections.ts'
import { type ConnectionLimits, httpLimits } from '#requests/listener/http-limits.ts'
import { HttpRequest, validPrefix } from '#requests/listener/http-request.ts'
import { Listener, type ListenerTls } from '#requests/listener/http-server.ts'
import { securityHeaders } from '#requests/listener/security-headers.ts'
import type { TrustedProxies } from '#requests/listener/trusted-proxies.ts'
import { errorResponse, type PipelineAnswer } from '#requests/pipeline/pipeline.ts'
import { jsonErrors } from '#sdk/http/error-format.ts'
import { type GatewayResponse, header } from '#sdk/http/http.ts'
import type { Runtime } from '#server/composition/runtime.ts'
import type { AccessLog } from '#server/log/log.ts'
import type { Metrics } from '#server/metrics/metrics.ts'
import { answerPage, healthPages } from '#server/plain-pages.ts'
import type { RunningConfiguration } from '#server/reload.ts'

interface AppParts {
  readonly running: RunningConfiguration
  readonly metrics: Metrics
  readonly log: Logger
  readonly accessLog: AccessLog
  readonly proxies: TrustedProxies
  readonly limits: ConnectionLimits
  readonly tls: ListenerTls | undefined
  /** For a listener with a single path, which is configured under its own host. */
  readonly only?: { readonly host: string; readonly path: string }
  /** Resolves when requests can be served; otherwise rejects with the reason. */
  ready(): Promise<void>
}

/** The public listener: answers health checks, and everything else by the pipeline of the running configuration. */
export function createApp(parts: AppParts): Listener {
  const { limits, proxies, log, tls } = parts
  const listener = parts.only === undefined ? 'public' : 'webhook'
  const meter = parts.metrics.connections
  const health = healthPages(parts)
  return new Listener({ listener, limits, proxies, log, meter }, tls, (request, response) => {
    if (isHealthCheck(request)) void answerPage(health, request, response.setHeaders(healthHeaders), log)
    else {
      parts.metrics.arrived(listener, response)
      answer(parts, { id: newId(), raw: request, response })
    }
  })
}

const healthHeaders = new Map(Object.entries(securityHeaders()))

/** A request and its response, as Node.js has them. */
interface Exchanged {
  readonly id: string
  readonly raw: http.IncomingMessage
  readonly response: http.ServerResponse
}

function answer(parts: AppParts, exchanged: Exchanged): void {
  const started = performance.now()
  const work = (): Awaitable<void> => {
    const request = new HttpRequest(exchanged.raw, exchanged.id, parts.proxies, parts.only?.host)
    if (parts.only !== undefined && request.path !== parts.only.path) throw new GatewayError('NOT_FOUND', request.path)
    if (tracer === undefined) return respond(parts, request, exchanged, started)
    return tracer.span(requestSpan(request), async (span) => respond(parts, request, exchanged, started, span))
  }
  void settle(work, nothing, (error) => refuse(parts, error, exchanged))
}

const nothing = (): void => {}

function respond(
  parts: AppParts,
  request: HttpRequest,
  exchanged: Exchanged,
  started: number,
  span?: Span,
): Awaitable<void> {
  return parts.running.use((runtime) =>
    andThen(inTime(runtime, request), (result) => {
      request.answered()
      if (span !== undefined) describe(span, request, result)
      const { body, endsWithFilter = false } = result.response
      send(parts, exchanged, request.origin, result.response)
      record(parts, request, result, performance.now() - started)
      // A body that is read while it is sent needs the configuration until its end.
      if (body instanceof Readable && !endsWithFilter) return finished(body).catch(() => {})
      return undefined
    }),
  )
}

const maxTracestate = 512

/**
 * A trusted proxy's span is the parent, and its sampling decision counts if the sampler says so. Any other caller only gets
 * a link from a new trace: it can neither have its requests recorded nor write into someone else's trace.
 */
function requestSpan(request: HttpRequest): SpanStart {
  const caller = readTraceparent(header(request, 'traceparent'))
  const attributes = {
    'http.request.method': request.method,
    'url.scheme': request.origin.slice(0, request.origin.indexOf(':')),
    'gatehouse.request.id': request.id,
  }
  const start = { name: request.method, kind: 'server', attributes } as const
  if (caller === undefined) return { ...start, parent: 'none' }
  if (!request.isTrusted) return { ...start, parent: 'none', links: [caller] }
  const state = header(request, 'tracestate')
  const isSound = state !== undefined && state.length <= maxTracestate && /^[\x20-\x7e]+$/.test(state)
  return { ...start, parent: isSound ? { ...caller, state } : caller }
}

/** Paths have ids and logins of users, so the span has the configured URL instead; the access log has the path. */
function describe(span: Span, request: HttpRequest, { response, error, context }: PipelineAnswer): void {
  const { application, url } = context
  span.set({ 'http.response.status_code': response.status })
  if (application !== undefined) span.set({ 'gatehouse.application': application.name })
  if (url !== undefined) {
    span.set({ 'http.route': url.url.uri })
    span.rename(`${request.method} ${url.url.uri}`)
  }
  if (error !== undefined) span.set({ 'error.type': error.code })
  if (response.status >= 500 && response.isRefusal !== true) span.fail(error?.code ?? String(response.status))
}

/** The response of the pipeline, or TARGET_TIMEOUT after the time limit; the work is aborted. */
function inTime(runtime: Runtime, request: HttpRequest): Awaitable<PipelineAnswer> {
  const answer = runtime.handle(request)
  if (!(answer instanceof Promise)) return answer
  return new Promise((resolve) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      request.abandon()
      const error = new GatewayError('TARGET_TIMEOUT', 'the answer was not ready in time', { retryAfter: 5 })
      const errors = runtime.routes.find(request.host, request.path)?.url.errors ?? jsonErrors
      const context = { request, errors, headers: {} }
      resolve({ response: errorResponse(error, context), error, context })
    }, httpLimits.answerSeconds * 1000)
    void answer.then((result) => {
      clearTimeout(timer)
      const { body } = result.response
      if (isLate && body instanceof Readable) body.destroy()
      resolve(result)
    })
  })
}

/** `origin` is that of the request, if known. Throws for headers that can't be sent. */
function send(
  { log }: AppParts,
  { id, raw, response }: Exchanged,
  origin: string | undefined,
  { status, headers, body }: GatewayResponse,
): void {
  const head: http.OutgoingHttpHeaders = { 'x-request-id': id, ...securityHeaders(origin), ...headers }
  if (body instanceof Readable) {
    // The client left before the response.
    if (response.destroyed) {
      body.destroy()
      return
    }
    try {
      response.writeHead(status, head)
    } catch (error) {
      body.destroy()
      throw error
    }
    pipeline(body, response, (error) => {
      // A client that leaves closes the response early, which is not a failure of the body.
      if (error instanceof Error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') {
        log.error('response ended early: its body could not be read', { requestId: id, err: error })
      }
    })
    return
  }
  // In a response to HEAD, a length would be that of the body of GET.
  const lacksLength = status === 204 || status === 304 || (body === undefined && raw.method === 'HEAD')
  const length = body === undefined ? 0 : Buffer.byteLength(body)
  if (!lacksLength) head['content-length'] = length
  // A text with as many bytes as characters is ASCII, and writing it as Latin-1 takes half the time.
  if (typeof body === 'string' && length === body.length) response.writeHead(status, head).end(body, 'latin1')
  else response.writeHead(status, head).end(body)
}

/** The response to a request without one from the pipeline that can be sent, in the format of the addressed API. */
function refuse(parts: AppParts, thrown: unknown, exchanged: Exchanged): void {
  const error = asGatewayError(thrown)
  const { id, raw, response } = exchanged
  const { host, path } = meant(parts, exchanged)
  const { routes } = parts.running.current
  const errors = routes.find(host, path)?.url.errors ?? jsonErrors
  parts.metrics.answered('', raw.method ?? 'GET', error.status, 0, error.isRefusal)
  logFailure(parts.log, error, { requestId: id, status: error.status })
  if (response.headersSent) {
    response.destroy()
    return
  }
  const request = { id, headers: raw.headers, look: routes.look(host) } as HttpRequest
  // Of a response that could not be sent.
  response.statusMessage = ''
  send(parts, exchanged, undefined, errorResponse(error, { errors, request }))
}

/** Of a malformed request: its Host header, and the valid part of its path. */
function meant({ proxies, only }: AppParts, { raw, id }: Exchanged): Pick<HttpRequest, 'host' | 'path'> {
  try {
    return new HttpRequest(raw, id, proxies, only?.host)
  } catch {
    const host = (raw.headers.host ?? '').toLowerCase().replace(/:\d+$/, '')
    return { host, path: validPrefix(raw.url ?? '/') }
  }
}

function record(parts: AppParts, request: HttpRequest, { response, error, context }: PipelineAnswer, ms: number): void {
  const application = context.application?.name ?? ''
  const isRefusal = error?.isRefusal ?? response.isRefusal
  parts.metrics.answered(application, request.method, response.status, ms, isRefusal)
  const fields = {
    requestId: request.id,
    method: request.method,
    host: request.host,
    path: withoutTokens(request.path),
    status: response.status,
    ms: Math.round(ms * 1000) / 1000,
    application,
    subject: context.caller?.subject ?? context.subject?.uid,
    ...(context.caller === undefined ? {} : { endpoint: context.caller.endpoint, workload: context.caller.workload }),
    remote: request.remoteAddress,
  }
  if (error === undefined) parts.accessLog(fields)
  else logFailure(parts.log, error, fields)
}

/**
 * A refused request isn't a fault of the gateway, so its reason is enough. Any other failure is logged with its
 * stack.
 */
function logFailure(log: Logger, error: GatewayError, fields: LogFields): void {
  if (!error.isRefusal) {
    log.error('request failed', { ...fields, err: error })
    return
  }
  const { code, message: reason, cause } = error
  const why = cause instanceof Error ? { cause: cause.message.slice(0, 2000) } : {}
  log.info('request refused', { ...fields, code, reason, ...why })
}
