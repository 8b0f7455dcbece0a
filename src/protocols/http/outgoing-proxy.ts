/**
 * The proxies of outgoing calls. Threads of scripts get this file as a text, so it imports only Node.js itself.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ClientRequest, OutgoingHttpHeaders } from 'node:http'
import { type AgentOptions, Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https'
import { BlockList, isIP } from 'node:net'
import process from 'node:process'
import { Duplex } from 'node:stream'

// Importing the whole module would also load its WebSocket client.
const { request: httpRequest } = process.getBuiltinModule('node:http')

export interface OutgoingProxy {
  /** The environment variable that names it. */
  readonly variable: string
  /** Its URL without a password, for messages. */
  readonly name: string
  readonly isSecure: boolean
  readonly host: string
  readonly port: number
  /** The name in its certificate; empty if that is its address. Node.js would take the Host header of the request. */
  readonly servername: string
  /** With its password, so never for a server. */
  readonly headers: Readonly<Record<string, string>>
}

/** Where a caller collects the proxies that its calls go through. */
export const usedProxies = new AsyncLocalStorage<Set<OutgoingProxy>>()

type Scheme = 'http' | 'https'
type Variables = Readonly<Record<string, string | undefined>>

/**
 * The variables that `OutgoingProxies` reads: lower case counts before upper case, and an empty one as if it was not set,
 * as for curl.
 */
export const proxyVariables: readonly string[] = ['http_proxy', 'https_proxy', 'no_proxy'].flatMap((name) => [
  name,
  name.toUpperCase(),
])

/** Which calls go through a proxy, as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say; the rules are those of Go's programs. */
export class OutgoingProxies {
  readonly #proxies: Readonly<Record<Scheme, OutgoingProxy | undefined>>
  readonly #exceptions: readonly Exception[]

  /** Throws a plain Error, without the value, for a proxy that can't be used. */
  constructor(variables: Variables) {
    this.#proxies = { http: readProxy(variables, 'http_proxy'), https: readProxy(variables, 'https_proxy') }
    const [, exceptions = ''] = readVariable(variables, 'no_proxy')
    this.#exceptions = exceptions.split(/[\s,]+/).flatMap(readException)
  }

