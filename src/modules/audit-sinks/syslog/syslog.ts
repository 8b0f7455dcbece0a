import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import process from 'node:process'
import { connect, type SyslogReceiver, sendAndEnd } from '#modules/audit-sinks/syslog/syslog-connection.ts'
import { type SyslogOrigin, syslogFrame } from '#modules/audit-sinks/syslog/syslog-message.ts'
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
    fallback: 0,
    min: 1,
    max: 65_535,
  }),
  security: choice(['tls', 'none'], { about: '`tls` (RFC 5425), or `none` for plain TCP.', fallback: 'tls' }),
  caFile: text({
    about: 'A PEM file with the certificate authority of the receiver; the system’s own when absent.',
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
 * TCP has no acknowledgement that a program could see, so each batch has a connection of its own: when the receiver ends it
 * after we did, it has read the batch. The next connection is opened at once, and is watched until the batch has settled:
 * where it breaks, the receiver may have died with what it had read, which is then sent again.
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
