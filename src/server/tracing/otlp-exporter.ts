import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { oneLine } from '#kernel/text/one-line.ts'
import type { SpanAttribute, SpanStart, TraceContext } from '#kernel/tracing.ts'
import { type HttpPool, openHttpPool } from '#protocols/http/http-client.ts'
import { readRetryAfter } from '#protocols/http/retry-after.ts'
import type { EndedSpan } from '#server/tracing/span-tracer.ts'
import type { TracingOptions } from '#server/tracing/tracing-options.ts'

/**
 * `sent`: the endpoint accepted it. `rejected`: the endpoint answered that it did not accept it. `dropped`: it was not
 * sent, or nothing says that it arrived.
 */
export type SpanOutcome = 'sent' | 'rejected' | 'dropped'

/** Counts spans by what became of them. */
export interface SpanMeter {
  counted(outcome: SpanOutcome, spans: number): void
}

interface ExporterParts extends Pick<TracingOptions, 'url' | 'headers' | 'timeoutMillis' | 'resource'> {
  readonly version: string
  readonly meter: SpanMeter
  readonly log: Logger
}

interface ExporterLimits {
  /** Spans that wait to be sent; others are dropped. */
  readonly queued: number
  /** Spans of one request. */
  readonly batch: number
  readonly everyMillis: number
  /** How long nothing is sent after a failure. */
  readonly pauseMillis: number
  /** The longest such time that the endpoint can request. */
  readonly longestPauseMillis: number
  /** The shortest time between two log lines about rejected spans. */
  readonly rejectionsLoggedMillis: number
  /** How long closing waits for the last spans. */
  readonly closeMillis: number
}

const defaultLimits: ExporterLimits = {
  queued: 4096,
  batch: 512,
  everyMillis: 1000,
  pauseMillis: 5000,
  longestPauseMillis: 60_000,
  rejectionsLoggedMillis: 600_000,
  closeMillis: 2000,
}

const maxAnswerBytes = 64 * 1024
const maxReasonLength = 300

/** What an endpoint that took a batch says about it. */
interface PartialSuccess {
  readonly rejected: number
  /** Empty if it gives no reason or warning. */
  readonly reason: string
}

/** The endpoint answered with a status that is not a success. */
class Refusal extends Error {
  /** As its Retry-After says. */
  readonly retryMillis: number

  constructor(status: number, retryAfter: string | undefined) {
    super(`the endpoint answered ${status}`)
    this.retryMillis = readRetryAfter(retryAfter, new Date()) ?? 0
  }
}

/**
 * Sends spans in the background, by OTLP over HTTP in JSON. It never delays the work that it records: spans beyond the
 * queue, and those of a request that failed, are dropped and counted. No batch is sent twice.
 */
export class OtlpExporter {
  readonly #parts: ExporterParts
  readonly #limits: ExporterLimits
  readonly #pool: HttpPool = openHttpPool(undefined, { maxSockets: 1, maxFreeSockets: 1 })
  readonly #timer: NodeJS.Timeout
  readonly #closing = new AbortController()
  #queue: EndedSpan[] = []
  #sending: Promise<void> | undefined
  #pausedUntil = 0
  #isFailing = false
  /** Not logged yet. */
  #rejected = 0
  #logsRejectionsFrom = 0

  constructor(parts: ExporterParts, limits: Partial<ExporterLimits> = {}) {
    this.#parts = parts
    this.#limits = { ...defaultLimits, ...limits }
    // Started here and not by a span, so that sending belongs to no trace.
    this.#timer = setInterval(() => this.#wake(), this.#limits.everyMillis)
    this.#timer.unref()
  }

  /** For the log: without a query, which may have a key. */
  get endpoint(): string {
    const { origin, pathname } = this.#parts.url
    return `${origin}${pathname}`
  }

  add(span: EndedSpan): void {
    if (this.#queue.length >= this.#limits.queued || this.#closing.signal.aborted) {
      this.#parts.meter.counted('dropped', 1)
    } else this.#queue.push(span)
  }

