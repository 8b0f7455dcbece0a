import type { Readable } from 'node:stream'
import type { PageLook } from './page-look.ts'

/** One HTTP request, checked for host, path and size limits before any module sees it. */
export interface GatewayRequest {
  /** In the log, in X-Request-Id and in error bodies. */
  readonly id: string
  readonly method: string
  /** `https://host[:port]` as the client named it, for absolute URLs in responses. */
  readonly origin: string
  /** Lower case, without port. */
  readonly host: string
  /** Percent-encoded as received, but valid, and without dot segments. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly remoteAddress: string
  /** Whether it came from this machine, and was not forwarded for another. Absent counts as no. */
  readonly isLocal?: boolean
  /** Fires when the client disconnects or the request times out. */
  readonly signal: AbortSignal
  /** How the pages of this host look. The pipeline sets it. */
  look?: PageLook | undefined
  /** The whole body; throws BODY_TOO_LARGE beyond the limit (by default the server's). Can be called repeatedly. */
  body(limit?: number): Promise<Buffer>
  /** The same body in pieces, as they arrive, without storing it. Can be called once. */
  readBody(take: (piece: Buffer) => void, limit: number): Promise<void>
}

/** The response to the client. */
export interface GatewayResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer | Readable | undefined
  /** The body ends when the filter is closed. Any other one that is read while it is sent keeps the filter open. */
  readonly endsWithFilter?: boolean
  /** The request was refused for what the caller sent, though the API answers that with 500: no fault of the gateway, so no alert. */
  readonly isRefusal?: boolean
}

/** A header's first value; undefined if it is absent. */
export function header(request: Pick<GatewayRequest, 'headers'>, name: string): string | undefined {
  const value = request.headers[name.toLowerCase()]
  return Array.isArray(value) ? value[0] : value
}
