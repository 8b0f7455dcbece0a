import { readFileSync } from 'node:fs'
import type { Logger } from '#kernel/logger.ts'

/** The limits of everything that a client can send or keep open. */
export const httpLimits = {
  bodyBytes: 1024 * 1024,
  /** The longest oversized body that is received and discarded before the response. */
  discardedBytes: 16 * 1024 * 1024,
  headerBytes: 16 * 1024,
  headerCount: 100,
  pathCharacters: 8 * 1024,
  /** Requests of one connection without a response yet. */
  pipelinedRequests: 16,
  /** For the whole response to be created. */
  answerSeconds: 60,
  /** For any byte to pass while a request is being answered: longer than creating the response takes. */
  quietSeconds: 75,
  /** For a client to receive any part of a response. */
  stalledAnswerSeconds: 30,
  /** For a client to receive the response to a request that timed out, before the socket is destroyed. */
  flushMillis: 1000,
  /** For a new connection to send a request before another may take its place. */
  graceMillis: 2000,
  /** The same for a body to arrive. */
  slowBodyMillis: 5000,
  /** Connections beyond the limits, for which only health checks are answered. */
  healthConnections: 32,
} as const

/** The limits of one listener's connections. `serve` sets them; see docs/reference/command-line.md. */
export interface ConnectionLimits {
  /** Open connections in total. */
  readonly total: number
  /** Open connections of one address: an IPv4 address, or a /64 network of IPv6. Trusted proxies have no such limit. */
  readonly perAddress: number
  /** For the TLS handshake, and for all headers of a request to arrive. */
  readonly headerSeconds: number
  /** For the whole request to arrive, including the body. */
  readonly requestSeconds: number
  /** Between two requests. */
  readonly idleSeconds: number
}

export const defaultConnectionLimits: ConnectionLimits = {
  total: 4000,
  perAddress: 1000,
  headerSeconds: 10,
  requestSeconds: 30,
  idleSeconds: 65,
}

/** The operators' listener and the webhook's have few clients. */
const mostOperations = 128
const mostWebhook = 256
/** Open files that aren't client connections: databases, logs, sockets to targets. */
const otherFiles = 256
const leastPublic = 32

interface ListenerLimits {
  readonly public: ConnectionLimits
  readonly operations: ConnectionLimits
  readonly webhook: ConnectionLimits
}

/** The limits of each listener, such that all connections together fit into the files that the process may open. */
export function limitListeners(
  limits: ConnectionLimits = defaultConnectionLimits,
  log: Logger,
  openFiles = openFileLimit(),
): ListenerLimits {
  const fitting = Math.max(leastPublic, openFiles - otherFiles - mostOperations - mostWebhook)
  if (fitting < limits.total) {
    log.warn('fewer connections than configured: the process may not open enough files', { openFiles, total: fitting })
  }
  return {
    public: atMost(limits, fitting),
    operations: limitOperations(limits),
    webhook: atMost(limits, mostWebhook),
  }
}

export const limitOperations = (limits: ConnectionLimits): ConnectionLimits => atMost(limits, mostOperations)

const atMost = (limits: ConnectionLimits, total: number): ConnectionLimits => ({
  ...limits,
  total: Math.min(limits.total, total),
  perAddress: Math.min(limits.perAddress, total),
})

/** How many files this process may open; known on Linux. */
function openFileLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
