import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { OutgoingMail } from '#sdk/notifier/notifier.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import webhook from './webhook.ts'

const mail: OutgoingMail = {
  id: 'id-1',
  recipient: '#slack',
  subject: 'Approval needed',
  text: 'ada asks for payroll.',
  html: '',
  links: [],
  date: new Date('2026-01-02T03:04:05Z'),
}

interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A receiver that answers with that status, or never. */
async function receiver(status: number | 'never', answer = 'ok') {
  const received: Received[] = []
  const server: Server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, body })
      if (status !== 'never') response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(answer)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  onTestFinished(close)
  return { received, close, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/services/secret` }
}

function prepare(params: ParamValues) {
  const issues = noIssues()
  const prepared = webhook.prepare(fakeParams(params, ['url']), issues, fakeParseContext())
  return { prepared, issues: issueTexts(issues.list) }
}

async function send(url: string, params: ParamValues = {}) {
  const { prepared, issues } = prepare({ url, ...params })
  expect(issues).toEqual([])
  const notifier = await prepared.create(fakeModuleHost())
  onTestFinished(async () => notifier.close?.())
  const handed: string[] = []
  return { outcome: await notifier.send(mail, async () => void handed.push(mail.id)), handed }
}

describe('a webhook', () => {
  test('gets the message in its format, once for each id', async () => {
    const { url, received } = await receiver(200)
    expect(await send(url, { format: 'slack' })).toEqual({ outcome: { kind: 'accepted' }, handed: ['id-1'] })
    const [got] = received
    expect(got).toMatchObject({
      path: '/services/secret',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'id-1' },
    })
    expect(JSON.parse(got?.body ?? '')).toMatchObject({ text: 'Approval needed' })
  })

  test.each([
    [429, 'failed'],
    [500, 'failed'],
    [503, 'failed'],
    [502, 'unknown'],
    [504, 'unknown'],
    [302, 'refused'],
    [400, 'refused'],
    [404, 'refused'],
    [410, 'refused'],
  ] as const)('that answers %i: %s', async (status, kind) => {
    const { url, received } = await receiver(status)
    expect((await send(url)).outcome).toEqual({ kind, reason: `the webhook answered ${status}` })
    expect(received).toHaveLength(1)
  })

  test('that does not answer has an unknown outcome; one that is not there gets another attempt', async () => {
    const silent = await receiver('never')
    expect((await send(silent.url, { timeoutSeconds: '1' })).outcome.kind).toBe('unknown')
    const gone = await receiver(200)
    await gone.close()
    const { outcome } = await send(gone.url)
    expect(outcome.kind).toBe('failed')
    expect(JSON.stringify(outcome)).not.toContain('secret')
  })

  test('that accepts with a long answer has accepted', async () => {
    const { url } = await receiver(200, 'x'.repeat(100_000))
    expect((await send(url)).outcome).toEqual({ kind: 'accepted' })
  })

  test('gets nothing if another process has the message', async () => {
    const { url, received } = await receiver(200)
    const notifier = await prepare({ url }).prepared.create(fakeModuleHost())
    onTestFinished(async () => notifier.close?.())
    const outcome = await notifier.send(mail, async () => {
      throw new Error('another process has taken the mail')
    })
    expect({ outcome: outcome.kind, received }).toEqual({ outcome: 'failed', received: [] })
  })
})

test('a wrong address is reported without its text, which is a secret', () => {
  for (const url of ['http://hooks.example.com/T1/s3cr3t', 's3cr3t', 'ftp://x/s3cr3t', 'https://u:p@x/s3cr3t']) {
    const { issues } = prepare({ url })
    expect(issues).toHaveLength(1)
    expect(issues[0]).not.toContain('s3cr3t')
  }
  expect(prepare({}).issues).toHaveLength(1)
  expect(prepare({ url: 'https://hooks.example.com/T1/s3cr3t' }).issues).toEqual([])
  expect(prepare({ url: 'http://localhost:1/x', format: 'discord' }).issues).toHaveLength(1)
})
