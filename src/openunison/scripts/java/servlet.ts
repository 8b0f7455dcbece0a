import { type Bytes, bytesOf, encodeText, fromBase64, signed, toBase64 } from './bytes.ts'
import { AddPortalRolesToUserData, clusterRoles } from './cluster-roles.ts'
import { JavaIterator } from './collections.ts'
import { ProxyConstants, ProxySys } from './constants.ts'
import { HashMap, type HashSet } from './hash-map.ts'
import { ConfigManager } from './host-objects.ts'
import { Attribute, type AuthInfo } from './identity.ts'
import { IllegalArgumentException, IllegalStateException, NoSuchElementException } from './java-exception.ts'
import { StringBuffer } from './java-lang.ts'
import { javaText, javaValue, optionalText } from './java-value.ts'
import { AuthController } from './login.ts'
import { formText } from './uri.ts'

/** A request as the gateway passes it. */
export interface PlainRequest {
  readonly method: string
  readonly origin: string
  readonly host: string
  readonly path: string
  readonly query: Readonly<Record<string, readonly string[]>>
  readonly headers: Readonly<Record<string, readonly string[]>>
  readonly remoteAddress: string
  readonly body: string | null
  readonly bodyBase64: string | null
}

type Values = readonly (readonly [string, readonly string[]])[]

/** What requests of filters and of mechanisms have in common. */
abstract class ScriptRequest {
  readonly #plain: PlainRequest
  readonly #session: HttpSession
  readonly #attributes = new HashMap()

  constructor(plain: PlainRequest, session: HttpSession, attributes: readonly (readonly [string, unknown])[] = []) {
    this.#plain = plain
    this.#session = session
    for (const [name, value] of [[ProxySys.MSG_BODY, bodyOf(plain)] as const, ...attributes]) {
      this.#attributes.put(name, value)
    }
  }

  getMethod(): string {
    return this.#plain.method
  }

  getRequestURI(): string {
    return this.#plain.path
  }

