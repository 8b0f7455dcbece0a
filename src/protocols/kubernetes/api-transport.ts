import type { Agent, OutgoingHttpHeaders } from 'node:http'
import { exchange, type HttpCall, openExchange, readBody } from '#protocols/http/http-client.ts'

export interface ApiRequest {
  readonly url: string
  readonly method: string
  readonly headers: OutgoingHttpHeaders
  readonly body: string
}

export interface ApiAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

export interface ApiCredentials {
  readonly agent: Agent | undefined
  readonly headers: OutgoingHttpHeaders
}

export interface ApiLimits {
  readonly millis: number
  readonly bytes: number
}

/**
 * One call to an API server over a kept connection, bounded in time and size. Redirects are answers like any other:
 * the body, which may hold a token, goes nowhere else.
 */
export async function callApi(request: ApiRequest, credentials: ApiCredentials, limits: ApiLimits): Promise<ApiAnswer> {
  const { millis, bytes } = limits
  const answer = await exchange(toCall(request, credentials), credentials, {
    signal: AbortSignal.timeout(millis),
    bytes,
  })
  return { status: answer.status, contentType: answer.headers['content-type'] ?? '', body: answer.body }
}

const toCall = ({ url, method, headers, body }: ApiRequest, credentials: ApiCredentials): HttpCall => ({
  url: new URL(url),
  method,
  headers: { ...headers, ...credentials.headers },
  body,
})

export type LinesAnswer = { readonly lines: AsyncIterable<string> } | { readonly refusal: ApiAnswer }

/** A GET whose answer continues: its lines as they come, until the server ends them or `signal` does. */
export async function openLines(
  { url, headers }: Pick<ApiRequest, 'url' | 'headers'>,
  credentials: ApiCredentials,
  { signal, lineBytes }: { readonly signal: AbortSignal; readonly lineBytes: number },
): Promise<LinesAnswer> {
  const response = await openExchange(
    toCall({ url, method: 'GET', headers, body: '' }, credentials),
    credentials,
    signal,
  )
  if (response.statusCode === 200) return { lines: linesOf(response, lineBytes) }
  const contentType = response.headers['content-type'] ?? ''
  return { refusal: { status: response.statusCode ?? 0, contentType, body: await readBody(response, lineBytes) } }
}

async function* linesOf(response: AsyncIterable<Buffer>, most: number): AsyncGenerator<string> {
  let parts: Buffer[] = []
  let size = 0
  for await (const chunk of response) {
    let start = 0
    for (let end = chunk.indexOf(lineEnd); end >= 0; end = chunk.indexOf(lineEnd, start)) {
      const line = Buffer.concat([...parts, chunk.subarray(start, end)]).toString('utf8')
      start = end + 1
      parts = []
      size = 0
      if (line !== '') yield line
    }
    size += chunk.length - start
    if (size > most) throw new Error(`the API server sent a line of more than ${most} bytes`)
    if (start < chunk.length) parts.push(chunk.subarray(start))
  }
}

const lineEnd = 0x0a
