import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { auditJsonLines } from '#audit/audit-sinks.ts'
import { auditSinks } from '#catalog/catalog.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { AuditSink, SinkRecord } from '#sdk/audit/audit-sink.ts'
import { ownFile } from '#sdk/host/own-file.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { testServerCertificate, unrelatedCertificate } from '#testing/gateway/test-certificates.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { batchServer, syslogServer } from '#testing/servers/audit-receiver.ts'

const folder = (): { path: string; ca: string; other: string } => {
  const path = temporaryFolder()
  writeFileSync(join(path, 'ca.pem'), testServerCertificate)
  writeFileSync(join(path, 'other.pem'), unrelatedCertificate)
  return { path, ca: 'ca.pem', other: 'other.pem' }
}

const parse = (className: string, params: ParamValues, at: string) => {
  const issues = noIssues()
  const module = auditSinks.find(className)
  if (module === undefined) throw new Error(`no ${className}`)
  const readFile = (file: string) => readFileSync(file, 'utf8')
  const own = { ownFile: (file: string) => ownFile(file, { dataFolder: at }) }
  const prepared = module.prepare(fakeParams(params), issues, { ...fakeParseContext(at), readFile, ...own })
  return { prepared, issues: issueTexts(issues.list) }
}

async function sinkOf(className: string, params: ParamValues, at: string): Promise<AuditSink> {
  const { prepared, issues } = parse(className, params, at)
  expect(issues.filter((text) => text.startsWith('error'))).toEqual([])
  const sink = await prepared.create({ name: 'siem', dataFolder: at })
  onTestFinished(async () => sink.close?.())
  return sink
}

const record = (number: number, ...lines: string[]): SinkRecord => ({
  link: { chain: 0, number, hash: `h${number}` },
  lines: lines.length === 0 ? [JSON.stringify({ number, name: 'é' })] : lines,
  time: new Date('2030-01-02T03:04:05.678Z'),
})

const inTime = (): AbortSignal => AbortSignal.timeout(20_000)

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

test('a file gets whole lines and is rotated by size, up to the number of files to keep', async () => {
  const { path } = folder()
  const sink = await sinkOf('auditSinks.File', { file: 'out/audit.jsonl', maxMegabytes: '1', maxFiles: '3' }, path)
  const file = join(path, 'out/audit.jsonl')
  expect(await sink.send([record(1), record(2, line('a'), line('b'))], inTime())).toEqual({ kind: 'accepted' })
  expect(readFileSync(file, 'utf8')).toBe(`{"number":1,"name":"é"}\n${line('a')}\n${line('b')}\n`)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  writeFileSync(file, `${line('a')}\n`)
  for (const letter of ['c', 'd', 'e', 'f']) await sink.send([record(3, line(letter, 600_000))], inTime())
  const firstOf = (name: string) => readFileSync(name, 'utf8')[10]
  expect([firstOf(file), firstOf(`${file}.1`), firstOf(`${file}.2`)]).toEqual(['f', 'e', 'd'])
  expect(existsSync(`${file}.3`)).toBe(false)
})

/** A line of an audit sink, with a text at its start. */
const line = (letter: string, length = 1): string =>
  JSON.stringify({ text: letter.repeat(length), record: { chain: 0, number: 1, hash: 'h' } })

test('the sink cuts a partial line that a crash left, and starts a new file when another program moved the old one', async () => {
  const { path } = folder()
  const file = join(path, 'audit.jsonl')
  writeFileSync(file, `${line('whole')}\n{"par`)
  const sink = await sinkOf('auditSinks.File', { file }, path)
  await sink.send([record(1, line('next'))], inTime())
  expect(readFileSync(file, 'utf8')).toBe(`${line('whole')}\n${line('next')}\n`)
  renameSync(file, `${file}.moved`)
  await sink.send([record(2, line('more'))], inTime())
  expect(readFileSync(file, 'utf8')).toBe(`${line('more')}\n`)
  const blocked = await sinkOf('auditSinks.File', { file: join(file, 'below') }, path)
  expect(await blocked.send([record(3)], inTime())).toMatchObject({ kind: 'failed' })
})

