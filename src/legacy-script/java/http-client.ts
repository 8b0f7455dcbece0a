import { ArrayList } from './array-list.ts'
import { fromBase64, toBase64 } from './base64.ts'
import { askBridge } from './bridge.ts'
import { decodeText, signed } from './bytes.ts'
import { HashMap } from './hash-map.ts'
import { durationMillis, requestParts } from './http-request.ts'
import { javaEnum } from './java-enum.ts'
import { ConnectException, HttpTimeoutException, IllegalArgumentException, IOException } from './java-exception.ts'
import { javaText } from './java-value.ts'
import { Optional } from './optional.ts'
import { URI } from './uri.ts'

const Redirect = javaEnum(['NEVER', 'NORMAL', 'ALWAYS'])
const Version = javaEnum(['HTTP_1_1', 'HTTP_2'])

/** What the process around the realm answers. */
type Exchange =
  | {
      readonly status: number
      readonly url: string
      readonly headers: readonly [string, string][]
      readonly body: string
    }
  | { readonly failure: 'connect' | 'timeout' | 'other'; readonly message: string }

/** java.net.http.HttpClient; `send` waits for the answer. */
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
  ofString(charset?: unknown): BodyHandler {
    return new BodyHandler((bytes) => decodeText(bytes, charset))
  },

  ofByteArray(): BodyHandler {
    return new BodyHandler(signed)
  },

  discarding(): BodyHandler {
    return new BodyHandler(() => null)
  },
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
