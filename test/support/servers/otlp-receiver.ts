import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A span as it arrived, with its attributes by name. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: number
  readonly failed: boolean
  readonly millis: number
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly resource: Readonly<Record<string, string | number | boolean>>
}

export interface OtlpReceiver {
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  /** Everything that arrived, as it was sent. */
  readonly text: string
  readonly requests: readonly IncomingHttpHeaders[]
  /** From now on. */
  behave(behavior: Behavior): void
  close(): Promise<void>
}

/**
 * `hangs`: accepts requests and never answers them. A number is the status of every answer. A function writes the answer
 * itself.
 */
type Behavior = 'takes' | 'hangs' | number | ((response: ServerResponse) => void)

/** A receiver of traces: OTLP over HTTP in JSON. */
export async function startOtlpReceiver(first: Behavior = 'takes'): Promise<OtlpReceiver> {
  let behavior = first
  const spans: ReceivedSpan[] = []
  const requests: IncomingHttpHeaders[] = []
  let text = ''
  const answer = (response: ServerResponse): void => {
    if (behavior === 'hangs') return
    if (typeof behavior === 'function') behavior(response)
    else response.writeHead(behavior === 'takes' ? 200 : behavior, { 'content-type': 'application/json' }).end('{}')
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      requests.push(request.headers)
      const body = Buffer.concat(chunks).toString('utf8')
      if (request.method !== 'POST' || request.url !== '/v1/traces') return void response.writeHead(404).end()
      text += body
      spans.push(...readSpans(JSON.parse(body)))
      answer(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    get text() {
      return text
    },
    requests,
    behave: (next) => {
      behavior = next
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface KeyValue {
  readonly key: string
  readonly value: { stringValue?: string; intValue?: string; doubleValue?: number; boolValue?: boolean }
}

interface Message {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] }
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[]
  }[]
}

interface WireSpan extends Pick<ReceivedSpan, 'traceId' | 'spanId' | 'parentSpanId' | 'name' | 'kind'> {
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly KeyValue[]
  readonly links?: ReceivedSpan['links']
  readonly status: { readonly code?: number }
}

const readSpans = ({ resourceSpans }: Message): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => readSpan(span, byName(resource.attributes)))),
  )

const readSpan = (span: WireSpan, resource: ReceivedSpan['resource']): ReceivedSpan => ({
  traceId: span.traceId,
  spanId: span.spanId,
  parentSpanId: span.parentSpanId,
  name: span.name,
  kind: span.kind,
  failed: span.status.code === 2,
  millis: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
  attributes: byName(span.attributes),
  links: span.links ?? [],
  resource,
})

const byName = (attributes: readonly KeyValue[]): ReceivedSpan['attributes'] =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? value.doubleValue ?? Number(value.intValue),
    ]),
  )
