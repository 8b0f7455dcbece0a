import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { createLogger } from '#server/log.ts'

test('an error has its stack, unless it is a refusal of what a client sent', () => {
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

test('an error keeps message, code and cause under any name, and wherever it is', () => {
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

test('secrets inside of an error are redacted like any other', () => {
  const lines: string[] = []
  const log = createLogger('info', { write: (line) => void lines.push(line) })
  log.warn('failed', { error: new Error('x', { cause: { password: 'hunter2', at: 'db' } }) })
  expect(lines[0]).not.toContain('hunter2')
  expect(lines[0]).toContain('"at":"db"')
})
