import type { Agent as HttpAgent, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { request as httpRequest } from '#kernel/node-http.ts'

export interface ApiRequest {
  readonly url: string
  readonly method: string
  readonly headers: OutgoingHttpHeaders
  readonly body: string
}

export interface ApiAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
}

export interface ApiCredentials {
  readonly agent: HttpAgent | undefined
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
  return readAnswer(await send(request, credentials, AbortSignal.timeout(limits.millis)), limits.bytes)
}

export type LinesAnswer = { readonly lines: AsyncIterable<string> } | { readonly refusal: ApiAnswer }

/** A GET whose answer goes on: its lines as they come, until the server ends them or `signal` does. */
export async function openLines(
  { url, headers }: Pick<ApiRequest, 'url' | 'headers'>,
  credentials: ApiCredentials,
  { signal, lineBytes }: { readonly signal: AbortSignal; readonly lineBytes: number },
): Promise<LinesAnswer> {
  const response = await send({ url, method: 'GET', headers, body: '' }, credentials, signal)
  if (response.statusCode !== 200) return { refusal: await readAnswer(response, lineBytes) }
  return { lines: linesOf(response, lineBytes) }
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

async function readAnswer(response: IncomingMessage, most: number): Promise<ApiAnswer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > most) {
      response.destroy()
      throw new Error(`the API server answered more than ${most} bytes`)
    }
    chunks.push(chunk)
  }
  return {
    status: response.statusCode ?? 0,
    contentType: response.headers['content-type'] ?? '',
    body: Buffer.concat(chunks),
  }
}

function send(request: ApiRequest, credentials: ApiCredentials, signal: AbortSignal): Promise<IncomingMessage> {
  const options: RequestOptions = {
    method: request.method,
    headers: { ...request.headers, ...credentials.headers, 'content-length': Buffer.byteLength(request.body) },
    agent: credentials.agent,
    signal,
  }
  const open = request.url.startsWith('https:') ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    open(request.url, options, resolve).on('error', reject).end(request.body)
  })
}
