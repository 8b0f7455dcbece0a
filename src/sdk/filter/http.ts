import type { Readable } from 'node:stream'

/** One HTTP request, checked for host, path and size limits before any module sees it. */
export interface GatewayRequest {
  /** Stands in the log, in X-Request-Id and in error bodies. */
  readonly id: string
  readonly method: string
  /** `https://host[:port]` as the client named it, for absolute addresses in answers. */
  readonly origin: string
  /** Lower case, without port. */
  readonly host: string
  /** Percent-encoded as received, but valid, and without dot segments. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly remoteAddress: string
  /** Whether it came from this machine itself, and was not forwarded for another. Absent counts as no. */
  readonly isLocal?: boolean
  /** Fires when the client is gone or the request's time is up. */
  readonly signal: AbortSignal
  /** The whole body; throws BODY_TOO_LARGE past the limit (the server's own limit when none is given). Repeatable. */
  body(limit?: number): Promise<Buffer>
}

export interface GatewayResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer | Readable
}

/** A header's first value; undefined when it is absent. */
export function header(request: Pick<GatewayRequest, 'headers'>, name: string): string | undefined {
  const value = request.headers[name.toLowerCase()]
  return Array.isArray(value) ? value[0] : value
}
