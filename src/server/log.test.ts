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
