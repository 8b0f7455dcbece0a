import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { isLoopbackHost } from '#kernel/address.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type GatewayRequest, header } from '#sdk/http/http.ts'
import { bodyFailure, bodyFailures } from './connections.ts'
import { httpLimits } from './http-limits.ts'
import type { TrustedProxies } from './trusted-proxies.ts'

/** The beginning of a content type (RFC 9110 8.3.1). */
const mediaType = /^[!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+[\t ]*(?:;|$)/
const hostPattern = /^(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/

/** A request as it came from the socket. Throws BAD_REQUEST or URI_TOO_LONG if host or path are malformed. */
export class HttpRequest implements GatewayRequest {
  readonly id: string
  readonly method: string
  readonly origin: string
  readonly host: string
  readonly path: string
  readonly headers: GatewayRequest['headers']
  readonly remoteAddress: string
  /** The peer is a trusted proxy. */
  readonly isTrusted: boolean
  look: GatewayRequest['look']
  readonly #raw: IncomingMessage
  readonly #queryText: string
  #query: URLSearchParams | undefined
  #abort: AbortController | undefined
  #onClose: (() => void) | undefined
  #body: Promise<Buffer> | undefined

  /** `listener` replaces the requested host, for a listener with its own host. */
  constructor(raw: IncomingMessage, id: string, proxies: TrustedProxies, listener?: string) {
    refuseRepeatedHeaders(raw.rawHeaders)
    this.#raw = raw
    this.id = id
    this.method = raw.method ?? 'GET'
    this.headers = raw.headers
    const peer = raw.socket.remoteAddress ?? ''
    const forwarded = proxies.trusts(peer)
    this.isTrusted = forwarded
    if (!forwarded && isForwarded(raw.headers)) proxies.ignored(peer)
    this.remoteAddress = (forwarded ? lastOf(header(this, 'x-forwarded-for')) : undefined) ?? peer
    const secure = (raw.socket as Partial<TLSSocket>).encrypted === true
    const proto = forwarded ? lastOf(header(this, 'x-forwarded-proto')) : undefined
    const scheme = (proto === undefined ? secure : proto === 'https') ? 'https' : 'http'
    const named = (forwarded ? lastOf(header(this, 'x-forwarded-host')) : undefined) ?? raw.headers.host ?? ''
    const hostAndPort = named.toLowerCase()
    this.origin = `${scheme}://${hostAndPort}`
    if (hostAndPort.length > 262 || !hostPattern.test(hostAndPort) || !URL.canParse(this.origin)) {
      throw new GatewayError('BAD_REQUEST', 'the Host header is malformed', {
        publicText: 'The Host header is malformed.',
      })
    }
    this.host = listener ?? hostAndPort.replace(/:\d+$/, '')
    const address = raw.url ?? '/'
    const question = address.indexOf('?')
    this.path = normalizePath(question < 0 ? address : address.slice(0, question))
    this.#queryText = question < 0 ? '' : address.slice(question + 1)
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.#queryText)
    return this.#query
  }

  /** Forwarded headers of untrusted peers count too: here they can only restrict what the caller may do. */
  get isLocal(): boolean {
    const { remoteAddress = '', localAddress = '' } = this.#raw.socket
    const forwarded = ['x-forwarded-for', 'x-real-ip', 'x-forwarded-host'].flatMap(
      (name) => header(this, name)?.split(',') ?? [],
    )
    const hosts = forwarded.map((text) => text.trim().replace(/(?<=^[^:]+|\]):\d+$/, ''))
    return (
      this.headers['forwarded'] === undefined &&
      [remoteAddress, localAddress, this.host, ...hosts].every(isLoopbackHost)
    )
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      const abort = new AbortController()
      this.#abort = abort
      this.#onClose = () => abort.abort()
      // A client that has already left fires no further event.
      if (this.#raw.socket.destroyed) abort.abort()
      else this.#raw.socket.once('close', this.#onClose)
    }
    return this.#abort.signal
  }

  /** The response is complete. The connection may carry many more requests, so it must not retain this one. */
  answered(): void {
    if (this.#onClose !== undefined) this.#raw.socket.off('close', this.#onClose)
  }

  /** Fires `signal`: the client no longer waits for the response. */
  abandon(): void {
    this.#abort ??= new AbortController()
    this.#abort.abort()
  }

  async body(limit: number = httpLimits.bodyBytes): Promise<Buffer> {
    this.#body ??= this.#collect(limit)
    const body = await this.#body
    if (body.length > limit) throw tooLarge(limit)
    return body
  }

  async readBody(take: (piece: Buffer) => void, limit: number): Promise<void> {
    if (this.#body === undefined) await this.#read(take, limit)
    else take(await this.body(limit))
  }

  async #collect(limit: number): Promise<Buffer> {
    const chunks: Buffer[] = []
    await this.#read((chunk) => chunks.push(chunk), limit)
    return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)
  }

  async #read(take: (chunk: Buffer) => void, limit: number): Promise<void> {
    const raw = this.#raw
    const encoding = header(this, 'content-encoding')
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `content encoding ${encoding}`, {
        publicText: 'Compressed request bodies are not supported.',
      })
    }
    const contentType = header(this, 'content-type')
    if (contentType !== undefined && !mediaType.test(contentType)) {
      throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `content type "${contentType}"`, {
        publicText: 'The Content-Type header is malformed.',
      })
    }
    // Then no further event follows.
    if (bodyFailures.has(raw) || (raw.destroyed && !raw.readableEnded)) throw brokenOff(raw)
    // A client that sends all of its body before it reads would see a broken connection and no response. So a body of
    // bearable size is received and discarded.
    const announced = Number(header(this, 'content-length') ?? 0)
    if (announced > Math.max(limit, httpLimits.discardedBytes)) throw tooLarge(limit)
    await new Promise<void>((resolve, reject) => {
      let size = 0
      raw.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size <= limit && announced <= limit) take(chunk)
        else if (announced <= limit) reject(tooLarge(limit))
      })
      raw.once('end', () => {
        if (size > limit) reject(tooLarge(limit))
        else resolve()
      })
      raw.once(bodyFailure, () => reject(brokenOff(raw)))
      raw.once('aborted', () => reject(brokenOff(raw)))
      raw.once('error', (cause) => reject(new GatewayError('BAD_REQUEST', 'the body could not be read', { cause })))
    })
  }
}

