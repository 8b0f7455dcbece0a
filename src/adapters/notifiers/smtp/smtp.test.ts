import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Notifier, OutgoingMail } from '#sdk/notifier/notifier.ts'
import { testServerCertificate, unrelatedCertificate } from '#testing/gateway/test-certificates.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { type MailServer, type MailServerOptions, mailServer } from '#testing/servers/mail-server.ts'
import smtp from './smtp.ts'

async function serve(options: MailServerOptions = {}): Promise<MailServer> {
  const server = await mailServer(options)
  onTestFinished(() => server.close())
  return server
}

async function notifierFor({ port }: { port: number }, params: ParamValues = {}): Promise<Notifier> {
  const issues = noIssues()
  const given = { host: '127.0.0.1', port: String(port), security: 'none', from: 'Gatehouse <gate@example.com>' }
  const prepared = smtp.prepare(fakeParams({ ...given, ...params }), issues, fakeParseContext())
  expect(issueTexts(issues.list).filter((text) => text.startsWith('error'))).toEqual([])
  const notifier = await prepared.create(fakeModuleHost())
  onTestFinished(async () => notifier.close?.())
  return notifier
}

const mail: OutgoingMail = {
  id: 'id-1',
  recipient: 'ada@example.com',
  subject: 'Zugriff für Ada',
  text: 'Grüße & <b>more</b>\n.\nend',
  html: '<p>Grüße &amp; &lt;b&gt;</p>',
  links: [],
  date: new Date('2026-01-02T03:04:05Z'),
}

const noted = async (): Promise<void> => {}

test('a mail has both forms, its own id and date, and is marked as automatic', async () => {
  const server = await serve()
  const notifier = await notifierFor(server)
  expect(await notifier.send(mail, noted)).toEqual({ kind: 'accepted' })
  const [got] = server.mails
  expect(got).toMatchObject({ from: 'gate@example.com', to: ['ada@example.com'], encrypted: false })
  const header = (name: string) => got?.headers.get(name)
  expect(header('message-id')).toEqual(['<id-1@example.com>'])
  expect(header('date')).toEqual(['Fri, 02 Jan 2026 03:04:05 +0000'])
  expect(header('auto-submitted')).toEqual(['auto-generated'])
  expect(header('from')).toEqual(['Gatehouse <gate@example.com>'])
  expect(header('to')).toEqual(['ada@example.com'])
  expect(header('subject')?.[0]).toMatch(/^=\?UTF-8\?Q\?/)
  expect(header('content-type')?.[0]).toMatch(/^multipart\/alternative/)
  expect(got?.parts.map(({ type, body }) => [type.split(';')[0], body])).toEqual([
    ['text/plain', mail.text],
    ['text/html', mail.html],
  ])
})

test('another attempt has the same id, and connections are reused', async () => {
  const server = await serve()
  const notifier = await notifierFor(server, { connections: '1' })
  for (let i = 0; i < 3; i++) expect(await notifier.send(mail, noted)).toEqual({ kind: 'accepted' })
  expect(new Set(server.mails.flatMap(({ headers }) => headers.get('message-id')))).toEqual(
    new Set(['<id-1@example.com>']),
  )
})

describe('a server that does not accept a mail', () => {
  test.each([
    ['RCPT', 451, 'failed'],
    ['RCPT', 550, 'refused'],
    ['DATA', 452, 'failed'],
    ['DATA', 554, 'refused'],
  ] as const)('at %s with %i: %s', async (at, code, kind) => {
    const server = await serve({ reply: () => ({ at, code }) })
    const outcome = await (await notifierFor(server)).send(mail, noted)
    expect(outcome).toMatchObject({ kind, reason: expect.stringContaining(String(code)) })
    expect(server.mails).toEqual([])
  })

  test('because it is down, or rejects the password: another attempt may succeed', async () => {
    const server = await serve({ login: { user: 'gate', password: 'right' } })
    const wrong = await notifierFor(server, { user: 'gate', password: 'wrong' })
    expect(await wrong.send(mail, noted)).toMatchObject({ kind: 'failed' })
    const right = await notifierFor(server, { user: 'gate', password: 'right' })
    expect(await right.send(mail, noted)).toEqual({ kind: 'accepted' })
    expect(server.mails[0]?.user).toBe('gate')
    expect(await (await notifierFor({ port: 1 })).send(mail, noted)).toMatchObject({ kind: 'failed' })
  })

  test('because it is silent: the attempt ends in time', async () => {
    const server = await serve({ beforeAcknowledged: () => new Promise(() => {}) })
    const notifier = await notifierFor(server, { sendTimeoutSeconds: '1' })
    const begun = Date.now()
    expect(await notifier.send(mail, noted)).toMatchObject({ kind: 'unknown' })
    expect(Date.now() - begun).toBeLessThan(5000)
  })
})