  /** Sends what is left, for a short time. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    const late = setTimeout(() => this.#closing.abort(), this.#limits.closeMillis)
    await this.#sending
    if (!this.#isFailing) await this.#sendAll()
    clearTimeout(late)
    this.#closing.abort()
    this.#drop(this.#queue.splice(0))
    this.#pool.close()
  }

  #wake(): void {
    if (this.#queue.length === 0 || performance.now() < this.#pausedUntil) return
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
    })
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, this.#limits.batch)
      let answer: PartialSuccess
      try {
        answer = await this.#send(batch)
      } catch (error) {
        this.#drop(batch)
        this.#failed(error)
        return
      }
      this.#parts.meter.counted('sent', batch.length - answer.rejected)
      this.#noteAnswer(answer)
      if (this.#isFailing) this.#parts.log.info('traces are sent again', { endpoint: this.endpoint })
      this.#isFailing = false
    }
  }

  async #send(batch: readonly EndedSpan[]): Promise<PartialSuccess> {
    const { url, headers, timeoutMillis } = this.#parts
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(timeoutMillis)])
    const call = {
      method: 'POST',
      url,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(this.#message(batch)),
      retryClosed: true,
    }
    const { status, headers: answered, body } = await this.#pool.send(call, { signal, bytes: maxAnswerBytes })
    if (status < 200 || status > 299) throw new Refusal(status, answered['retry-after'])
    return readPartialSuccess(body, batch.length)
  }

  /** Rarely, since an endpoint that rejects spans rejects some of each batch. */
  #noteAnswer({ rejected, reason }: PartialSuccess): void {
    const { meter, log } = this.#parts
    if (rejected > 0) meter.counted('rejected', rejected)
    this.#rejected += rejected
    const now = performance.now()
    if ((rejected === 0 && reason === '') || now < this.#logsRejectionsFrom) return
    this.#logsRejectionsFrom = now + this.#limits.rejectionsLoggedMillis
    const fields = { endpoint: this.endpoint, rejected: this.#rejected, reason }
    log.warn(this.#rejected > 0 ? 'spans were rejected by the endpoint' : 'the endpoint of traces warns', fields)
    this.#rejected = 0
  }

  /** One line for each outage: a line for each batch would fill the log. */
  #failed(error: unknown): void {
    const { pauseMillis, longestPauseMillis } = this.#limits
    const requested = error instanceof Refusal ? Math.min(error.retryMillis, longestPauseMillis) : 0
    this.#pausedUntil = performance.now() + Math.max(pauseMillis, requested)
    if (this.#isFailing) return
    this.#isFailing = true
    const reason = error instanceof Error ? error.message : String(error)
    const fields = { endpoint: this.endpoint, reason }
    this.#parts.log.warn('traces cannot be sent; spans are dropped until the endpoint answers', fields)
  }

  #drop(spans: readonly EndedSpan[]): void {
    if (spans.length > 0) this.#parts.meter.counted('dropped', spans.length)
  }

  #message(spans: readonly EndedSpan[]): object {
    const { resource, version } = this.#parts
    const scopeSpans = [{ scope: { name: 'gatehouse', version }, spans: spans.map(toJson) }]
    return { resourceSpans: [{ resource: { attributes: keyValues(Object.entries(resource)) }, scopeSpans }] }
  }
}

/**
 * `{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "…"}}`. Anything else says nothing about the spans, so they
 * count as accepted.
 */
function readPartialSuccess(body: string, batch: number): PartialSuccess {
  let answer: unknown
  try {
    answer = JSON.parse(body)
  } catch {
    // Empty, or not JSON.
  }
  const partial = isJsonObject(answer) && isJsonObject(answer['partialSuccess']) ? answer['partialSuccess'] : {}
  const { rejectedSpans, errorMessage } = partial
  // A 64-bit number, which the protocol writes as text.
  const isCount = typeof rejectedSpans === 'string' || typeof rejectedSpans === 'number'
  const count = isCount && /^\d{1,15}$/.test(String(rejectedSpans)) ? Number(rejectedSpans) : 0
  const reason = typeof errorMessage === 'string' ? oneLine(errorMessage, maxReasonLength) : ''
  return { rejected: Math.min(count, batch), reason }
}

/** Numbers of the protocol (opentelemetry/proto/trace/v1/trace.proto). */
const kinds: Readonly<Record<SpanStart['kind'], number>> = { internal: 1, server: 2, client: 3, consumer: 5 }
const statusError = 2

function toJson({ context, parentId, name, kind, started, ended, attributes, links, failed }: EndedSpan): object {
  return {
    ...idsOf(context),
    flags: 1,
    ...(parentId === undefined ? {} : { parentSpanId: parentId }),
    name,
    kind: kinds[kind],
    startTimeUnixNano: nanos(started),
    endTimeUnixNano: nanos(ended),
    attributes: keyValues(attributes),
    ...(links.length === 0 ? {} : { links: links.map(idsOf) }),
    status: failed ? { code: statusError } : {},
  }
}

const idsOf = ({ traceId, spanId, state }: TraceContext): object => ({
  traceId,
  spanId,
  ...(state === undefined ? {} : { traceState: state }),
})

/** As text: the number has more digits than a JavaScript number can hold. */
const nanos = (millis: number): string =>
  `${Math.floor(millis)}${String(Math.floor((millis % 1) * 1_000_000)).padStart(6, '0')}`

const keyValues = (attributes: Iterable<readonly [string, SpanAttribute]>): object[] =>
  Array.from(attributes, ([key, value]) => ({ key, value: anyValue(value) }))

function anyValue(value: SpanAttribute): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}