test("the sink rejects the gateway's own files, also in another spelling or through symbolic links", async () => {
  const { path } = folder()
  mkdirSync(join(path, 'keys'))
  mkdirSync(join(path, 'audit'))
  writeFileSync(join(path, 'gatehouse.db'), 'SQLite format 3\0')
  symlinkSync(join(path, 'keys'), join(path, 'audit', 'folder'))
  symlinkSync('../gatehouse.db', join(path, 'audit', 'data.jsonl'))
  // The link exists before the file that it leads to.
  symlinkSync('../gatehouse.db-wal', join(path, 'audit', 'dangling.jsonl'))
  symlinkSync(path, `${path}-alias`)
  const refused = [
    'gatehouse.db',
    'gatehouse.db-wal',
    'gatehouse.db-shm',
    'gatehouse.db.lock',
    './audit/../gatehouse.db',
    'keys',
    'keys/audit.jsonl',
    '.',
    join(path, 'gatehouse.db'),
    `${path}-alias/gatehouse.db`,
    'audit/folder/audit.jsonl',
    'audit/data.jsonl',
    'audit/dangling.jsonl',
  ]
  for (const file of refused) {
    const { issues } = parse('auditSinks.File', { file }, path)
    expect({ file, issues }).toEqual({ file, issues: [expect.stringMatching(/^error params.file: .*gateway’s own/)] })
  }
  for (const file of ['audit/audit.jsonl', 'audit.jsonl', 'keys.jsonl', '/var/log/gatehouse.db']) {
    expect(parse('auditSinks.File', { file }, path).issues).toEqual([])
  }
})

test('the sink does not follow a link that points to the database since the check', async () => {
  const { path } = folder()
  const database = join(path, 'gatehouse.db')
  const sink = await sinkOf('auditSinks.File', { file: 'audit/audit.jsonl' }, path)
  mkdirSync(join(path, 'audit'))
  writeFileSync(database, '')
  symlinkSync(database, join(path, 'audit', 'audit.jsonl'))
  expect(await sink.send([record(1, line('a'))], inTime())).toEqual({
    kind: 'failed',
    reason: expect.stringContaining('gateway’s own'),
  })
  expect(readFileSync(database, 'utf8')).toBe('')
})

test.each(['', '.1', '.2'])(
  'a file "audit.jsonl%s" of another program is neither changed nor replaced',
  async (suffix) => {
    const { path } = folder()
    const file = join(path, 'audit.jsonl')
    const foreign = `{"level":"info"}\nno newline at the end`
    writeFileSync(`${file}${suffix}`, foreign)
    const sink = await sinkOf('auditSinks.File', { file, maxMegabytes: '1', maxFiles: '3' }, path)
    const outcomes: string[] = []
    for (const letter of ['a', 'b', 'c', 'd']) {
      outcomes.push((await sink.send([record(1, line(letter, 600_000))], inTime())).kind)
    }
    expect(outcomes.at(-1)).toBe('failed')
    expect(await sink.send([record(1, line('e', 600_000))], inTime())).toEqual({
      kind: 'failed',
      reason: expect.stringContaining(`${file}${suffix} was not written by an audit sink`),
    })
    expect(readFileSync(`${file}${suffix}`, 'utf8')).toBe(foreign)
  },
)

test('a folder in the place of a rotated file stops the rotation before any file is moved', async () => {
  const { path } = folder()
  const file = join(path, 'audit.jsonl')
  mkdirSync(`${file}.1`)
  const sink = await sinkOf('auditSinks.File', { file, maxMegabytes: '1', maxFiles: '3' }, path)
  await sink.send([record(1, line('a', 600_000))], inTime())
  expect(await sink.send([record(1, line('b', 600_000))], inTime())).toMatchObject({ kind: 'failed' })
  expect(readFileSync(file, 'utf8')).toBe(`${line('a', 600_000)}\n`)
})

test('syslog gets framed messages, over TCP and over TLS that is verified', async () => {
  const { path, ca, other } = folder()
  for (const security of ['none', 'tls'] as const) {
    const got: string[] = []
    const port = String(await listen(syslogServer(security, (text) => got.push(text))))
    const trust: ParamValues = security === 'tls' ? { caFile: ca } : {}
    const sink = await sinkOf('auditSinks.Syslog', { host: '127.0.0.1', port, security, ...trust }, path)
    for (let i = 1; i <= 3; i++)
      expect(await sink.send([record(i), record(i + 10)], inTime())).toEqual({ kind: 'accepted' })
    expect(got.map((text) => JSON.parse(text).number)).toEqual([1, 11, 2, 12, 3, 13])
    expect(sink.hasLost?.()).toBe(false)
    if (security === 'none') continue
    const wrong = await sinkOf('auditSinks.Syslog', { host: '127.0.0.1', port, caFile: other }, path)
    expect(await wrong.send([record(4)], inTime())).toMatchObject({ kind: 'failed' })
    const named = await sinkOf(
      'auditSinks.Syslog',
      { host: '127.0.0.1', port, caFile: ca, serverName: 'logs.example' },
      path,
    )
    expect(await named.send([record(5)], inTime())).toMatchObject({ kind: 'failed' })
    expect(got).toHaveLength(6)
  }
})