describe('encryption', () => {
  test.each(['starttls', 'tls'] as const)('by %s, with the configured authority', async (security) => {
    const server = await serve({ security })
    const notifier = await notifierFor(server, { security, certificate: testServerCertificate })
    expect(await notifier.send(mail, noted)).toEqual({ kind: 'accepted' })
    expect(server.mails[0]?.encrypted).toBe(true)
  })

  test.each(['starttls', 'tls'] as const)('by %s rejects a server of another authority', async (security) => {
    const server = await serve({ security })
    const notifier = await notifierFor(server, { security, certificate: unrelatedCertificate })
    expect(await notifier.send(mail, noted)).toMatchObject({ kind: 'failed' })
    expect(await (await notifierFor(server, { security })).send(mail, noted)).toMatchObject({ kind: 'failed' })
    expect(server.mails).toEqual([])
  })

  test('is required even if the server offers none', async () => {
    const server = await serve({ security: 'none' })
    const notifier = await notifierFor(server, { security: 'starttls', certificate: testServerCertificate })
    expect(await notifier.send(mail, noted)).toMatchObject({ kind: 'failed' })
    expect(server.mails).toEqual([])
  })
})

test('no text of a mail becomes a header or another recipient', async () => {
  const server = await serve()
  const notifier = await notifierFor(server)
  const hostile: readonly Partial<OutgoingMail>[] = [
    { subject: 'Hi\r\nBcc: eve@example.com' },
    { subject: 'Hi\nX-Evil: 1' },
    { recipient: 'ada@example.com\r\nBcc: eve@example.com' },
    { recipient: 'ada@example.com, eve@example.com' },
    { recipient: 'ada@example.com> RCPT TO:<eve@example.com' },
  ]
  for (const change of hostile) {
    expect(await notifier.send({ ...mail, ...change }, noted)).toMatchObject({ kind: 'refused' })
  }
  expect(server.mails).toEqual([])
  await notifier.send(
    { ...mail, text: '\r\n.\r\nMAIL FROM:<eve@example.com>\r\n', subject: 'Bcc: eve@example.com' },
    noted,
  )
  expect(server.mails).toHaveLength(1)
  expect(server.mails[0]?.headers.has('bcc')).toBe(false)
})

describe('the hand-over of a mail', () => {
  test('is recorded when everything but the end was sent, and before the server accepts it', async () => {
    const server = await serve()
    const notifier = await notifierFor(server)
    const seen: number[] = []
    await notifier.send(mail, async () => {
      await new Promise((resolve) => setTimeout(resolve, 50))
      seen.push(server.mails.length)
    })
    expect({ seen, taken: server.mails.length }).toEqual({ seen: [0], taken: 1 })
  })

  test('that cannot be recorded does not happen: the server never gets the mail', async () => {
    const server = await serve()
    const notifier = await notifierFor(server)
    const outcome = await notifier.send(mail, async () => {
      throw new Error('the database is away')
    })
    expect(outcome).toMatchObject({ kind: 'failed', reason: expect.stringContaining('the database is away') })
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(server.mails).toEqual([])
    expect(await notifier.send(mail, noted)).toEqual({ kind: 'accepted' })
  })

  test('that comes too late is stopped', async () => {
    const server = await serve()
    const notifier = await notifierFor(server, { sendTimeoutSeconds: '1' })
    const outcome = await notifier.send(mail, () => new Promise((resolve) => setTimeout(resolve, 1500)))
    expect(outcome).toMatchObject({ kind: 'failed' })
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(server.mails).toEqual([])
  })

  test('after which the connection breaks is unknown, and a refusal by the server is not', async () => {
    const sockets = new Set<Socket>()
    const cutting = createServer((socket) => {
      sockets.add(socket)
      socket.write('220 ready\r\n')
      let data = false
      socket.on('data', (chunk) => {
        const text = chunk.toString()
        if (data && text.includes('\r\n.\r\n')) return socket.destroy()
        if (data) return
        data = /^DATA/m.test(text)
        socket.write(data ? '354 go on\r\n' : '250 ok\r\n')
      })
      socket.on('error', () => {})
    })
    await new Promise<void>((resolve) => cutting.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void cutting.close())
    const { port } = cutting.address() as AddressInfo
    expect(await (await notifierFor({ port })).send(mail, noted)).toMatchObject({ kind: 'unknown' })
    const refusing = await serve({ reply: () => ({ at: 'DATA', code: 451 }) })
    expect(await (await notifierFor(refusing)).send(mail, noted)).toMatchObject({ kind: 'failed' })
    for (const socket of sockets) socket.destroy()
  })
})
