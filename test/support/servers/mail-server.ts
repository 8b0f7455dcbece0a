import { SMTPServer } from 'smtp-server'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'

export interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  readonly encrypted: boolean
  readonly user: string | undefined
  /** The raw bytes. */
  readonly raw: string
  /** By lower-case name, unfolded; one value for each line. */
  readonly headers: ReadonlyMap<string, readonly string[]>
  readonly parts: readonly { readonly type: string; readonly body: string }[]
}

export interface MailServerOptions {
  readonly port?: number
  readonly security?: 'none' | 'starttls' | 'tls'
  readonly login?: { readonly user: string; readonly password: string }
  /** The reply to the n-th mail to this recipient, counted from 1; the mail is accepted if undefined. */
  reply?(recipient: string, attempt: number): { readonly at: 'RCPT' | 'DATA'; readonly code: number } | undefined
  /** Called after a mail was received and before it is acknowledged. */
  beforeAcknowledged?(mail: ReceivedMail): Promise<void>
}

export interface MailServer {
  readonly port: number
  /** Accepted mails, in order of arrival. */
  readonly mails: ReceivedMail[]
  /** The number of attempts for a recipient. */
  attempts(recipient: string): number
  close(): Promise<void>
}

/** A real SMTP server on 127.0.0.1. */
export async function mailServer(options: MailServerOptions = {}): Promise<MailServer> {
  const { security = 'none', login, reply } = options
  const mails: ReceivedMail[] = []
  const attempts = new Map<string, number>()
  const refusal = (code: number) => Object.assign(new Error('not now'), { responseCode: code })
  const server = new SMTPServer({
    secure: security === 'tls',
    key: testServerKey,
    cert: testServerCertificate,
    disabledCommands: security === 'none' ? ['STARTTLS'] : [],
    authOptional: login === undefined,
    allowInsecureAuth: true,
    closeTimeout: 200,
    onAuth: ({ username = '', password }, _session, done) => {
      if (username === login?.user && password === login.password) done(null, { user: username })
      else done(new Error('who are you?'))
    },
    onRcptTo: ({ address }, _session, done) => {
      const count = (attempts.get(address) ?? 0) + 1
      attempts.set(address, count)
      const answer = reply?.(address, count)
      done(answer?.at === 'RCPT' ? refusal(answer.code) : null)
    },
    onData: (stream, session, done) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => void chunks.push(chunk))
      stream.on('end', () => {
        const to = session.envelope.rcptTo.map(({ address }) => address)
        const answer = reply?.(to[0] ?? '', attempts.get(to[0] ?? '') ?? 0)
        if (answer?.at === 'DATA') return done(refusal(answer.code))
        const { mailFrom } = session.envelope
        const mail = {
          from: mailFrom === false ? '' : mailFrom.address,
          to,
          encrypted: session.secure,
          user: typeof session.user === 'string' ? session.user : undefined,
          ...parseMessage(Buffer.concat(chunks).toString('utf8')),
        }
        mails.push(mail)
        void (options.beforeAcknowledged?.(mail) ?? Promise.resolve()).then(() => done())
      })
    },
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => void server.listen(options.port ?? 0, '127.0.0.1', resolve))
  const address = server.server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    mails,
    attempts: (recipient) => attempts.get(recipient) ?? 0,
    close: () => new Promise((resolve) => void server.close(() => resolve())),
  }
}

function parseMessage(raw: string): Pick<ReceivedMail, 'raw' | 'headers' | 'parts'> {
  const { headers, body } = split(raw)
  const boundary = /boundary="?([^";]+)"?/.exec(headers.get('content-type')?.[0] ?? '')?.[1]
  const sections = boundary === undefined ? [] : body.split(`--${boundary}`).slice(1, -1)
  const parts = sections.map((section) => {
    const part = split(section.replace(/^\r\n/, ''))
    const type = part.headers.get('content-type')?.[0] ?? ''
    return { type, body: decode(part.body, part.headers.get('content-transfer-encoding')?.[0] ?? '') }
  })
  return { raw, headers, parts }
}

function split(text: string) {
  const end = text.indexOf('\r\n\r\n')
  const headers = new Map<string, string[]>()
  for (const line of text
    .slice(0, end)
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()])
  }
  return { headers, body: text.slice(end + 4) }
}

function decode(body: string, encoding: string): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString('utf8')
  if (encoding !== 'quoted-printable') return body.replaceAll('\r\n', '\n').trimEnd()
  const bytes = body
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8').replaceAll('\r\n', '\n').trimEnd()
}
