import { bytesOf, decodeText, encodeText } from './bytes.ts'
import { BodyHandlers, BodyPublishers, HttpClient, type HttpHeaders, HttpRequest } from './http-client.ts'
import { IllegalArgumentException } from './java-exception.ts'
import { itemsOf, javaText, javaValue, optionalText } from './java-value.ts'
import { URI, URLEncoder } from './uri.ts'

/** org.apache.http.message.BasicHeader and BasicNameValuePair. */
export class NameValue {
  readonly #name: string
  readonly #value: string | null

  constructor(name: unknown, value: unknown) {
    this.#name = javaText(name)
    this.#value = optionalText(value)
  }

  getName(): string {
    return this.#name
  }

  getValue(): string | null {
    return this.#value
  }
}

let entityParts: (entity: Entity) => { readonly bytes: Uint8Array; readonly contentType: string | null }

/** org.apache.http.HttpEntity. */
export class Entity {
  readonly #bytes: Uint8Array
  readonly #contentType: string | null

  constructor(bytes: Uint8Array, contentType: string | null) {
    this.#bytes = bytes
    this.#contentType = contentType
  }

  static {
    entityParts = (entity) => ({ bytes: entity.#bytes, contentType: entity.#contentType })
  }

  getContentLength(): number {
    return this.#bytes.length
  }
}

/** org.apache.http.entity.StringEntity. */
export class StringEntity extends Entity {
  constructor(text: unknown, contentType?: unknown) {
    super(encodeText(javaText(text)), optionalText(contentType) ?? 'text/plain; charset=UTF-8')
  }
}

/** org.apache.http.client.entity.UrlEncodedFormEntity. */
export class UrlEncodedFormEntity extends Entity {
  constructor(pairs: unknown, _charset?: unknown) {
    const fields = itemsOf(pairs).map((pair) => {
      if (!(pair instanceof NameValue)) throw new IllegalArgumentException('a BasicNameValuePair is needed')
      return `${URLEncoder.encode(pair.getName())}=${URLEncoder.encode(pair.getValue() ?? '')}`
    })
    super(encodeText(fields.join('&')), 'application/x-www-form-urlencoded')
  }
}

/** org.apache.http.util.EntityUtils. */
export const EntityUtils = {
  toString: (entity: unknown, charset?: unknown): string => decodeText(bytesIn(entity), charset),
  consume: (_entity: unknown): void => {},
}

function bytesIn(entity: unknown): Uint8Array {
  if (entity instanceof Entity) return entityParts(entity).bytes
  throw new IllegalArgumentException('an HttpEntity is needed')
}

let callParts: (call: HttpCall) => {
  readonly method: string
  readonly uri: URI
  readonly headers: readonly (readonly [string, string])[]
  readonly entity: Entity | undefined
}

/** org.apache.http.client.methods.HttpRequestBase. */
export class HttpCall {
  readonly #method: string
  readonly #uri: URI
  #headers: (readonly [string, string])[] = []
  #entity: Entity | undefined

  constructor(method: string, uri: unknown) {
    this.#method = method
    this.#uri = uri instanceof URI ? uri : new URI(uri)
  }

  static {
    callParts = (call) => ({
      method: call.#method,
      uri: call.#uri,
      headers: call.#headers,
      entity: call.#entity,
    })
  }

  getURI(): URI {
    return this.#uri
  }

  /** A BasicHeader, or a name and a value. */
  addHeader(header: unknown, value?: unknown): void {
    this.#headers.push(headerPair(header, value))
  }

  setHeader(header: unknown, value?: unknown): void {
    const [name, text] = headerPair(header, value)
    this.#headers = this.#headers.filter(([held]) => held.toLowerCase() !== name.toLowerCase())
    this.#headers.push([name, text])
  }

  setEntity(entity: unknown): void {
    if (!(entity instanceof Entity)) throw new IllegalArgumentException('an HttpEntity is needed')
    this.#entity = entity
  }
}

const headerPair = (header: unknown, value: unknown): readonly [string, string] =>
  header instanceof NameValue ? [header.getName(), javaText(header.getValue())] : [javaText(header), javaText(value)]

const callOf = (method: string) =>
  class extends HttpCall {
    constructor(uri: unknown) {
      super(method, uri)
    }
  }

export const HttpGet = callOf('GET')
export const HttpPost = callOf('POST')
export const HttpPut = callOf('PUT')
export const HttpPatch = callOf('PATCH')
export const HttpDelete = callOf('DELETE')

/** org.apache.http.HttpResponse and its status line. */
export class ApacheResponse {
  readonly #status: number
  readonly #headers: HttpHeaders
  readonly #entity: Entity

  constructor(status: number, headers: HttpHeaders, bytes: Uint8Array) {
    this.#status = status
    this.#headers = headers
    this.#entity = new Entity(bytes, null)
  }

  getStatusLine(): StatusLine {
    return new StatusLine(this.#status)
  }

  getEntity(): Entity {
    return this.#entity
  }

  /** Null if there is none. */
  getFirstHeader(name: unknown): NameValue | null {
    const found = this.#headers.firstValue(name)
    return found.isPresent() ? new NameValue(name, found.get()) : null
  }

  close(): void {}
}

/** org.apache.http.StatusLine. */
export class StatusLine {
  readonly #status: number

  constructor(status: number) {
    this.#status = status
  }

  getStatusCode(): number {
    return this.#status
  }
}

/** org.apache.http.impl.client.CloseableHttpClient. Follows redirects of GET, as it does in Java. */
export class CloseableHttpClient {
  execute(call: unknown): ApacheResponse {
    if (!(call instanceof HttpCall)) throw new IllegalArgumentException('an HttpGet, HttpPost or the like is needed')
    const { method, uri, headers, entity } = callParts(call)
    const { bytes, contentType } = entity === undefined ? { bytes: undefined, contentType: null } : entityParts(entity)
    const builder = HttpRequest.newBuilder(uri)
    const hasType = headers.some(([name]) => name.toLowerCase() === 'content-type')
    for (const [name, value] of headers) builder.header(name, value)
    if (contentType !== null && !hasType) builder.header('Content-Type', contentType)
    builder.method(method, bytes === undefined ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(bytes))
    const client = new HttpClient(method === 'GET' ? 'NORMAL' : 'NEVER', undefined)
    const response = client.send(builder.build(), BodyHandlers.ofByteArray())
    return new ApacheResponse(response.statusCode(), response.headers(), bytesOf(javaValue(response.body())))
  }

  close(): void {}
}

/** org.apache.http.impl.client.HttpClientBuilder. The gateway's own limits apply, so settings have no effect. */
export class HttpClientBuilder {
  setConnectionManager(_manager: unknown): this {
    return this
  }

  setDefaultRequestConfig(_config: unknown): this {
    return this
  }

  build(): CloseableHttpClient {
    return new CloseableHttpClient()
  }
}

/** org.apache.http.impl.client.HttpClients. */
export const HttpClients = {
  createDefault: (): CloseableHttpClient => new CloseableHttpClient(),
  custom: (): HttpClientBuilder => new HttpClientBuilder(),
}

/** org.apache.http.client.config.RequestConfig and its builder. */
export class RequestConfig {
  static custom(): RequestConfig {
    return new RequestConfig()
  }

  setCookieSpec(_spec: unknown): this {
    return this
  }

  build(): this {
    return this
  }
}

/** org.apache.http.client.config.CookieSpecs: no cookies are kept. */
export const CookieSpecs = { STANDARD: 'standard' }

/** org.apache.http.impl.conn.BasicHttpClientConnectionManager. */
export class ConnectionManager {
  close(): void {}
}