  /** Undefined for a call that goes directly to its server. Calls of this machine always do. */
  find({ protocol, hostname, port }: Pick<URL, 'protocol' | 'hostname' | 'port'>): OutgoingProxy | undefined {
    const scheme = protocol === 'https:' ? 'https' : 'http'
    const proxy = this.#proxies[scheme]
    if (proxy === undefined) return undefined
    const host = plainHost(hostname)
    const family = isIP(host) === 4 ? 'ipv4' : 'ipv6'
    if (isIP(host) === 0 ? /(?:^|\.)localhost$/.test(host) : loopback.check(host, family)) return undefined
    const number = Number(port || (scheme === 'https' ? 443 : 80))
    if (this.#exceptions.some((matches) => matches(host, number))) return undefined
    usedProxies.getStore()?.add(proxy)
    return proxy
  }

  /** For the operator who starts the gateway; undefined without a proxy. */
  describe(): string | undefined {
    const { http, https } = this.#proxies
    if (http === undefined && https === undefined) return undefined
    const way = (proxy: OutgoingProxy | undefined): string =>
      proxy === undefined ? 'directly' : `through ${proxy.name} (${proxy.variable})`
    const exceptions = this.#exceptions.length === 0 ? '' : '; NO_PROXY has exceptions'
    return `Outgoing calls: https: ${way(https)}, http: ${way(http)}${exceptions}.`
  }
}

let ofEnvironment: OutgoingProxies | undefined

/** The proxies of this process. Throws like the constructor. */
export function environmentProxies(): OutgoingProxies {
  ofEnvironment ??= new OutgoingProxies(process.env)
  return ofEnvironment
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

const plainHost = (host: string): string => host.replace(/^\[|\]$|\.$/g, '').toLowerCase()

/** The name that is set, and its value. */
function readVariable(variables: Variables, name: string): readonly [name: string, value: string | undefined] {
  const used = [name, name.toUpperCase()].find((each) => (variables[each] ?? '') !== '') ?? name
  return [used, variables[used] || undefined]
}

function readProxy(variables: Variables, name: string): OutgoingProxy | undefined {
  const [used, text] = readVariable(variables, name)
  if (text === undefined) return undefined
  const hasScheme = /^[a-z][a-z\d+.-]*:\/\//i.test(text)
  const url = URL.parse(hasScheme ? text : `http://${text}`)
  if (url === null || url.hostname === '') {
    const problem = hasScheme
      ? 'is not the address of a proxy'
      : 'has no http:// or https:// in front, and is not HOST:PORT either'
    throw new Error(
      `${used} ${problem}; use http://HOST:PORT or https://HOST:PORT, such as http://proxy.example.com:3128`,
    )
  }
  const { protocol, hostname, port, username, password } = url
  if (protocol !== 'http:' && protocol !== 'https:') {
    throw new Error(`${used} names a proxy of the kind ${protocol}; use an http: or https: proxy`)
  }
  const isSecure = protocol === 'https:'
  const hasLogin = username !== '' || password !== ''
  const host = hostname.replace(/^\[|\]$/g, '')
  return {
    variable: used,
    name: `${protocol}//${url.host}`,
    isSecure,
    host,
    servername: isIP(host) === 0 ? host : '',
    port: Number(port || (isSecure ? 443 : 80)),
    headers: hasLogin ? { 'proxy-authorization': basic(used, username, password) } : {},
  }
}

function basic(variable: string, username: string, password: string): string {
  try {
    const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    return `Basic ${Buffer.from(login).toString('base64')}`
  } catch {
    // The error would quote the password.
    throw new Error(`${variable} has a user name or password that is not URL-encoded`)
  }
}

type Exception = (host: string, port: number) => boolean

/** An entry that says nothing, such as an empty one, matches nothing. */
function readException(text: string): Exception[] {
  const entry = text.toLowerCase()
  if (entry === '') return []
  if (entry === '*') return [() => true]
  const [, network = '', bits] = /^(.+)\/(\d{1,3})$/.exec(entry) ?? []
  if (isIP(network) !== 0) return isPrefix(network, Number(bits)) ? [within(network, Number(bits))] : []
  const [, named = entry, port] = isIP(entry) === 6 ? [] : (/^(.+):(\d{1,5})$/.exec(entry) ?? [])
  const host = plainHost(named)
  const matches = isIP(host) === 0 ? inDomain(host.replace(/^\*\./, '.')) : within(host, isIP(host) === 4 ? 32 : 128)
  return [(other, number) => (port === undefined || Number(port) === number) && matches(other, number)]
}

const isPrefix = (address: string, bits: number): boolean => bits <= (isIP(address) === 4 ? 32 : 128)

function within(address: string, bits: number): Exception {
  const network = new BlockList()
  network.addSubnet(address, bits, isIP(address) === 4 ? 'ipv4' : 'ipv6')
  return (host) => isIP(host) !== 0 && network.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6')
}

/** `example.com` and below it; for `.example.com` only what is below it. */
const inDomain =
  (domain: string): Exception =>
  (host) =>
    domain.startsWith('.') ? host.endsWith(domain) : host === domain || host.endsWith(`.${domain}`)

/** How a call by http is sent: to the proxy, with the whole URL. */
export const forwarded = (
  { origin, host, pathname, search }: URL,
  headers: OutgoingHttpHeaders,
  proxy: OutgoingProxy,
  path = pathname + search,
) => ({
  protocol: proxy.isSecure ? 'https:' : 'http:',
  hostname: proxy.host,
  host: proxy.host,
  port: proxy.port,
  servername: proxy.servername,
  path: `${origin}${path}`,
  headers: { host, ...headers, ...proxy.headers },
})

/** How long a proxy may take to connect; the deadline of the call may be shorter. */
const tunnelMillis = 30_000

/**
 * A connection to a server through a proxy, by CONNECT. TLS with the server is spoken inside of it, so the proxy sees no
 * more than the name of the server, and can't pass for it.
 */
class Tunnel extends Duplex {
  readonly #request: ClientRequest
  readonly #late: NodeJS.Timeout
  #socket: Duplex | undefined
  /** What is written before there is a connection. */
  #held: (() => void) | undefined

  constructor(proxy: OutgoingProxy, authority: string) {
    super()
    const { name, host, port, servername, headers, isSecure } = proxy
    const give = (reason: string, cause?: unknown): void => {
      const error = new Error(`the proxy ${name} opened no connection to ${authority}: ${reason}`, { cause })
      this.destroy(Object.assign(error, { code: 'ECONNREFUSED' }))
    }
    this.#late = setTimeout(() => give(`no answer in ${tunnelMillis / 1000} seconds`), tunnelMillis)
    const options = { host, port, servername, method: 'CONNECT', path: authority }
    this.#request = (isSecure ? httpsRequest : httpRequest)({
      ...options,
      headers: { host: authority, ...headers },
      agent: false,
    })
    this.#request.on('error', (error) => give(error.message, error))
    this.#request.on('connect', ({ statusCode = 0 }, socket, head) => {
      if (this.destroyed || statusCode < 200 || statusCode > 299) socket.destroy()
      else return this.#open(socket, head)
      give(statusCode === 407 ? 'it wants another user name or password (407)' : `it answered ${statusCode}`)
    })
    this.#request.end()
  }

  #open(socket: Duplex, head: Buffer): void {
    clearTimeout(this.#late)
    this.#socket = socket
    if (head.length > 0) this.push(head)
    socket.on('data', (chunk) => {
      if (!this.push(chunk)) socket.pause()
    })
    socket.on('end', () => this.push(null))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
    this.#held?.()
    this.emit('open')
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#socket === undefined) this.#held = () => this._write(chunk, encoding, done)
    else this.#socket.write(chunk, encoding, done)
  }

  override _final(done: () => void): void {
    if (this.#socket === undefined) this.#held = () => this._final(done)
    else this.#socket.end(done)
  }

  override _read(): void {
    this.#socket?.resume()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#late)
    this.#request.destroy()
    this.#socket?.destroy()
    done(error)
  }
}

