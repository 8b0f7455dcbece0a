import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import type { ErrorCode } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { type ConnectionLimits, httpLimits } from './http-limits.ts'
import type { TrustedProxies } from './trusted-proxies.ts'

/**
 * Why a connection was closed or rejected: the limit in total, the one of its address, a time limit, its input, or too many
 * requests at a time.
 */
type RefusalReason = 'total' | 'address' | 'timeout' | 'malformed' | 'pipelined'

export interface ConnectionMeter {
  opened(listener: string): void
  closed(listener: string): void
  refused(listener: string, reason: RefusalReason): void
}

export interface ConnectionsParts {
  /** The listener's name in log lines and metrics. */
  readonly listener: string
  readonly limits: ConnectionLimits
  readonly proxies: TrustedProxies
  readonly meter: ConnectionMeter
  readonly log: Logger
}

/**
 * - waiting: no request has arrived yet, or the connection is about to be closed
 * - receiving: the body of a request is still arriving
 * - answering: a request has arrived
 * - idle: every request so far is answered
 */
type State = 'waiting' | 'receiving' | 'answering' | 'idle'

interface Connection {
  readonly raw: Socket
  readonly key: string
  /** Absent for a trusted proxy. */
  readonly ofAddress: Pool | undefined
  /** Beyond the limits: only health checks are answered. */
  readonly beyond: 'total' | 'address' | undefined
  /** The TLS socket once its handshake is done; without TLS, the raw one. */
  socket: Socket
  state: State
  stateSince: number
  /** Requests that have arrived and have no response yet. */
  unanswered: number
  latest: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined
  /** Everything that arrives from now on is ignored. */
  closing: boolean
}

/** The outcome of a request before any application saw it. */
type Admission = 'admitted' | 'admitted-once' | 'over-limit' | 'over-pipelined' | 'closing'

const healthPath = /^\/(?:check_alive|ready)(?:\?|$)/

export const isHealthCheck = ({ method, url = '' }: IncomingMessage): boolean =>
  method === 'GET' && healthPath.test(url)

const reportMillis = 30_000

