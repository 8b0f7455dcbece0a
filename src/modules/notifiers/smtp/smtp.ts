import type { SendMailOptions, Transporter } from 'nodemailer'
import { readSmallFile } from '#kernel/small-file.ts'
import { DataGate } from '#modules/notifiers/smtp/data-gate.ts'
import { sendOutcome } from '#modules/notifiers/smtp/send-outcome.ts'
import { parameters, parseSmtp, type SmtpConfig } from '#modules/notifiers/smtp/smtp-parameters.ts'
import { checkMail } from '#sdk/notifier/mail.ts'
import {
  defineNotifier,
  type HandOver,
  type Notifier,
  type OutgoingMail,
  type SendOutcome,
} from '#sdk/notifier/notifier.ts'

/** Sends mail through an SMTP server, over a few connections that are kept open. */
export default defineNotifier({
  className: 'notifiers.Smtp',
  aliases: ['com.tremolosecurity.notifications.StmpNotifications'],
  parameters,
  parse: parseSmtp,
  create: async (config) => new SmtpNotifier(config, await pooled(config, await authorityOf(config))),
})

const authorityOf = async ({ authority }: SmtpConfig): Promise<string | undefined> =>
  authority !== undefined && 'file' in authority ? readSmallFile(authority.file) : authority?.pem

/** By this the gate of a mail reaches the stream of its content. */
const gateKey = 'gatehouseGate'
interface GatedData {
  readonly [gateKey]?: DataGate
}

class SmtpNotifier implements Notifier {
  readonly #config: SmtpConfig
  readonly #transport: Transporter

  constructor(config: SmtpConfig, transport: Transporter) {
    this.#config = config
    this.#transport = transport
  }

  async send(mail: OutgoingMail, handOver: HandOver): Promise<SendOutcome> {
    try {
      checkMail(mail)
    } catch (error) {
      return { kind: 'refused', reason: error instanceof Error ? error.message : String(error) }
    }
    const { from, sendMillis } = this.#config
    const gate = new DataGate(handOver)
    const { promise: late, timer } = timeLimit(sendMillis, gate)
    const message: SendMailOptions & GatedData = {
      [gateKey]: gate,
      from,
      to: { name: '', address: mail.recipient },
      envelope: { from: from.address, to: [mail.recipient] },
      messageId: `<${mail.id}@${from.address.slice(from.address.indexOf('@') + 1)}>`,
      date: mail.date,
      subject: mail.subject,
      text: mail.text,
      html: mail.html,
      // No vacation note or bounce is to be answered to a machine (RFC 3834).
      headers: { 'Auto-Submitted': 'auto-generated' },
    }
    const sending = this.#transport.sendMail(message).then(
      (): SendOutcome => ({ kind: 'accepted' }),
      (error: unknown) => sendOutcome(error, gate.passed),
    )
    const outcome = await Promise.race([sending, late])
    clearTimeout(timer)
    return outcome
  }

  close(): void {
    this.#transport.close()
  }
}

/** The library is loaded where a mail server is configured, and nowhere else. */
async function pooled(config: SmtpConfig, ca: string | undefined): Promise<Transporter> {
  const { createTransport } = await import('nodemailer')
  const { host, port, security, login, localHost, connections, ...times } = config
  const transport = createTransport({
    pool: true,
    host,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    tls: { minVersion: 'TLSv1.2', ...(ca === undefined ? {} : { ca }) },
    ...(login === undefined ? {} : { auth: login }),
    ...(localHost === undefined ? {} : { name: localHost }),
    maxConnections: connections,
    // Attempts are counted by the outbox, so none is made behind its back.
    maxRequeues: 0,
    connectionTimeout: times.connectMillis,
    greetingTimeout: times.connectMillis,
    dnsTimeout: times.connectMillis,
    socketTimeout: times.sendMillis,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  transport.use('stream', ({ data, message }, done) => {
    const gate = (data as GatedData)[gateKey]
    if (gate !== undefined) message.processFunc((content) => gate.guard(content))
    done()
  })
  return transport
}

/** Once the whole mail was given out, the server may have taken it all the same. */
function timeLimit(millis: number, gate: DataGate) {
  const { promise, resolve } = Promise.withResolvers<SendOutcome>()
  const reason = `the mail server took longer than ${millis / 1000} seconds`
  const end = (): void => resolve(gate.close() ? { kind: 'failed', reason } : { kind: 'unknown', reason })
  return { promise, timer: setTimeout(end, millis) }
}
