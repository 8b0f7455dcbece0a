import type { OutgoingHttpHeaders } from 'node:http'
import { type Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'

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
  const response = await send(request, credentials, AbortSignal.timeout(limits.millis))
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limits.bytes) {
      response.destroy()
      throw new Error(`the API server answered more than ${limits.bytes} bytes`)
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
