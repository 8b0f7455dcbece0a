import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { createAccessLog, createLogger, LineBuffer } from './log.ts'

test("an error has its stack, unless it is a refusal of a client's request", () => {
  const lines: { err: Record<string, unknown> }[] = []
  const log = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  log.info('refused', { err: new GatewayError('NOT_FOUND', 'no user', { cause: new Error('nothing there') }) })
  log.error('failed', { err: new GatewayError('INTERNAL', 'it broke', { cause: new Error('why') }) })
  log.warn('failed', { err: new TypeError('no such thing') })
  expect(lines[0]?.err).toEqual({
    type: 'GatewayError',
    message: 'no user',
    code: 'NOT_FOUND',
    status: 404,
    cause: { type: 'Error', message: 'nothing there' },
  })
  expect(lines[1]?.err).toMatchObject({ code: 'INTERNAL', stack: expect.stringContaining('    at ') })
  expect(lines[2]?.err).toMatchObject({ type: 'TypeError', stack: expect.stringContaining('    at ') })
})

test('an error keeps message, code and cause under any name, at any depth', () => {
  const lines: Record<string, unknown>[] = []
  const log = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  const refused = Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' })
  const error = new GatewayError('TARGET_UNREACHABLE', 'no answer', { cause: refused })
  const logged = {
    type: 'GatewayError',
    message: 'no answer',
    code: 'TARGET_UNREACHABLE',
    cause: { type: 'Error', message: 'connect refused', code: 'ECONNREFUSED' },
  }
  log.warn('by name', { error, reason: error, err: error, nested: { list: [error, { error }] } })
  log.with({ error }).info('of a child')
  log.info('joined', { error: new AggregateError([refused], 'all failed') })
  expect(lines[0]).toMatchObject({
    error: logged,
    reason: logged,
    err: logged,
    nested: { list: [logged, { error: logged }] },
  })
  expect(lines[0]?.['error']).toEqual(logged)
  expect(lines[0]?.['err']).toMatchObject({ stack: expect.stringContaining('    at ') })
  expect(lines[1]?.['error']).toEqual(logged)
  expect(lines[2]?.['error']).toMatchObject({ message: 'all failed', errors: [{ code: 'ECONNREFUSED' }] })
})

test('secrets inside an error are redacted like any other', () => {
  const lines: string[] = []
  const log = createLogger('info', { write: (line) => void lines.push(line) })
  log.warn('failed', { error: new Error('x', { cause: { password: 'hunter2', at: 'db' } }) })
  expect(lines[0]).not.toContain('hunter2')
  expect(lines[0]).toContain('"at":"db"')
})

const entry = {
  requestId: 'r1',
  method: 'GET',
  host: 'a.test',
  path: '/x"\n{',
  status: 200,
  ms: 1.5,
  application: 'app',
  subject: undefined,
  remote: '127.0.0.1',
}

test('the access log writes one line of JSON for a request with any characters', () => {
  const lines: string[] = []
  createAccessLog('info', (line) => lines.push(line))(entry)
  expect(lines).toHaveLength(1)
  expect(lines[0]?.split('\n')).toHaveLength(2)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info', msg: 'request', path: '/x"\n{', status: 200 })
})

test.each(['warn', 'error', 'silent'] as const)('the access log writes nothing at level %s', (level) => {
  const lines: string[] = []
  createAccessLog(level, (line) => lines.push(line))(entry)
  expect(lines).toEqual([])
})

function gathered() {
  const batches: string[] = []
  const buffer = new LineBuffer({ write: (text) => batches.push(text) })
  return { batches, buffer }
}

test('a line buffer writes its lines once, in order, when it is flushed', () => {
  const { batches, buffer } = gathered()
  for (const line of ['a\n', 'b\n', 'c\n']) buffer.write(line)
  expect(batches).toEqual([])
  buffer.flush()
  buffer.flush()
  expect(batches).toEqual(['a\nb\nc\n'])
})

test('a line buffer never has more than a batch', () => {
  const { batches, buffer } = gathered()
  const line = `${'x'.repeat(999)}\n`
  for (let i = 0; i < 100; i++) buffer.write(line)
  expect(batches.map((batch) => batch.length)).toEqual(Array(6).fill(16_000))
  buffer.flush()
  expect(batches.join('')).toBe(line.repeat(100))
})
