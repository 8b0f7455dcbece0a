import { AsyncLocalStorage } from 'node:async_hooks'
import { randomFillSync } from 'node:crypto'
import { GatewayError } from '#kernel/errors.ts'
import type { Span, SpanAttribute, SpanAttributes, SpanStart, TraceContext, Tracer } from '#kernel/tracing.ts'
import type { Sampling } from '#server/tracing/tracing-options.ts'

/** A span that has ended, to be exported. */
export interface EndedSpan {
  readonly context: TraceContext
  readonly parentId: string | undefined
  readonly name: string
  readonly kind: SpanStart['kind']
  /** Milliseconds since 1970, with fractions. */
  readonly started: number
  readonly ended: number
  readonly attributes: ReadonlyMap<string, SpanAttribute>
  readonly links: readonly TraceContext[]
  readonly failed: boolean
}

const maxAttributes = 32
const maxTextLength = 4096
const maxLinks = 8

/** Records spans and hands those that were sampled to `ended`. Spans that were not still pass on their trace. */
export class SpanTracer implements Tracer {
  readonly #storage = new AsyncLocalStorage<RecordedSpan | undefined>()
  readonly #sampling: Sampling
  readonly #ended: (span: EndedSpan) => void

  constructor(sampling: Sampling, ended: (span: EndedSpan) => void) {
    this.#sampling = sampling
    this.#ended = ended
  }

  span<T>(start: SpanStart, work: (span: Span) => T): T {
    const current = this.#storage.getStore()
    if (start.parent === 'current' && current === undefined) return work(unrecorded)
    const span = this.#begin(start, current)
    let result: T
    try {
      result = this.#storage.run(span, () => work(span))
    } catch (error) {
      this.#fail(span, error)
      throw error
    }
    if (!(result instanceof Promise)) this.#end(span)
    else {
      result.then(
        () => this.#end(span),
        (error: unknown) => this.#fail(span, error),
      )
    }
    return result
  }

  current(): Span | undefined {
    return this.#storage.getStore()
  }

  detached<T>(work: () => T): T {
    return this.#storage.run(undefined, work)
  }

  bound<T>(work: () => T): () => T {
    const span = this.#storage.getStore()
    return () => this.#storage.run(span, work)
  }

  #begin(start: SpanStart, current: RecordedSpan | undefined): RecordedSpan {
    const parent = start.parent === 'current' ? current?.context : start.parent === 'none' ? undefined : start.parent
    const traceId = parent?.traceId ?? randomId(16)
    const sampled = start.parent === 'current' && parent ? parent.sampled : this.#isSampled(traceId, parent)
    const context = { traceId, spanId: randomId(8), sampled, state: parent?.state }
    return new RecordedSpan(start, context, parent?.spanId, start.run ?? current?.run)
  }

  /** By the trace id, so that all services with the same ratio record the same traces. */
  #isSampled(traceId: string, parent: TraceContext | undefined): boolean {
    const { parentBased, ratio } = this.#sampling
    if (parentBased && parent !== undefined) return parent.sampled
    return Number.parseInt(traceId.slice(-13), 16) < ratio * 2 ** 52
  }

  /** A refusal is an answer to the caller, not a failure of the gateway. */
  #fail(span: RecordedSpan, error: unknown): void {
    const isKnown = error instanceof GatewayError
    const type = isKnown ? error.code : error instanceof Error ? error.name : typeof error
    if (isKnown && error.isRefusal) span.set({ 'error.type': type })
    else span.fail(type)
    this.#end(span)
  }

  #end(span: RecordedSpan): void {
    const ended = span.end()
    if (ended !== undefined) this.#ended(ended)
  }
}

class RecordedSpan implements Span {
  readonly context: TraceContext
  readonly run: string | undefined
  readonly #start: SpanStart
  readonly #parentId: string | undefined
  readonly #attributes = new Map<string, SpanAttribute>()
  readonly #started = now()
  #name: string
  #failed = false
  #isDropped: boolean

  constructor(start: SpanStart, context: TraceContext, parentId: string | undefined, run: string | undefined) {
    this.context = context
    this.run = run
    this.#start = start
    this.#parentId = parentId
    this.#name = start.name
    this.#isDropped = !context.sampled
    if (start.attributes !== undefined) this.set(start.attributes)
  }

  set(attributes: SpanAttributes): void {
    if (this.#isDropped) return
    for (const [name, value] of Object.entries(attributes)) {
      if (this.#attributes.size >= maxAttributes && !this.#attributes.has(name)) return
      this.#attributes.set(name, typeof value === 'string' ? value.slice(0, maxTextLength).toWellFormed() : value)
    }
  }

  rename(name: string): void {
    this.#name = name
  }

  fail(type: string): void {
    this.#failed = true
    this.set({ 'error.type': type })
  }

  discard(): void {
    this.#isDropped = true
  }

  /** Undefined if it is not exported. */
  end(): EndedSpan | undefined {
    if (this.#isDropped) return undefined
    const { kind, links = [] } = this.#start
    return {
      context: this.context,
      parentId: this.#parentId,
      name: this.#name.slice(0, maxTextLength).toWellFormed(),
      kind,
      started: this.#started,
      ended: now(),
      attributes: this.#attributes,
      links: links.slice(0, maxLinks),
      failed: this.#failed,
    }
  }
}

/** For work outside of any trace. */
const unrecorded: Span = {
  context: { traceId: '0'.repeat(32), spanId: '0'.repeat(16), sampled: false },
  run: undefined,
  set() {},
  rename() {},
  fail() {},
  discard() {},
}

const now = (): number => performance.timeOrigin + performance.now()

/** A call for randomness costs more than the bytes, so one call fills this buffer. */
const pool = Buffer.alloc(4096)
let taken = pool.length

/** Never all zeros, which would mean no id. */
function randomId(bytes: number): string {
  if (taken + bytes > pool.length) {
    randomFillSync(pool)
    taken = 0
  }
  const text = pool.toString('hex', taken, taken + bytes)
  taken += bytes
  return /^0+$/.test(text) ? randomId(bytes) : text
}
