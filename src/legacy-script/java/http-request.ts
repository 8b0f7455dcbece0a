import { bytesOf, encodeText } from './bytes.ts'
import { Duration } from './duration.ts'
import { IllegalArgumentException, IllegalStateException } from './java-exception.ts'
import { javaText } from './java-value.ts'
import { URI } from './uri.ts'

/** Those that Java keeps to itself. */
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
  ofString(text: unknown, charset?: unknown): BodyPublisher {
    return new BodyPublisher(encodeText(javaText(text), charset))
  },

  ofByteArray(bytes: unknown): BodyPublisher {
    return new BodyPublisher(bytesOf(bytes).slice())
  },

  noBody(): BodyPublisher {
    return new BodyPublisher(new Uint8Array())
  },
}

export interface RequestParts {
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

export function requestParts(value: unknown): RequestParts {
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

  /** Names and values in turn. */
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

export function durationMillis(duration: unknown): number {
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
