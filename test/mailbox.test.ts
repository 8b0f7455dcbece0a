import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { createTransport } from 'nodemailer'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '#testing/gateway/gateway-process.ts'

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

test('the mailbox of the examples shows mails as people read them, whatever their letters', async () => {
  const port = await freePort()
  const mailbox = spawn('bin/node', ['examples/approvals/mailbox.js', String(port)])
  onTestFinished(() => void mailbox.kill())
  let output = ''
  mailbox.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  await until(async () => output.includes('are shown here'), 60_000)
  const transport = createTransport({ host: '127.0.0.1', port, secure: false, ignoreTLS: true })
  onTestFinished(() => transport.close())
  const subject = 'Genehmigung nötig: Zugang zum Tresor für Ägidius Übermüller, und noch einiges mehr'
  const text = `Grüße, 承認してください。\n\nGenehmigen:\nhttps://gate.test/decide?token=${'a'.repeat(200)}\n`
  for (const one of [
    { subject, text },
    { subject: 'Done: a car', text: 'It is done.' },
  ]) {
    await transport.sendMail({ from: 'gate@example.com', to: 'ada@example.com', html: '<p>x</p>', ...one })
  }
  await until(async () => output.includes('It is done.'), 60_000)
  expect(output).toContain(`To: ada@example.com\nSubject: ${subject}\n\n${text}`)
  expect(output).toContain('Subject: Done: a car\n\nIt is done.\n')
})

test.each([
  [['--help'], 0],
  [['-h'], 0],
  [['x'], 2],
  [['99999'], 2],
  [['2525', '2526'], 2],
])('the mailbox with %j prints its usage', async (args, expected) => {
  const mailbox = spawn('bin/node', ['examples/approvals/mailbox.js', ...args])
  onTestFinished(() => void mailbox.kill())
  const closed = once(mailbox, 'close')
  const [out, errors, [code]] = await Promise.all([textOf(mailbox.stdout), textOf(mailbox.stderr), closed])
  expect([code, expected === 0 ? errors : out]).toEqual([expected, ''])
  expect(expected === 0 ? out : errors).toContain('Usage: bin/node examples/approvals/mailbox.js [PORT]\n')
})