  getRequestURL(): StringBuffer {
    return new StringBuffer(this.#plain.origin + this.#plain.path)
  }

  getScheme(): string {
    return /^\w+/.exec(this.#plain.origin)?.[0] ?? ''
  }

  isSecure(): boolean {
    return this.getScheme() === 'https'
  }

  getServerName(): string {
    return this.#plain.host
  }

  getRemoteAddr(): string {
    return this.#plain.remoteAddress
  }

  getContentType(): string | null {
    return this.headerValues('content-type')?.[0] ?? null
  }

  getSession(_create?: unknown): HttpSession {
    return this.#session
  }

  getAttribute(name: unknown): unknown {
    return this.#attributes.get(javaText(name))
  }

  setAttribute(name: unknown, value: unknown): void {
    this.#attributes.put(javaText(name), value)
  }

  removeAttribute(name: unknown): void {
    this.#attributes.remove(javaText(name))
  }

  protected headerValues(name: unknown): readonly string[] | undefined {
    const wanted = javaText(name).toLowerCase()
    return Object.entries(this.#plain.headers).find(([held]) => held.toLowerCase() === wanted)?.[1]
  }

  protected headerNames(): string[] {
    return Object.keys(this.#plain.headers)
  }

  /** Of the query, then of a form in the body. */
  protected parameters(): Values {
    const found = new Map<string, string[]>(Object.entries(this.#plain.query).map(([name, all]) => [name, [...all]]))
    const isForm = /^application\/x-www-form-urlencoded\b/i.test(this.getContentType() ?? '')
    for (const pair of isForm ? (this.#plain.body ?? '').split('&') : []) {
      if (pair === '') continue
      const [name = '', ...rest] = pair.split('=')
      const key = formText(name)
      found.set(key, [...(found.get(key) ?? []), formText(rest.join('='))])
    }
    return [...found]
  }

  protected parameterValues(name: unknown): readonly string[] | undefined {
    return this.parameters().find(([held]) => held === javaText(name))?.[1]
  }
}

const bodyOf = ({ body, bodyBase64 }: PlainRequest): Bytes =>
  signed(bodyBase64 === null ? encodeText(body ?? '') : fromBase64(bodyBase64))

/** com.tremolosecurity.proxy.filter.HttpFilterRequest. Headers and parameters are attributes; credentials are withheld. */
export class HttpFilterRequest extends ScriptRequest {
  readonly #authInfo: AuthInfo

  constructor(plain: PlainRequest, authInfo: AuthInfo) {
    super(plain, sessionOf(authInfo))
    this.#authInfo = authInfo
  }

  getAuthInfo(): AuthInfo {
    return this.#authInfo
  }

  getHeader(name: unknown): Attribute | null {
    const values = this.headerValues(name)
    return values === undefined ? null : new Attribute(name, values)
  }

  getHeaderNames(): JavaIterator {
    return iteratorOf(this.headerNames())
  }

  getParameter(name: unknown): Attribute | null {
    const values = this.parameterValues(name)
    return values === undefined ? null : new Attribute(name, values)
  }

  getParameterNames(): JavaIterator {
    return iteratorOf(this.parameters().map(([name]) => name))
  }
}

const iteratorOf = (items: readonly string[]): JavaIterator =>
  new JavaIterator(items, () => {
    throw new IllegalStateException('a request cannot be changed')
  })

/** java.util.Enumeration. */
export class Enumeration {
  readonly #items: readonly string[]
  #next = 0

  constructor(items: readonly string[]) {
    this.#items = items
  }

  hasMoreElements(): boolean {
    return this.#next < this.#items.length
  }

  nextElement(): string {
    const item = this.#items[this.#next++]
    if (item === undefined) throw new NoSuchElementException()
    return item
  }
}

/** jakarta.servlet.http.HttpServletRequest, as mechanisms get it: headers and parameters are texts. */
export class HttpServletRequest extends ScriptRequest {
  getHeader(name: unknown): string | null {
    return this.headerValues(name)?.[0] ?? null
  }

  getHeaderNames(): Enumeration {
    return new Enumeration(this.headerNames())
  }

  getParameter(name: unknown): string | null {
    return this.parameterValues(name)?.[0] ?? null
  }

  getParameterValues(name: unknown): string[] | null {
    const values = this.parameterValues(name)
    return values === undefined ? null : [...values]
  }
}

/** jakarta.servlet.http.HttpServletResponse, as mechanisms get it: they accept or reject, and the gateway responds. */
export class HttpServletResponse {}

/** jakarta.servlet.http.HttpSession: what the gateway shows of the session. Scripts store nothing in it. */
export class HttpSession {
  readonly #values: HashMap

  constructor(values: readonly (readonly [string, unknown])[]) {
    this.#values = new HashMap()
    for (const [name, value] of values) this.#values.put(name, value)
  }

  getAttribute(name: unknown): unknown {
    return this.#values.get(javaText(name))
  }
}

/** The session of a user who is signed in. */
export const sessionOf = (authInfo: AuthInfo): HttpSession =>
  new HttpSession([
    [ProxyConstants.AUTH_CTL, new AuthController(authInfo)],
    [AddPortalRolesToUserData.NS_SESSION_NAME, clusterRoles(authInfo)],
  ])

const maxLength = 8 * 1024 * 1024
const maxHeaders = 1000

/** java.io.PrintWriter: the text of a response, up to 8 million characters. */
export class PrintWriter {
  readonly #parts: string[] = []
  #length = 0

  print(value: unknown): void {
    const text = javaText(value)
    this.#length += text.length
    if (this.#length > maxLength) throw new IllegalStateException(`the response is longer than ${maxLength} characters`)
    this.#parts.push(text)
  }

  println(value: unknown = ''): void {
    this.print(javaText(value))
    this.print('\n')
  }

  write(value: unknown): void {
    this.print(value)
  }

  append(value: unknown): this {
    this.print(value)
    return this
  }

  flush(): void {}

  close(): void {}

  toString(): string {
    return this.#parts.join('')
  }
}

let writtenBytes: (stream: OutputStream) => readonly number[]

/** java.io.OutputStream: the bytes of a response. */
export class OutputStream {
  readonly #bytes: number[] = []

  static {
    writtenBytes = (stream) => stream.#bytes
  }

  write(source: unknown): void {
    const plain = javaValue(source)
    const bytes = typeof plain === 'number' ? [plain & 255] : bytesOf(plain)
    if (this.#bytes.length + bytes.length > maxLength) {
      throw new IllegalStateException(`the response is longer than ${maxLength} bytes`)
    }
    for (const byte of bytes) this.#bytes.push(byte & 255)
  }

  flush(): void {}

  close(): void {}
}

let passOn: (response: HttpFilterResponse) => void
/** The response for the gateway, which checks it. */
export let plainResponse: (response: HttpFilterResponse) => object

/** com.tremolosecurity.proxy.filter.HttpFilterResponse. */
export class HttpFilterResponse {
  #status = 200
  #headers: (readonly [string, string])[] = []
  #writer: PrintWriter | undefined
  #stream: OutputStream | undefined
  #passes = false

  static {
    passOn = (response) => {
      response.#passes = true
    }
    plainResponse = (response) => response.#plain()
  }

  setStatus(status: unknown): void {
    this.#status = Number(javaValue(status))
  }

  sendError(status: unknown, message?: unknown): void {
    this.setStatus(status)
    if (optionalText(message) !== null) this.getWriter().print(message)
  }

  sendRedirect(location: unknown): void {
    this.setStatus(302)
    this.setHeader('Location', location)
  }

  setContentType(type: unknown): void {
    this.setHeader('Content-Type', type)
  }

  setHeader(name: unknown, value: unknown): void {
    this.removeHeader(name)
    this.addHeader(name, value)
  }

  addHeader(name: unknown, value: unknown): void {
    this.#headers.push([javaText(name), javaText(value)])
  }

  removeHeader(name: unknown): void {
    const removed = javaText(name).toLowerCase()
    this.#headers = this.#headers.filter(([held]) => held.toLowerCase() !== removed)
  }

  containsHeader(name: unknown): boolean {
    return this.getHeader(name) !== null
  }

  /** Of those that the script has set. */
  getHeader(name: unknown): Attribute | null {
    const wanted = javaText(name).toLowerCase()
    const values = this.#headers.flatMap(([held, value]) => (held.toLowerCase() === wanted ? [value] : []))
    return values.length === 0 ? null : new Attribute(name, values)
  }

  getWriter(): PrintWriter {
    if (this.#stream !== undefined) throw new IllegalStateException('getOutputStream() has been called')
    this.#writer ??= new PrintWriter()
    return this.#writer
  }

  getOutputStream(): OutputStream {
    if (this.#writer !== undefined) throw new IllegalStateException('getWriter() has been called')
    this.#stream ??= new OutputStream()
    return this.#stream
  }

  #plain(): object {
    if (this.#headers.length > maxHeaders) throw new IllegalStateException('there are too many headers')
    const headers: Record<string, string | string[]> = Object.create(null)
    for (const [name, value] of this.#headers) {
      const key = name.toLowerCase()
      headers[key] = headers[key] === undefined ? value : [headers[key], value].flat()
    }
    const [text, bytes] = [this.#writer?.toString() ?? '', this.#stream === undefined ? [] : writtenBytes(this.#stream)]
    const hasContent = text !== '' || bytes.length > 0
    if (this.#passes) {
      if (!hasContent && this.#status === 200) return { next: true, headers }
      throw new IllegalStateException('a script that calls nextFilter cannot also set a status or write a response')
    }
    const content = bytes.length > 0 ? { bodyBase64: toBase64(Uint8Array.from(bytes)) } : { body: text }
    return { status: this.#status, headers, ...(hasContent ? content : {}) }
  }
}

/** com.tremolosecurity.proxy.filter.HttpFilterChain. */
export class HttpFilterChain {
  /** The next filter runs when the script has ended; headers that the script sets are added to its response. */
  nextFilter(_request: unknown, response: unknown, _chain?: unknown): void {
    if (!(response instanceof HttpFilterResponse)) throw new IllegalArgumentException('the response is needed')
    passOn(response)
  }
}

/** com.tremolosecurity.proxy.filter.HttpFilterConfig: the filter's parameters. */
export class HttpFilterConfig {
  readonly #attributes: HashMap

  constructor(attributes: HashMap) {
    this.#attributes = attributes
  }

  getAttribute(name: unknown): unknown {
    return this.#attributes.get(javaText(name))
  }

  getAttributeNames(): HashSet {
    return this.#attributes.keySet()
  }

  getConfigManager(): ConfigManager {
    return new ConfigManager()
  }
}