test('a message has the form of RFC 5424', async () => {
  let bytes = ''
  const server = createServer((socket) => void socket.setEncoding('utf8').on('data', (text) => (bytes += text)))
  const port = String(await listen(server))
  const sink = await sinkOf(
    'auditSinks.Syslog',
    { host: '127.0.0.1', port, security: 'none', appName: 'gate' },
    temporaryFolder(),
  )
  await sink.send([record(1, '{"a":"é"}'), record(2, '{"action":"refuse"}')], inTime())
  const [, size, rest] = /^(\d+) (.*)$/s.exec(bytes) ?? []
  const first = Buffer.from(rest ?? '')
    .subarray(0, Number(size))
    .toString()
  expect(first).toMatch(/^<109>1 2030-01-02T03:04:05\.678Z [\x21-\x7e]+ gate \d+ audit - \ufeff\{"a":"é"\}$/)
  expect(bytes).toMatch(/\d+ <108>1 .*"refuse"\}$/)
})

test('the sink notices a syslog receiver that dies before it has read everything, or soon after', async () => {
  const sockets = new Set<Socket>()
  let mode: 'reset' | 'read' = 'reset'
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    if (mode === 'reset') socket.once('data', () => socket.resetAndDestroy())
    else socket.resume()
  })
  const port = String(await listen(server))
  const sink = await sinkOf('auditSinks.Syslog', { host: '127.0.0.1', port, security: 'none' }, temporaryFolder())
  expect(await sink.send([record(1, 'x'.repeat(2_000_000))], inTime())).toMatchObject({ kind: 'failed' })
  mode = 'read'
  expect(await sink.send([record(1)], inTime())).toEqual({ kind: 'accepted' })
  expect(sink.hasLost?.()).toBe(false)
  for (const socket of sockets) socket.destroy()
  await vi.waitFor(() => expect(sink.hasLost?.()).toBe(true), 10_000)
  expect(sink.hasLost?.()).toBe(false)
})

test('https posts batches with a token and one idempotency key per batch; other answers are failures', async () => {
  const { path, ca, other } = folder()
  const got: string[] = []
  const server = batchServer((text) => got.push(text))
  const seen: unknown[] = []
  server.on('request', ({ headers }) => seen.push([headers['idempotency-key'], headers['content-type']]))
  const url = `https://127.0.0.1:${await listen(server)}/audit`
  const sink = await sinkOf('auditSinks.Https', { url, caFile: ca, token: 'receiver-token' }, path)
  expect(await sink.send([record(1), record(2)], inTime())).toEqual({ kind: 'accepted' })
  await sink.send([record(1), record(2)], inTime())
  await sink.send([record(3)], inTime())
  expect(got.map((text) => JSON.parse(text).number)).toEqual([1, 2, 1, 2, 3])
  expect(seen[0]).toEqual([expect.stringMatching(/^[\w-]{43}$/), 'application/x-ndjson'])
  expect(seen[1]).toEqual(seen[0])
  expect(seen[2]).not.toEqual(seen[0])
  const stranger = await sinkOf('auditSinks.Https', { url, caFile: ca, token: 'wrong' }, path)
  expect(await stranger.send([record(4)], inTime())).toEqual({ kind: 'failed', reason: 'the receiver answered 401' })
  const wrong = await sinkOf('auditSinks.Https', { url, caFile: other, token: 'receiver-token' }, path)
  expect(await wrong.send([record(4)], inTime())).toMatchObject({ kind: 'failed' })
  expect(got).toHaveLength(5)
})

