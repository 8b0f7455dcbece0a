import type { Logger } from '#kernel/logger.ts'
import type { SpanAttribute, SpanStart, TraceContext } from '#kernel/tracing.ts'
import { type HttpPool, openHttpPool } from '#protocols/http/http-client.ts'
import type { EndedSpan } from '#server/tracing/span-tracer.ts'
import type { TracingOptions } from '#server/tracing/tracing-options.ts'

/** Counts spans by what became of them. */
export interface SpanMeter {
  counted(outcome: 'sent' | 'dropped', spans: number): void
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
  /** How long closing waits for the last spans. */
  readonly closeMillis: number
}

const defaultLimits: ExporterLimits = {
  queued: 4096,
  batch: 512,
  everyMillis: 1000,
  pauseMillis: 5000,
  closeMillis: 2000,
}

const maxAnswerBytes = 64 * 1024

/**
 * Sends spans in the background, by OTLP over HTTP in JSON. It never delays the work that it records: spans beyond the
 * queue, and those of a request that failed, are dropped and counted.
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
      try {
        await this.#send(batch)
      } catch (error) {
        this.#drop(batch)
        this.#failed(error)
        return
      }
      this.#parts.meter.counted('sent', batch.length)
      if (this.#isFailing) this.#parts.log.info('traces are sent again', { endpoint: this.endpoint })
      this.#isFailing = false
    }
  }

  async #send(batch: readonly EndedSpan[]): Promise<void> {
    const { url, headers, timeoutMillis } = this.#parts
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(timeoutMillis)])
    const call = {
      method: 'POST',
      url,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(this.#message(batch)),
      retryClosed: true,
    }
    const { status } = await this.#pool.send(call, { signal, bytes: maxAnswerBytes })
    if (status < 200 || status > 299) throw new Error(`the endpoint answered ${status}`)
  }

  /** One line for each outage: a line for each batch would fill the log. */
  #failed(error: unknown): void {
    this.#pausedUntil = performance.now() + this.#limits.pauseMillis
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