/** Node.js keeps the first and drops the others, so two readers of one request could see different callers. */
function refuseRepeatedHeaders(rawHeaders: readonly string[]): void {
  let hosts = 0
  let credentials = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
    else if (name.length === 13 && name.toLowerCase() === 'authorization') credentials++
  }
  if (hosts > 1 || credentials > 1) {
    const publicText = 'A request may have only one Host and one Authorization header.'
    throw new GatewayError('BAD_REQUEST', 'a repeated Host or Authorization header', { publicText })
  }
}

/** The connection is closed with the response, so that the rest of the body need not be received. */
const tooLarge = (limit: number): GatewayError =>
  new GatewayError('BODY_TOO_LARGE', `the body has more than ${limit} bytes`, { headers: { connection: 'close' } })

/** Why the body does not arrive. */
function brokenOff(raw: IncomingMessage): GatewayError {
  const code = bodyFailures.get(raw)
  if (code === undefined) return new GatewayError('REQUEST_TIMEOUT', 'the client went away')
  const reason = code === 'REQUEST_TIMEOUT' ? 'the body did not arrive in time' : 'the body is malformed or incomplete'
  return new GatewayError(code, reason, { headers: { connection: 'close' } })
}

/** Whether the request has headers of a proxy about its client. */
const isForwarded = (headers: IncomingMessage['headers']): boolean =>
  headers['x-forwarded-for'] !== undefined || headers['forwarded'] !== undefined

/** Proxies append, so the last value is the one that the trusted peer wrote. */
const lastOf = (list: string | undefined): string | undefined => list?.split(',').at(-1)?.trim() || undefined

const bad = (detail: string): GatewayError =>
  new GatewayError('BAD_REQUEST', detail, { publicText: 'The address of the request is malformed.' })

/**
 * A request's path in the normal form that URLs are matched on (RFC 3986 6.2.2): escapes of unreserved characters
 * are decoded and the others upper-cased. Broken escapes, dot segments, control characters and backslashes are
 * rejected, so that all parts interpret a path in the same way.
 */
export function normalizePath(raw: string): string {
  if (raw.length > httpLimits.pathCharacters) throw new GatewayError('URI_TOO_LONG', `path of ${raw.length} characters`)
  if (!raw.startsWith('/')) throw bad('the path does not start with a slash')
  const path = raw.includes('%') ? decodeUnreserved(raw) : raw
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  if (/[\x00-\x20\x7f\\]/.test(path)) throw bad('the path has a character that must be escaped')
  if (path.includes('/.') && /\/\.\.?(?:\/|$)/.test(path)) throw bad('the path has a dot segment')
  return path
}

/** The whole segments before the first invalid one, for a path that normalizePath rejects. */
export function validPrefix(raw: string): string {
  const sound = /^(?:\/[\w~!$&'()*+,;=:@-][\w.~!$&'()*+,;=:@-]*)*(?=[/?]|$)/.exec(
    raw.slice(0, httpLimits.pathCharacters),
  )
  return sound?.[0] ?? ''
}

function decodeUnreserved(raw: string): string {
  if (/%(?![0-9a-fA-F]{2})/.test(raw)) throw bad('the path has a broken escape')
  const path = raw.replace(/%[0-9a-fA-F]{2}/g, (escaped) => {
    const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : escaped.toUpperCase()
  })
  if (path.includes('%00')) throw bad('the path has a NUL character')
  try {
    decodeURIComponent(path)
  } catch (cause) {
    throw new GatewayError('BAD_REQUEST', 'the path is not UTF-8', { cause })
  }
  return path
}
