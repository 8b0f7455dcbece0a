import type { GatewayRequest } from '#sdk/http/http.ts'

export interface FakeRequest {
  readonly method?: string
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

/** A request as modules see it, without a socket. */
export function fakeRequest({
  method = 'GET',
  url = 'http://localhost/',
  headers = {},
  body = '',
}: FakeRequest): GatewayRequest {
  const address = new URL(url)
  return {
    id: 'request-1',
    method,
    origin: address.origin,
    host: address.hostname,
    path: address.pathname,
    query: address.searchParams,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    remoteAddress: '127.0.0.1',
    signal: new AbortController().signal,
    body: async () => Buffer.from(body),
    readBody: async (take) => take(Buffer.from(body)),
  }
}
