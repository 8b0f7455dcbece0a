import { Readable } from 'node:stream'
import type { SendMailOptions, Transporter } from 'nodemailer'
import type { Issues } from '#kernel/issues.ts'
import { checkMail, isMailAddress } from '#sdk/mail/mail.ts'
import { authorityParameters, loadAuthority, readAuthority } from '#sdk/module/authority.ts'
import { choice, flag, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, parameterReport, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import {
  defineNotifier,
  type HandOver,
  type Notifier,
  type OutgoingMail,
  type SendOutcome,
} from '#sdk/notifier/notifier.ts'

const securities = ['none', 'starttls', 'tls'] as const
type Security = (typeof securities)[number]

const usualPorts: Readonly<Record<Security, number>> = { none: 25, starttls: 587, tls: 465 }

const parameters = {
  host: text({ about: 'The mail server.', required: true }),
  port: wholeNumber({
    about: 'Its port; by `security`, 25, 587 or 465 when absent.',
    requirement: 'no',
    fallback: 0,
    min: 1,
    max: 65_535,
  }),
  security: choice(securities, {
    about:
      '`starttls` (the connection must become encrypted, or nothing is sent), `tls` (encrypted from the start) or `none`.',
    fallback: 'starttls',
  }),
  tls: flag({ about: 'The older form: `"true"` is `starttls`, `"false"` is `none`.' }),
  ...authorityParameters,
  user: text({ about: 'The user name for the mail server; no login when absent.' }),
  password: text({ about: 'The password of `user`.', secret: true }),
  from: parsed('mail address', parseSender, {
    about: 'The sender: an address, or `Name <address>`. Its domain is the right side of Message-IDs.',
    required: true,
  }),
  localHost: text({ about: "The name that Gatehouse gives itself in the greeting; the machine's own when absent." }),
  connections: wholeNumber({
    about: 'Maximum number of open connections.',
    fallback: 2,
    min: 1,
    max: 20,
  }),
  connectTimeoutSeconds: wholeNumber({
    about: 'Time limit to connect to the server and receive its greeting.',
    fallback: 10,
    min: 1,
    max: 60,
  }),
  sendTimeoutSeconds: wholeNumber({
    about: 'How long one attempt may take in all.',
    fallback: 60,
    min: 1,
    max: 120,
  }),
  subject: text({ about: 'Accepted and not used: every mail has a subject.' }),
  useSOCKSProxy: flag({ about: 'Not supported; an error when `"true"`.' }),
  SOCKSProxyHost: text({ about: 'Accepted and not used.' }),
  SOCKSProxyPort: text({ about: 'Accepted and not used.' }),
} satisfies ParameterTable

interface Sender {
  readonly name: string
  readonly address: string
}

type SmtpConfig = ReturnType<typeof parseSmtp>

export function parseSmtp(params: Params, issues: Issues, context: ParseContext) {
  const given = readParameters(parameters, params, issues, context)
  const { isSet, error } = parameterReport(params, issues)
  if (isSet('security') && isSet('tls')) {
    error('tls', '"tls" is the older form of "security"; remove one')
  }
  if (given.useSOCKSProxy) error('useSOCKSProxy', 'a SOCKS proxy is not supported')
  const legacy: Security = given.tls ? 'starttls' : 'none'
  const security = isSet('tls') && !isSet('security') ? legacy : given.security
  if (given.user === undefined && given.password !== undefined) {
    error('user', '"user" is required where there is a password')
  }
  if (given.user !== undefined && given.password === undefined) {
    error('password', '"password" is required where there is a user')
  }
  if (given.user !== undefined && security === 'none') {
    issues.warning(params.pathOf('user'), 'without encryption the password can be read on its way to the server')
  }
  return {
    ...given,
    port: given.port === 0 ? usualPorts[security] : given.port,
    security,
    authority: readAuthority(given, params, issues, context),
    login: given.user === undefined ? undefined : { user: given.user, pass: given.password ?? '' },
    from: given.from ?? { name: '', address: '' },
    connectMillis: given.connectTimeoutSeconds * 1000,
    sendMillis: given.sendTimeoutSeconds * 1000,
  }
}

function parseSender(written: string): Sender {
  const [, name = '', bracketed] = /^([^<>\p{Cc}]{0,200})<([^<>]+)>$/u.exec(written) ?? []
  const address = (bracketed ?? written).trim()
  if (!isMailAddress(address)) throw new Error('must be an address, or a name followed by an address in <>')
  return { name: name.trim().replace(/^"(.*)"$/, '$1'), address }
}

/** Sends mail through an SMTP server, over a few connections that are kept open. */
export default defineNotifier({
  className: 'notifiers.Smtp',
  delivers: 'mails',
  aliases: ['com.tremolosecurity.notifications.StmpNotifications'],
  parameters,
  parse: parseSmtp,
  create: async (config) => new SmtpNotifier(config, await pooled(config, await loadAuthority(config.authority))),
})

/** The key under which the stream of a mail's content finds its gate. */
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
      // Prevents vacation replies and bounces to a machine (RFC 3834).
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

/** The library is loaded only if a mail server is configured. */
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
    tls: { minVersion: 'TLSv1.2', ca },
    ...(login === undefined ? {} : { auth: login }),
    ...(localHost === undefined ? {} : { name: localHost }),
    maxConnections: connections,
    // The outbox counts attempts, so the library must not retry on its own.
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

/** Once the whole mail was sent, the server may have accepted it despite the timeout. */
function timeLimit(millis: number, gate: DataGate) {
  const { promise, resolve } = Promise.withResolvers<SendOutcome>()
  const reason = `the mail server took longer than ${millis / 1000} seconds`
  const end = (): void => resolve(gate.close() ? { kind: 'failed', reason } : { kind: 'unknown', reason })
  return { promise, timer: setTimeout(end, millis) }
}

/** Failures of this one mail; all others concern the server or the connection, and are temporary. */
const aboutTheMail = new Set(['EENVELOPE', 'EMESSAGE'])
const maxReasonLength = 300

/**
 * What a failed attempt means: a permanent refusal only if the server rejects this mail. If a mail was sent whole and
 * the server did not answer, the outcome is unknown.
 */
export function sendOutcome(error: unknown, givenOut: boolean): SendOutcome {
  const fields: Readonly<Record<string, unknown>> = typeof error === 'object' && error !== null ? { ...error } : {}
  const { code, responseCode, command } = fields
  const said = error instanceof Error ? error.message : String(error)
  const reason = said.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, maxReasonLength)
  if (givenOut && typeof responseCode !== 'number') return { kind: 'unknown', reason }
  const permanent = typeof responseCode === 'number' ? responseCode >= 500 && responseCode < 600 : command === 'API'
  return { kind: aboutTheMail.has(String(code)) && permanent ? 'refused' : 'failed', reason }
}

/**
 * Sits between a mail and the end of its data, which makes a server accept it: the end is sent only after the hand-over
 * was recorded. A server that never sees the end drops the mail.
 */
class DataGate {
  readonly #handOver: HandOver
  #passed = false
  #closed = false

  constructor(handOver: HandOver) {
    this.#handOver = handOver
  }

  /** The end was sent, or is about to be. */
  get passed(): boolean {
    return this.#passed
  }

  /** Stops the content from now on. Returns false if it is too late. */
  close(): boolean {
    this.#closed = true
    return !this.#passed
  }

  /** The content, whose end follows after the hand-over was recorded. Nothing is read before the stream is. */
  guard(content: Readable): Readable {
    return Readable.from(this.#guarded(content), { objectMode: false })
  }

  async *#guarded(content: Readable): AsyncGenerator<unknown> {
    yield* content
    this.#check()
    await this.#handOver()
    this.#check()
    this.#passed = true
  }

  #check(): void {
    if (this.#closed) throw new Error('it took too long to hand the mail over')
  }
}
