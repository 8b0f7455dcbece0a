// A mail server for trying things out: it shows the text of the mails it gets, and sends them nowhere.
import { SMTPServer } from 'smtp-server'

const usage = `Usage: bin/node examples/approvals/mailbox.js [PORT]

Accepts mails at 127.0.0.1 and PORT (default 2525), and shows them instead of delivering them.
The examples send their mails to the port in MAIL_PORT of their values.yaml, or of the environment.`

const [port = '2525', ...others] = process.argv.slice(2)
if (port === '--help' || port === '-h') {
  console.log(usage)
  process.exit()
}
if (others.length > 0 || !/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65535) {
  console.error(`mailbox: the only argument is a port from 1 to 65535\n\n${usage}`)
  process.exit(2)
}

/** The bytes of quoted-printable text as the UTF-8 that Gatehouse writes. */
const quotedPrintable = (text) => {
  const bytes = text
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9A-F]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

/** The subject, which may go over several lines and have words in UTF-8. */
function subjectOf(mail) {
  const written = /^subject: (.*(?:\r?\n[ \t].*)*)/im.exec(mail)?.[1] ?? ''
  const words = written.replace(/\?=\s+=\?/g, '?==?').replace(/\r?\n[ \t]/g, ' ')
  return words.replace(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_, how, word) =>
    how.toLowerCase() === 'b'
      ? Buffer.from(word, 'base64').toString('utf8')
      : quotedPrintable(word.replaceAll('_', ' ')),
  )
}

/** The plain form of a mail of Gatehouse, without headers. */
function plainText(mail) {
  const [, part = mail] = mail.split(/^content-type: text\/plain.*$/im)
  const [head = '', ...body] = part.split(/^--/m)[0].split(/\r?\n\r?\n/)
  const text = body.join('\n\n')
  if (/quoted-printable/i.test(head)) return quotedPrintable(text)
  return /base64/i.test(head) ? Buffer.from(text, 'base64').toString() : text
}

const server = new SMTPServer({
  authOptional: true,
  disabledCommands: ['STARTTLS'],
  onData(stream, session, done) {
    stream.setEncoding('utf8')
    stream.toArray().then((chunks) => {
      const mail = chunks.join('')
      const to = session.envelope.rcptTo.map(({ address }) => address).join(', ')
      console.log(`To: ${to}\nSubject: ${subjectOf(mail)}\n\n${plainText(mail).replaceAll('\r\n', '\n').trim()}\n`)
      done()
    }, done)
  },
})
server.on('error', (error) => {
  console.error(`mailbox: ${error.message}. Give another port as argument, and the same one to the gateway as MAIL_PORT.`)
  process.exitCode = 1
})
server.listen(Number(port), '127.0.0.1', () => console.log(`mails to 127.0.0.1:${port} are shown here`))
