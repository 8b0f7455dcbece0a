import { bytesOf, decodeText, encodeText, fromBase64, signed, toBase64 } from './bytes.ts'
import { ArrayList } from './collections.ts'
import { HashMap } from './hash-map.ts'
import { askBridge } from './host-bridge.ts'
import {
  ConnectException,
  HttpTimeoutException,
  IllegalArgumentException,
  IllegalStateException,
  IOException,
} from './java-exception.ts'
import { Duration, javaEnum, Optional } from './java-lang.ts'
import { javaText } from './java-value.ts'
import { URI } from './uri.ts'

const Redirect = javaEnum(['NEVER', 'NORMAL', 'ALWAYS'])
const Version = javaEnum(['HTTP_1_1', 'HTTP_2'])

/** The response of the process around the realm. */
type Exchange =
  | {
      readonly status: number
      readonly url: string
      readonly headers: readonly [string, string][]
      readonly body: string
    }
  | { readonly failure: 'connect' | 'timeout' | 'other'; readonly message: string }

/** java.net.http.HttpClient; `send` waits for the response. */
export class HttpClient {
  static readonly Redirect = Redirect
  static readonly Version = Version
  readonly #redirect: string
  readonly #connectMillis: number | undefined

  constructor(redirect: string, connectMillis: number | undefined) {
    this.#redirect = redirect
    this.#connectMillis = connectMillis
  }

  static newHttpClient(): HttpClient {
    return new HttpClient('NEVER', undefined)
  }

  static newBuilder(): ClientBuilder {
    return new ClientBuilder()
  }

  send(request: unknown, handler: unknown): HttpResponse {
    if (!(handler instanceof BodyHandler)) {
      throw new IllegalArgumentException('a body handler comes from HttpResponse.BodyHandlers')
    }
    const { uri, method, headers, body, timeoutMillis } = requestParts(request)
    const exchange = askBridge('http', {
      url: `${uri}`,
      method,
      headers,
      body: body === undefined ? null : toBase64(body),
      timeoutMillis: timeoutMillis ?? null,
      connectMillis: this.#connectMillis ?? null,
      redirect: this.#redirect,
    }) as Exchange
    if ('failure' in exchange) throw failureOf(exchange.failure, exchange.message)
    const content = readBody(handler, fromBase64(exchange.body))
    return new HttpResponse(exchange.status, exchange.headers, exchange.url, content)
  }

  close(): void {}
}

/** java.net.http.HttpClient.Builder. */
export class ClientBuilder {
  #redirect = 'NEVER'
  #connectMillis: number | undefined

  followRedirects(policy: unknown): this {
    this.#redirect = Redirect.valueOf(javaText(policy)).name()
    return this
  }

  connectTimeout(duration: unknown): this {
    this.#connectMillis = durationMillis(duration)
    return this
  }

  version(_version: unknown): this {
    return this
  }

  build(): HttpClient {
    return new HttpClient(this.#redirect, this.#connectMillis)
  }
}

let readBody: (handler: BodyHandler, bytes: Uint8Array) => unknown

/** java.net.http.HttpResponse.BodyHandler. */
export class BodyHandler {
  readonly #read: (bytes: Uint8Array) => unknown

  constructor(read: (bytes: Uint8Array) => unknown) {
    this.#read = read
  }

  static {
    readBody = (handler, bytes) => handler.#read(bytes)
  }
}

export const BodyHandlers = {
  ofString: (charset?: unknown): BodyHandler => new BodyHandler((bytes) => decodeText(bytes, charset)),
  ofByteArray: (): BodyHandler => new BodyHandler(signed),
  discarding: (): BodyHandler => new BodyHandler(() => null),
}

/** java.net.http.HttpResponse. */
export class HttpResponse {
  static readonly BodyHandlers = BodyHandlers
  readonly #status: number
  readonly #headers: HttpHeaders
  readonly #url: string
  readonly #body: unknown

  constructor(status: number, headers: readonly [string, string][], url: string, body: unknown) {
    this.#status = status
    this.#headers = new HttpHeaders(headers)
    this.#url = url
    this.#body = body
  }

  statusCode(): number {
    return this.#status
  }

  body(): unknown {
    return this.#body
  }

  headers(): HttpHeaders {
    return this.#headers
  }

  uri(): URI {
    return new URI(this.#url)
  }
}

/** java.net.http.HttpHeaders. */
export class HttpHeaders {
  readonly #headers: readonly [string, string][]

  constructor(headers: readonly [string, string][]) {
    this.#headers = headers
  }

