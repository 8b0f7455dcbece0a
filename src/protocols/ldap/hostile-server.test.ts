import { createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'
import { maxAnswerBytes } from './ldap-messages.ts'
import { LdapServer } from './ldap-server.ts'

const tlv = (tag: number, ...content: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(content)
  const length = Buffer.alloc(5, 0x84)
  length.writeUInt32BE(body.length, 1)
  return Buffer.concat([Buffer.from([tag]), body.length < 128 ? Buffer.from([body.length]) : length, body])
}
const text = (value: string): Buffer => tlv(0x04, Buffer.from(value))
const id = (number: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(number)
  return tlv(0x02, bytes)
}
const message = (number: number, ...content: readonly Buffer[]): Buffer => tlv(0x30, id(number), ...content)
const result = (number: number, tag: number, code = 0, says = ''): Buffer =>
  message(number, tlv(tag, tlv(0x0a, Buffer.from([code])), text(''), text(says)))
const attribute = (name: string, values: readonly string[]): Buffer =>
  tlv(0x30, text(name), tlv(0x31, ...values.map(text)))
const entry = (number: number, dn: string, ...attributes: readonly Buffer[]): Buffer =>
  message(number, tlv(0x64, text(dn), tlv(0x30, ...attributes)))

const bound = 0x61
const done = 0x65
const extended = 0x78

/** A server that accepts the bind, which is message 2, and calls `answer` with the first later request. */
async function serverThat(answer: (socket: Socket) => void, timeoutMillis = 2000): Promise<LdapServer> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    let requests = 0
    socket.on('data', () => {
      requests++
      if (requests === 1) socket.write(result(2, bound))
      if (requests === 2) answer(socket)
    })
  })
  const port = await listening(server)
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return openServer(`ldap://127.0.0.1:${port}`, { timeoutMillis })
}

function listening(server: ReturnType<typeof createServer>): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(address !== null && typeof address === 'object' ? address.port : 0)
    })
  })
}

function openServer(url: string, more: { timeoutMillis?: number; startTls?: boolean; ca?: string } = {}): LdapServer {
  const server = new LdapServer({
    name: 'target "people"',
    url,
    startTls: false,
    ca: undefined,
    timeoutMillis: 2000,
    credentials: { dn: 'cn=admin', password: 'hunter2' },
    maxConnections: 2,
    idleMillis: 0,
    pageSize: 100,
    referrals: 'ignore',
    ...more,
  })
  onTestFinished(() => server.close())
  return server
}

const search = { base: 'dc=x', scope: 'sub', filter: { kind: 'and', filters: [] }, attributes: ['uid'] } as const

const malformed: Record<string, Buffer> = {
  'an entry whose list is shorter than its length': message(3, tlv(0x64, text(''), Buffer.from([0x30, 0x7f]))),
  'values that are shorter than their length': message(
    3,
    tlv(0x64, text(''), tlv(0x30, tlv(0x30, text('uid'), Buffer.from([0x31, 0x84, 0x7f, 0xff, 0xff, 0xff])))),
  ),
  'a list in a text': message(3, tlv(0x64, text(''), text('\x30\x7f'))),
  'a reference that is shorter than its length': message(3, Buffer.from([0x73, 0x7f])),
  'controls that are shorter than their length': message(
    3,
    tlv(done, tlv(0x0a, Buffer.from([0])), text(''), text('')),
    Buffer.from([0xa0, 0x7f]),
  ),
  'a control with more parts than it can have': message(
    3,
    tlv(done, tlv(0x0a, Buffer.from([0])), text(''), text('')),
    tlv(0xa0, tlv(0x30, text('1'), text('2'), Buffer.from([0x30, 0x7f]))),
  ),
  'a result without a code': message(3, tlv(done)),
  'a result with 100 KB of words, which would go to the log': result(3, done, 80, 'x'.repeat(100_000)),
  'three million empty values': message(
    3,
    tlv(0x64, text(''), tlv(0x30, tlv(0x30, text('uid'), tlv(0x31, Buffer.alloc(6_000_000, Buffer.from([4, 0])))))),
  ),
  'an endless length': Buffer.from([0x30, 0x80, 0, 0]),
  'a length of eight bytes': Buffer.from([0x30, 0x88, 0, 0, 0, 0, 0, 0, 0, 1, 0]),
  'a message that is not a sequence': tlv(0x31, id(3)),
  'a message without content': tlv(0x30),
}

