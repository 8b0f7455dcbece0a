import { once } from 'node:events'
import { connect as connectPlain, type Socket } from 'node:net'
import { hostname } from 'node:os'
import process from 'node:process'
import { connect as connectTls } from 'node:tls'
import {
  type AuditSink,
  defineAuditSink,
  readAuthority,
  type SinkOutcome,
  type SinkRecord,
} from '#sdk/audit/audit-sink.ts'
import { choice, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

/** RFC 5425 and RFC 6587. */
const usualPorts = { tls: 6514, none: 601 }
/** RFC 5424: log audit. */
const logAudit = 13

const parameters = {
  host: text({ about: 'The syslog receiver.', required: true }),
  port: wholeNumber({
    about: 'Its port; 6514 with TLS and 601 without when absent.',
    requirement: 'no',
    fallback: 0,
    min: 1,
    max: 65_535,
  }),
  security: choice(['tls', 'none'], { about: '`tls` (RFC 5425), or `none` for plain TCP.', fallback: 'tls' }),
  caFile: text({
    about:
      "A PEM file with the certificate authority of the receiver, relative to the configuration folder; the system's own when absent.",
  }),
  serverName: text({ about: 'The name that its certificate must have; `host` when absent.' }),
  facility: wholeNumber({ about: 'The facility of RFC 5424; 13 is log audit.', fallback: logAudit, max: 23 }),
  appName: text({ about: 'The APP-NAME.', fallback: 'gatehouse' }),
  settleSeconds: wholeNumber({
    about: 'What the receiver has read counts as stored after this time without a broken connection.',
    fallback: 10,
    min: 1,
    max: 600,
  }),
}

/** Sends the audit to a syslog receiver, one message for each row. */
export default defineAuditSink({
  className: 'auditSinks.Syslog',
  parameters,
  parse: (params, issues, context) => {
    const { caFile, ...given } = readParameters(parameters, params, issues, context)
    if (given.security === 'none') {
      issues.warning(params.pathOf('security'), 'without TLS anyone on the way can read and change the audit')
      if (caFile !== undefined) issues.error(params.pathOf('caFile'), '"caFile" needs "security: tls"')
    }
    return { ...given, authority: readAuthority(caFile, params.pathOf('caFile'), issues, context) }
  },
  create: ({ host, port, security, authority, serverName, facility, appName, settleSeconds }) =>
    new SyslogSink(
      {
        host,
        port: port === 0 ? usualPorts[security] : port,
        tls: security === 'tls' ? { authority, serverName } : undefined,
      },
      { facility, appName, hostName: hostname(), processId: process.pid },
      settleSeconds * 1000,
    ),
})

/** A connection that was idle for longer may be dead without a sign. */
const idleMillis = 30_000
const connectMillis = 10_000

/**
 * TCP gives programs no acknowledgement, so each batch has its own connection: a receiver that ends it after we did has
 * read the batch. The next connection opens at once, and is watched until the batch has settled. If it breaks, the
 * receiver may have died with the batch, which is then sent again.
 */
class SyslogSink implements AuditSink {
  readonly settleMillis: number
  readonly #receiver: SyslogReceiver
  readonly #origin: SyslogOrigin
  readonly #closing = new AbortController()
  #next: { readonly socket: Socket; readonly since: number } | undefined
  #lost = false

  constructor(receiver: SyslogReceiver, origin: SyslogOrigin, settleMillis: number) {
    this.#receiver = receiver
    this.#origin = origin
    this.settleMillis = settleMillis
  }

  async send(records: readonly SinkRecord[], signal: AbortSignal): Promise<SinkOutcome> {
    try {
      const socket = this.#takeNext() ?? (await connect(this.#receiver, signal))
      const frames = records.flatMap(({ time, lines }) => lines.map((line) => syslogFrame(this.#origin, time, line)))
      await sendAndEnd(socket, frames.join(''), signal)
      await this.#openNext(signal)
      return { kind: 'accepted' }
    } catch (error) {
      return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) }
    }
  }

  hasLost(): boolean {
    const lost = this.#lost
    this.#lost = false
    return lost
  }

  close(): void {
    this.#closing.abort()
    this.#next?.socket.destroy()
    this.#next = undefined
  }

  #takeNext(): Socket | undefined {
    const next = this.#next
    this.#next = undefined
    if (next === undefined) return undefined
    next.socket.removeAllListeners('close')
    if (Date.now() - next.since < idleMillis && !next.socket.destroyed) return next.socket
    next.socket.destroy()
    return undefined
  }

  async #openNext(signal: AbortSignal): Promise<void> {
    const limits = [signal, this.#closing.signal, AbortSignal.timeout(connectMillis)]
    const socket = await connect(this.#receiver, AbortSignal.any(limits))
    const next = { socket, since: Date.now() }
    this.#next = next
    socket.on('error', () => {})
    socket.once('end', () => socket.destroy())
    socket.once('close', () => {
      if (this.#next === next) this.#next = undefined
      this.#lost = true
    })
  }
}

/** The sender, as RFC 5424 names it. */
interface SyslogOrigin {
  readonly facility: number
  readonly hostName: string
  readonly appName: string
  readonly processId: number
}

const notice = 5
const warning = 4
/** Marks the text as UTF-8 (RFC 5424, 6.4). */
const byteOrderMark = '\ufeff'

/** One message of RFC 5424 in the octet-counting frame of RFC 6587 and 5425. */
function syslogFrame({ facility, hostName, appName, processId }: SyslogOrigin, time: Date, text: string): string {
  const severity = text.includes('"action":"refuse"') ? warning : notice
  const header = `<${facility * 8 + severity}>1 ${time.toISOString()} ${printable(hostName, 255)} ${printable(appName, 48)}`
  const message = `${header} ${processId} audit - ${byteOrderMark}${text}`
  return `${Buffer.byteLength(message)} ${message}`
}

/** Header fields hold printable ASCII without spaces; a missing value is a hyphen. */
const printable = (text: string, length: number): string => text.replace(/[^\x21-\x7e]/g, '').slice(0, length) || '-'

interface SyslogReceiver {
  readonly host: string
  readonly port: number
  /** Undefined for plain TCP. `authority` is PEM text; the system's own when absent. */
  readonly tls: { readonly authority: string | undefined; readonly serverName: string | undefined } | undefined
}

/** Connects; over TLS, the receiver's certificate is verified. Rejects when the signal fires. */
async function connect({ host, port, tls }: SyslogReceiver, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted()
  const socket =
    tls === undefined
      ? connectPlain({ host, port })
      : connectTls({
          host,
          port,
          minVersion: 'TLSv1.2',
          servername: tls.serverName,
          ca: tls.authority,
        })
  try {
    await once(socket, tls === undefined ? 'connect' : 'secureConnect', { signal })
  } catch (error) {
    socket.on('error', () => {})
    socket.destroy()
    throw error
  }
  // Discards the receiver's data: an unread stream never ends.
  socket.setKeepAlive(true, 10_000).resume()
  return socket
}

/**
 * Sends the text and ends our side. Resolves when the receiver ends its side: it has then read everything, since a
 * stream's end is read last. A receiver that dies earlier resets the connection, or ends it too early.
 */
function sendAndEnd(socket: Socket, text: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let isSent = false
    const finish = (error?: Error): void => {
      signal.removeEventListener('abort', stop)
      socket.destroy()
      if (error === undefined) resolve()
      else reject(error)
    }
    const stop = (): void => finish(new Error('the receiver did not read everything in time'))
    const early = (): void => finish(new Error('the receiver closed the connection before it had read everything'))
    signal.addEventListener('abort', stop)
    socket.on('error', finish)
    socket.once('end', () => (isSent ? finish() : early()))
    socket.once('close', early)
    if (signal.aborted) stop()
    else if (socket.destroyed || socket.readableEnded) early()
    else
      socket.end(text, () => {
        isSent = true
      })
  })
}