  firstValue(name: unknown): Optional {
    return new Optional(this.#values(name)[0])
  }

  allValues(name: unknown): ArrayList {
    return new ArrayList(this.#values(name))
  }

  map(): HashMap {
    const all = new HashMap()
    for (const [name] of this.#headers) all.put(name.toLowerCase(), this.allValues(name))
    return all
  }

  #values(name: unknown): string[] {
    const wanted = javaText(name).toLowerCase()
    return this.#headers.flatMap(([held, value]) => (held.toLowerCase() === wanted ? [value] : []))
  }
}

function failureOf(failure: 'connect' | 'timeout' | 'other', message: string): Error {
  if (failure === 'connect') return new ConnectException(message)
  if (failure === 'timeout') return new HttpTimeoutException(message)
  return new IOException(message)
}

/** Headers that Java sets itself. */
const restricted = new Set(['connection', 'content-length', 'expect', 'host', 'upgrade'])

let contentOf: (publisher: BodyPublisher) => Uint8Array
let partsOf: (request: HttpRequest) => RequestParts

/** java.net.http.HttpRequest.BodyPublisher. */
export class BodyPublisher {
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  contentLength(): number {
    return this.#bytes.length
  }

  static {
    contentOf = (publisher) => publisher.#bytes
  }
}

export const BodyPublishers = {
  ofString: (text: unknown, charset?: unknown): BodyPublisher => new BodyPublisher(encodeText(javaText(text), charset)),
  ofByteArray: (bytes: unknown): BodyPublisher => new BodyPublisher(bytesOf(bytes).slice()),
  noBody: (): BodyPublisher => new BodyPublisher(new Uint8Array()),
}

interface RequestParts {
  readonly uri: URI | undefined
  readonly method: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array | undefined
  readonly timeoutMillis: number | undefined
}

/** java.net.http.HttpRequest. */
export class HttpRequest {
  static readonly BodyPublishers = BodyPublishers
  readonly #parts: RequestParts

  constructor(parts: RequestParts) {
    this.#parts = parts
  }

  static newBuilder(uri?: unknown): RequestBuilder {
    const builder = new RequestBuilder()
    return uri === undefined ? builder : builder.uri(uri)
  }

  static {
    partsOf = (request) => request.#parts
  }

  uri(): URI | null {
    return this.#parts.uri ?? null
  }

  method(): string {
    return this.#parts.method
  }
}

function requestParts(value: unknown): RequestParts {
  if (value instanceof HttpRequest) return partsOf(value)
  throw new IllegalArgumentException('an HttpRequest is needed')
}

function bodyContent(value: unknown): Uint8Array {
  if (value instanceof BodyPublisher) return contentOf(value)
  throw new IllegalArgumentException('a body comes from HttpRequest.BodyPublishers')
}

/** java.net.http.HttpRequest.Builder. */
export class RequestBuilder {
  #uri: URI | undefined
  #method = 'GET'
  #headers: (readonly [string, string])[] = []
  #body: Uint8Array | undefined
  #timeout: number | undefined

  uri(uri: unknown): this {
    if (!(uri instanceof URI)) throw new IllegalArgumentException('a URI is needed')
    if (!/^https?$/i.test(uri.getScheme() ?? ''))
      throw new IllegalArgumentException(`invalid URI scheme ${uri.getScheme()}`)
    if ((uri.getHost() ?? '') === '') throw new IllegalArgumentException(`unsupported URI ${uri}`)
    this.#uri = uri
    return this
  }

  header(name: unknown, value: unknown): this {
    this.#headers.push(checkedHeader(name, value))
    return this
  }

  /** Alternating names and values. */
  headers(...namesAndValues: unknown[]): this {
    if (namesAndValues.length % 2 !== 0) throw new IllegalArgumentException('wrong number of headers')
    for (let i = 0; i < namesAndValues.length; i += 2) this.header(namesAndValues[i], namesAndValues[i + 1])
    return this
  }

  setHeader(name: unknown, value: unknown): this {
    const [checked] = checkedHeader(name, value)
    this.#headers = this.#headers.filter(([held]) => held.toLowerCase() !== checked.toLowerCase())
    return this.header(name, value)
  }

  timeout(duration: unknown): this {
    this.#timeout = durationMillis(duration)
    return this
  }

  version(_version: unknown): this {
    return this
  }

  GET(): this {
    return this.#with('GET')
  }

  DELETE(): this {
    return this.#with('DELETE')
  }

  POST(body: unknown): this {
    return this.#with('POST', body)
  }

  PUT(body: unknown): this {
    return this.#with('PUT', body)
  }

  method(name: unknown, body: unknown): this {
    const method = javaText(name)
    if (!/^[A-Za-z]+$/.test(method) || /^connect$/i.test(method)) {
      throw new IllegalArgumentException(`invalid method name "${method}"`)
    }
    return this.#with(method, body)
  }

  build(): HttpRequest {
    if (this.#uri === undefined) throw new IllegalStateException('uri is null')
    return new HttpRequest({
      uri: this.#uri,
      method: this.#method,
      headers: [...this.#headers],
      body: this.#body,
      timeoutMillis: this.#timeout,
    })
  }

  #with(method: string, body?: unknown): this {
    this.#method = method
    this.#body = body === undefined ? undefined : bodyContent(body)
    return this
  }
}

function durationMillis(duration: unknown): number {
  const millis = duration instanceof Duration ? duration.toMillis() : Number.NaN
  if (!(millis > 0)) throw new IllegalArgumentException('a Duration above zero is needed')
  return millis
}

function checkedHeader(name: unknown, value: unknown): readonly [string, string] {
  const [key, text] = [javaText(name), javaText(value)]
  if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(key)) throw new IllegalArgumentException(`invalid header name: "${key}"`)
  if (restricted.has(key.toLowerCase())) throw new IllegalArgumentException(`restricted header name: "${key}"`)
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) throw new IllegalArgumentException(`invalid header value of "${key}"`)
  return [key, text]
}