/** The proxies that sockets wait for. */
const waiting = new WeakMap<object, OutgoingProxy>()

/** The proxy that has not connected this socket yet. */
export const awaitedProxy = (socket: object): OutgoingProxy | undefined => waiting.get(socket)

/** The agent of calls by https: a call that needs a proxy gets a tunnel. */
export class OutgoingHttpsAgent extends HttpsAgent {
  readonly #proxies: OutgoingProxies

  constructor(options: AgentOptions, proxies: OutgoingProxies) {
    super(options)
    this.#proxies = proxies
  }

  override createConnection(...[options, callback]: Parameters<HttpsAgent['createConnection']>): Connection {
    const { host, port } = options
    const [hostname, number] = [host ?? 'localhost', String(port ?? 443)]
    const proxy = this.#proxies.find({ protocol: 'https:', hostname, port: number })
    if (proxy === undefined) return super.createConnection(options, callback)
    const tunnel = new Tunnel(proxy, `${isIP(hostname) === 6 ? `[${hostname}]` : hostname}:${number}`)
    const inside: RequestOptions & { readonly socket: Duplex } = { ...options, socket: tunnel }
    const socket = super.createConnection(inside, callback)
    if (socket == null) return socket
    waiting.set(socket, proxy)
    tunnel.once('open', () => waiting.delete(socket))
    tunnel.once('error', (error) => socket.destroy(error))
    return socket
  }
}

type Connection = ReturnType<HttpsAgent['createConnection']>
