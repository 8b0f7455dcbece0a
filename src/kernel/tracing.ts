/** What identifies a span to other processes (W3C Trace Context). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  readonly sampled: boolean
  /** The `tracestate` of a trusted caller, passed on unchanged. */
  readonly state?: string | undefined
}

export type SpanAttribute = string | number | boolean

/** Attributes have names of the semantic conventions where there are any, and never values of users or secrets. */
export type SpanAttributes = Readonly<Record<string, SpanAttribute>>

export interface SpanStart {
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client' | 'consumer'
  readonly attributes?: SpanAttributes
  /**
   * `current`: the span of the caller; without one nothing is recorded, so that polls of the background make no traces.
   * `none`: begins a new trace. Otherwise the span of another process.
   */
  readonly parent: 'current' | 'none' | TraceContext
  /** Spans of other traces that caused this one. */
  readonly links?: readonly TraceContext[]
  /** The run that this span and those below it belong to. */
  readonly run?: string
}

/** A span under way. */
export interface Span {
  readonly context: TraceContext
  /** The run that it belongs to. */
  readonly run: string | undefined
  set(attributes: SpanAttributes): void
  rename(name: string): void
  /** Marks it as failed, although its work returned. `type` is a code, never a message: messages may have values of users. */
  fail(type: string): void
  /** It is not exported. */
  discard(): void
}

/** Makes spans. The current span follows the asynchronous calls of its work. */
export interface Tracer {
  /** Runs the work in a span that ends with it, or with the promise that it returns. Errors of the work pass unchanged. */
  span<T>(start: SpanStart, work: (span: Span) => T): T
  /** The span that the caller runs in. */
  current(): Span | undefined
  /** Runs work that belongs to no span, such as a worker that a request wakes. */
  detached<T>(work: () => T): T
  /** The work, for someone else to call: it runs in the span that is current now. */
  bound<A extends unknown[], T>(work: (...args: A) => T): (...args: A) => T
}

/**
 * The tracer of the process; undefined while tracing is off. A caller compares it with undefined before it makes a closure
 * or an object for a span, so that a gateway without tracing pays for one comparison and nothing else.
 */
export let tracer: Tracer | undefined

export function useTracer(used: Tracer | undefined): void {
  tracer = used
}

const zeros = /^0+$/

/** A `traceparent` header (W3C Trace Context 3.2); undefined if it is malformed. Later versions may add fields. */
export function readTraceparent(text: string | undefined): TraceContext | undefined {
  if (text === undefined || text.length > 512) return undefined
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(text)
  const [, version, traceId = '', spanId = '', flags = '', more] = match ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (zeros.test(traceId) || zeros.test(spanId)) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export const writeTraceparent = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