/** Connections of one kind, each state in order of age. */
class Pool {
  readonly #states = {
    waiting: new Set<Connection>(),
    receiving: new Set<Connection>(),
    answering: new Set<Connection>(),
    idle: new Set<Connection>(),
  }
  size = 0

  add(connection: Connection): void {
    this.#states[connection.state].add(connection)
    this.size++
  }

  move(connection: Connection, to: State): void {
    // A connection that was removed to make room still emits events.
    if (this.#states[connection.state].delete(connection)) this.#states[to].add(connection)
  }

  remove(connection: Connection): void {
    if (this.#states[connection.state].delete(connection)) this.size--
  }

  /**
   * The connection to close first: the oldest that has sent no request, else the slowest body, else the one that is
   * idle longest; a new one only as a last resort. Undefined if all are active.
   */
  leastMissed(now: number): Connection | undefined {
    const [waiting] = this.#states.waiting
    if (waiting !== undefined && now - waiting.stateSince >= httpLimits.graceMillis) return waiting
    for (const connection of this.#states.receiving) {
      if (now - connection.stateSince < httpLimits.slowBodyMillis) break
      if (connection.latest?.request.complete === false) return connection
    }
    const [idle] = this.#states.idle
    return idle ?? waiting
  }
}

/**
 * The open connections of a listener. At a limit, a new connection replaces an inactive one, so that half-open and
 * slow connections can't keep others out. If all are active, the new one gets only health checks answered, and 503
 * for the rest.
 */
export class Connections {
  readonly #parts: ConnectionsParts
  readonly #all = new Pool()
  readonly #beyond = new Pool()
  readonly #byAddress = new Map<string, Pool>()
  readonly #byKey = new Map<string, Connection>()
  readonly #bySocket = new WeakMap<Socket, Connection>()
  readonly #unreported = { total: 0, address: 0 }
  #reported: NodeJS.Timeout | undefined

  constructor(parts: ConnectionsParts) {
    this.#parts = parts
  }

  /** For each accepted socket, before TLS. */
  open(raw: Socket): void {
    const address = raw.remoteAddress
    if (address === undefined) {
      raw.destroy()
      return
    }
    const { listener, limits, proxies, meter } = this.#parts
    const network = proxies.trusts(address) ? undefined : networkOf(address)
    const ofAddress = network === undefined ? undefined : this.#poolOf(network)
    const beyond =
      ofAddress !== undefined && ofAddress.size >= limits.perAddress && !this.#makeRoom(ofAddress, 'address')
        ? 'address'
        : this.#all.size >= limits.total && !this.#makeRoom(this.#all, 'total')
          ? 'total'
          : undefined
    const isFull = beyond !== undefined && this.#beyond.size >= httpLimits.healthConnections
    if (isFull && !this.#makeRoom(this.#beyond, beyond)) {
      this.#refuse(beyond)
      this.#forget(network)
      raw.destroy()
      return
    }
    const connection: Connection = {
      raw,
      key: keyOf(raw),
      ofAddress: beyond === undefined ? ofAddress : undefined,
      beyond,
      socket: raw,
      state: 'waiting',
      stateSince: performance.now(),
      unanswered: 0,
      latest: undefined,
      closing: false,
    }
    for (const pool of this.#poolsOf(connection)) pool.add(connection)
    this.#byKey.set(connection.key, connection)
    this.#bySocket.set(raw, connection)
    meter.opened(listener)
    raw.once('close', () => {
      for (const pool of this.#poolsOf(connection)) pool.remove(connection)
      this.#forget(network)
      if (this.#byKey.get(connection.key) === connection) this.#byKey.delete(connection.key)
      meter.closed(listener)
    })
  }

  /** The TLS handshake is done. */
  secured(socket: Socket): void {
    const connection = this.#byKey.get(keyOf(socket))
    if (connection === undefined) {
      socket.destroy()
      return
    }
    connection.socket = socket
    this.#bySocket.set(socket, connection)
  }

  /** The headers of a request have arrived. */
  request(request: IncomingMessage, response: ServerResponse): Admission {
    const connection = this.#bySocket.get(request.socket)
    if (connection === undefined || connection.closing) return 'closing'
    const hasBody = request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length']) > 0
    connection.unanswered++
    connection.latest = { request, response }
    this.#move(connection, hasBody ? 'receiving' : 'answering')
    response.once('prefinish', () => request.socket.setTimeout(httpLimits.stalledAnswerSeconds * 1000))
    response.once('close', () => {
      connection.unanswered--
      // Pipelined requests have their own time.
      if (connection.unanswered > 0) return request.socket.setTimeout(httpLimits.quietSeconds * 1000)
      connection.latest = undefined
      return this.#move(connection, connection.closing ? 'waiting' : 'idle')
    })
    // Otherwise one connection could run as many requests at a time as it can send.
    if (connection.unanswered > httpLimits.pipelinedRequests) {
      connection.closing = true
      request.socket.pause()
      this.#parts.meter.refused(this.#parts.listener, 'pipelined')
      return 'over-pipelined'
    }
    if (connection.beyond === undefined) return 'admitted'
    if (healthPath.test(request.url ?? '')) return 'admitted-once'
    this.#refuse(connection.beyond)
    return 'over-limit'
  }

  /**
   * The input is not HTTP, or did not arrive in time. Returns who can answer: the application that waits for the
   * body, this caller, or no one, because another request is being answered.
   */
  failed(socket: Socket, code: ErrorCode): 'application' | 'listener' | 'no-one' {
    const connection = this.#bySocket.get(socket)
    if (connection === undefined || connection.closing) return 'no-one'
    this.#parts.meter.refused(this.#parts.listener, code === 'REQUEST_TIMEOUT' ? 'timeout' : 'malformed')
    const { latest } = connection
    if (latest === undefined) return 'listener'
    if (latest.request.complete || latest.response.headersSent) return 'no-one'
    bodyFailures.set(latest.request, code)
    return latest.request.emit(bodyFailure) ? 'application' : 'listener'
  }

  /** Whether text can be written to it: its TLS handshake, if any, is done. */
  isOpen(socket: Socket): boolean {
    return this.#bySocket.get(socket)?.socket === socket && socket.writable
  }

  /** Ignores further input, and destroys the socket once the client received the response, or after a short time. */
  closeSoon(socket: Socket): void {
    const connection = this.#bySocket.get(socket)
    if (connection !== undefined) {
      if (connection.closing) return
      connection.closing = true
      if (connection.unanswered === 0) this.#move(connection, 'waiting')
    }
    const timer = setTimeout(() => socket.destroy(), httpLimits.flushMillis)
    socket.once('close', () => clearTimeout(timer))
  }

  #poolsOf({ beyond, ofAddress }: Connection): readonly Pool[] {
    if (beyond !== undefined) return [this.#beyond]
    return ofAddress === undefined ? [this.#all] : [this.#all, ofAddress]
  }

  #poolOf(network: string): Pool {
    let pool = this.#byAddress.get(network)
    if (pool === undefined) {
      pool = new Pool()
      this.#byAddress.set(network, pool)
    }
    return pool
  }

  /** Removes the pool of an address without connections. */
  #forget(network: string | undefined): void {
    if (network !== undefined && this.#byAddress.get(network)?.size === 0) this.#byAddress.delete(network)
  }

  #move(connection: Connection, to: State): void {
    for (const pool of this.#poolsOf(connection)) pool.move(connection, to)
    connection.state = to
    connection.stateSince = performance.now()
  }

  /** Closes an inactive connection. False if there is none. */
  #makeRoom(pool: Pool, reason: 'total' | 'address'): boolean {
    const connection = pool.leastMissed(performance.now())
    if (connection === undefined) return false
    for (const each of this.#poolsOf(connection)) each.remove(connection)
    connection.closing = true
    // Clients expect idle connections to close, so only the others count as refused.
    if (connection.state !== 'idle') this.#refuse(reason)
    connection.socket.destroy()
    return true
  }

  #refuse(reason: 'total' | 'address'): void {
    this.#parts.meter.refused(this.#parts.listener, reason)
    this.#unreported[reason]++
    if (this.#reported === undefined) this.#report()
  }

  /** Logs one line, with the counts since the previous one. */
  #report(): void {
    const { listener, limits, log } = this.#parts
    const { total, address } = this.#unreported
    const counts = { refusedByTotal: total, refusedByAddress: address, open: this.#all.size, openLimit: limits.total }
    log.warn('connections refused: too many are open', { listener, ...counts, addressLimit: limits.perAddress })
    Object.assign(this.#unreported, { total: 0, address: 0 })
    this.#reported = setTimeout(() => {
      this.#reported = undefined
      if (this.#unreported.total + this.#unreported.address > 0) this.#report()
    }, reportMillis)
    this.#reported.unref()
  }
}

/** Emitted by a request whose body is malformed or did not arrive in time. */
export const bodyFailure = 'gatehouse:bodyFailure'
/** Which of both it was. */
export const bodyFailures = new WeakMap<IncomingMessage, ErrorCode>()

const keyOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`

/** An IPv4 address, or the /64 network of an IPv6 one, the smallest range that one client gets. */
export function networkOf(address: string): string {
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address
  if (!isIPv6(plain)) return plain
  const [front = [], back = []] = plain.split('::').map((part) => (part === '' ? [] : part.split(':')))
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0')
  return `${[...front, ...zeros, ...back].slice(0, 4).join(':')}::/64`
}