test.each([
  ['with an endless answer', 'HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n', 'accepted'],
  ['with a long answer', `HTTP/1.1 200 OK\r\n\r\n${'a'.repeat(100_000)}`, 'accepted'],
  ['with hints only', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'failed'],
  ['that switches protocols', 'HTTP/1.1 101 OK\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n', 'failed'],
  ['that redirects', 'HTTP/1.1 307 Elsewhere\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n', 'failed'],
  ['with an endless header', `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(100_000)}`, 'failed'],
  ['that speaks something else', '220 mail ready\r\n', 'failed'],
])('https ends each call to a receiver %s, once', async (_what, answer, kind) => {
  let calls = 0
  const server = createServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', () => {
        calls++
        socket.write(answer)
      })
    onTestFinished(() => void socket.destroy())
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  const sink = await sinkOf('auditSinks.Https', { url }, temporaryFolder())
  expect(await sink.send([record(1)], AbortSignal.timeout(500))).toMatchObject({ kind })
  expect(calls).toBe(1)
})

test('control characters of an entry stay in its line and its message', async () => {
  const { path } = folder()
  const value = '\u0000\r\n<13>1 - - - - - - forged\n{"id":"forged"}\u2028\ud800'
  const messages: string[] = []
  const port = String(await listen(syslogServer('none', (text) => messages.push(text))))
  const syslog = await sinkOf('auditSinks.Syslog', { host: '127.0.0.1', port, security: 'none' }, path)
  const file = await sinkOf('auditSinks.File', { file: 'audit.jsonl' }, path)
  const [row, link] = [{ id: 'r', value }, record(1).link]
  const lines = auditJsonLines({ link, rows: [row as unknown as AuditEntry] })
  for (const sink of [syslog, file]) {
    expect(await sink.send([record(1, ...lines), record(2)], inTime())).toEqual({ kind: 'accepted' })
  }
  const written = readFileSync(join(path, 'audit.jsonl'), 'utf8').split('\n').slice(0, -1)
  for (const got of [messages, written]) {
    expect(got).toHaveLength(2)
    expect(JSON.parse(got[0] ?? '')).toMatchObject({ value })
  }
})

const fileSink = (file: string, at: string): Promise<AuditSink> => sinkOf('auditSinks.File', { file }, at)

test('a look at the place shows what sending would, and creates nothing', async () => {
  const { path } = folder()
  writeFileSync(join(path, 'taken'), 'not an audit\n')
  mkdirSync(join(path, 'folder'))
  const problems = Array.from(['new/audit.jsonl', 'taken', 'folder', 'taken/audit.jsonl'], async (file) => {
    const sink = await fileSink(file, path)
    const [seen, sent] = [await sink.problem?.(), await sink.send([record(1, line('a'))], inTime())]
    return [file, seen === undefined, sent.kind]
  })
  expect(await Promise.all(problems)).toEqual([
    ['new/audit.jsonl', true, 'accepted'],
    ['taken', false, 'failed'],
    ['folder', false, 'failed'],
    ['taken/audit.jsonl', false, 'failed'],
  ])
  const sink = await fileSink('other/audit.jsonl', path)
  expect([await sink.problem?.(), existsSync(join(path, 'other'))]).toEqual([undefined, false])
  // A file that we wrote stays writable.
  expect(await (await fileSink('new/audit.jsonl', path)).problem?.()).toBe(undefined)
})

test('a pipe in the place of the file is refused, and blocks nothing', async () => {
  const { path } = folder()
  execFileSync('mkfifo', [join(path, 'audit.jsonl')])
  const sink = await sinkOf('auditSinks.File', { file: 'audit.jsonl' }, path)
  expect(await sink.problem?.()).toContain('was not written by an audit sink')
  expect(await sink.send([record(1, line('a', 600_000))], inTime())).toEqual({
    kind: 'failed',
    reason: expect.stringContaining('was not written by an audit sink'),
  })
})

test.each([
  ['auditSinks.Https', { url: 'http://logs.example.com' }, /"url": .*https/],
  ['auditSinks.Https', { url: 'https://a:b@logs.example.com' }, /password/],
  ['auditSinks.Https', { url: 'https://a', headerName: 'X-Key' }, /go together/],
  ['auditSinks.Https', { url: 'https://a', caFile: 'none.pem' }, /caFile/],
  ['auditSinks.Syslog', { host: 'a', security: 'none' }, /^warning.*without TLS/],
  ['auditSinks.Syslog', { host: 'a', facility: '24' }, /facility/],
  ['auditSinks.File', {}, /file/],
] as const)('%s %j is reported', (className, params, expected) => {
  expect(parse(className, params, temporaryFolder()).issues).toContainEqual(expect.stringMatching(expected))
})