test.each(Object.entries(malformed))('%s: the connection is closed at once', async (_what, bytes) => {
  const server = await serverThat((socket) => socket.write(bytes), 30_000)
  const since = performance.now()
  await expect(server.find(search)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  expect(performance.now() - since).toBeLessThan(15_000)
})

test('9,000 unknown references at once do not end the process, and the answer behind them counts', async () => {
  const unknown = message(9, tlv(0x73))
  const many = Buffer.concat([...Array<Buffer>(9000).fill(unknown), entry(3, 'uid=ada,dc=x'), result(3, done)])
  const server = await serverThat((socket) => socket.write(many))
  expect(await server.find(search)).toMatchObject([{ dn: 'uid=ada,dc=x' }])
})

test('an answer in pieces of a byte, and one with 20,000 values of 1 KB, are read', async () => {
  const small = Buffer.concat([entry(3, 'uid=ada,dc=x', attribute('uid', ['ada'])), result(3, done)])
  const slow = await serverThat(async (socket) => {
    for (const byte of small) await new Promise<void>((sent) => socket.write(Buffer.from([byte]), () => sent()))
  }, 30_000)
  expect(await slow.find(search)).toMatchObject([{ attributes: [['uid', [Buffer.from('ada')]]] }])
  const values = Array.from({ length: 20_000 }, (_, i) => `${i}`.padEnd(1024, 'x'))
  const large = await serverThat(
    (socket) => socket.write(Buffer.concat([entry(3, 'cn=crew,dc=x', attribute('member', values)), result(3, done)])),
    30_000,
  )
  const [found] = await large.find(search)
  expect(found?.attributes[0]?.[1].map(String)).toEqual(values)
})

test('an endless answer ends at its limit, long before the time is up', async () => {
  let sent = 0
  const endless = await serverThat((socket) => {
    const chunk = Buffer.concat(
      Array<Buffer>(64).fill(entry(3, 'uid=ada,dc=x', attribute('uid', ['x'.repeat(16_384)]))),
    )
    const more = (): void => {
      while (!socket.destroyed && socket.write(chunk)) sent += chunk.length
    }
    socket.on('drain', more)
    more()
  }, 30_000)
  const failure = endless.findMany(search, 10)
  await expect(failure).rejects.toMatchObject({
    code: 'TARGET_UNREACHABLE',
    message: 'target "people": search: the answer is too large',
  })
  expect(sent).toBeLessThan(3 * maxAnswerBytes)
  const promised = await serverThat((socket) => socket.write(Buffer.from([0x30, 0x84, 0x7f, 0xff, 0xff, 0xff])))
  await expect(promised.find(search)).rejects.toThrow('the answer is too large')
}, 30_000)

test('an answer to another request is no answer, and the connection that breaks off in one is lost', async () => {
  const other = await serverThat((socket) => socket.write(Buffer.concat([4, 0, -1].map((n) => result(n, done)))), 300)
  await expect(other.find(search)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  const half = Buffer.concat([entry(3, 'uid=ada,dc=x'), entry(3, 'uid=bob,dc=x').subarray(0, 9)])
  const broken = await serverThat((socket) => socket.end(half))
  await expect(broken.find(search)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  const kind = await serverThat((socket) => socket.write(result(3, bound)))
  await expect(kind.find(search)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
})

const page = (number: number, cookie: string): Buffer => {
  const value = tlv(0x30, tlv(0x02, Buffer.from([0])), text(cookie))
  const paged = tlv(0xa0, tlv(0x30, text('1.2.840.113556.1.4.319'), tlv(0x04, value)))
  return message(number, tlv(done, tlv(0x0a, Buffer.from([0])), text(''), text('')), paged)
}

test('an empty page with a cookie is not the last one, and pages that stay empty end', async () => {
  const patient = await serverThat((socket) => {
    socket.write(page(3, 'more'))
    socket.once('data', () => socket.write(Buffer.concat([entry(4, 'uid=ada,dc=x'), page(4, '')])))
  })
  expect(await patient.findMany(search, 10)).toMatchObject({ entries: [{ dn: 'uid=ada,dc=x' }], more: false })
  const endless = await serverThat((socket) => {
    let number = 3
    const next = () =>
      socket.write(Buffer.concat([message(number, tlv(0x73, text('ldap://x'))), page(number++, 'more')]))
    next()
    socket.on('data', next)
  })
  await expect(endless.findMany(search, 10)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
})

/** A server whose path sends `inPlain` behind the answer to StartTLS, and which accepts no password. */
async function serverBehind(answer: Buffer, inPlain: Buffer): Promise<{ server: LdapServer; heard: () => string }> {
  const sockets = new Set<Socket>()
  let heard = ''
  const listener = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.on('data', (chunk) => {
      heard += chunk.toString('latin1')
    })
    socket.once('data', () => {
      socket.write(Buffer.concat([answer, inPlain]))
      if (!answer.equals(result(2, extended))) return
      socket.removeAllListeners('data')
      const secure = new TLSSocket(socket, { isServer: true, key: testServerKey, cert: testServerCertificate })
      secure.on('error', () => {}).once('data', () => secure.write(result(3, bound, 49)))
    })
  })
  const port = await listening(listener)
  onTestFinished(() => {
    listener.close()
    for (const socket of sockets) socket.destroy()
  })
  const server = openServer(`ldap://127.0.0.1:${port}`, { startTls: true, ca: testServerCertificate })
  return { server, heard: () => heard }
}

test('what is added in plain text behind the answer to StartTLS never becomes an accepted password', async () => {
  const started = result(2, extended)
  const honest = await serverBehind(started, Buffer.alloc(0))
  expect(await honest.server.checkPassword('uid=ada,dc=x', 'wrong')).toBe(false)
  // A success whose text is the refusal that follows, encrypted.
  const refusal = result(3, bound, 49)
  const accepted = result(3, bound, 0, 'x'.repeat(refusal.length)).subarray(0, -refusal.length)
  const prefixed = await serverBehind(started, accepted)
  await expect(prefixed.server.checkPassword('uid=ada,dc=x', 'wrong')).rejects.toMatchObject({
    code: 'TARGET_UNREACHABLE',
  })
  const whole = await serverBehind(started, result(3, bound))
  expect(await whole.server.checkPassword('uid=ada,dc=x', 'wrong')).toBe(false)
})

test.each([1, 2, 10, 52])('without StartTLS, which ends with result %i, no password is sent', async (code) => {
  const { server, heard } = await serverBehind(result(2, extended, code), result(3, bound))
  await expect(server.checkPassword('uid=ada,dc=x', 'swordfish')).rejects.toMatchObject({ status: expect.any(Number) })
  await expect(server.find(search)).rejects.toMatchObject({ status: expect.any(Number) })
  expect(heard()).not.toMatch(/swordfish|hunter2/)
})

test('attributes with the names of fields change no field', async () => {
  const names = ['__proto__', 'constructor', 'toString', 'length']
  const attributes = names.map((name) => attribute(name, ['x', 'y']))
  const odd = await serverThat((socket) =>
    socket.write(Buffer.concat([entry(3, 'uid=ada,dc=x', ...attributes, attribute('uid', ['ada'])), result(3, done)])),
  )
  const [found] = await odd.find(search)
  expect([found?.dn, found?.attributes.map(([name]) => name)]).toEqual([
    'uid=ada,dc=x',
    expect.arrayContaining(['constructor', 'uid']),
  ])
  const renamed = await serverThat((socket) =>
    socket.write(Buffer.concat([entry(3, 'uid=ada,dc=x', attribute('dn', ['uid=eve,dc=x'])), result(3, done)])),
  )
  await expect(renamed.find(search)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
})
