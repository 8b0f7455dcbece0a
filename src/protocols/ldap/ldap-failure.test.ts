import {
  AlreadyExistsError,
  BusyError,
  ConstraintViolationError,
  InsufficientAccessError,
  InvalidSyntaxError,
  ObjectClassViolationError,
  UnknownStatusCodeError,
} from 'ldapts'
import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { asLdapFailure, resultCodeOf } from '#protocols/ldap/ldap-failure.ts'

const failure = (error: unknown) => asLdapFailure(error, 'target "people"', 'add')

test.each([
  [new AlreadyExistsError(), 'CONFLICT'],
  [new ConstraintViolationError('some attributes not unique'), 'CONFLICT'],
  [new ConstraintViolationError('Password fails quality checking policy'), 'BAD_REQUEST'],
  [new InvalidSyntaxError('mail: value #0 invalid per syntax'), 'BAD_REQUEST'],
  [new InsufficientAccessError(), 'TARGET_FAILED'],
  [new BusyError(), 'TARGET_UNREACHABLE'],
  [new UnknownStatusCodeError(10, ''), 'TARGET_FAILED'],
  [new UnknownStatusCodeError(80, ''), 'TARGET_FAILED'],
  [new UnknownStatusCodeError(122, ''), 'VERSION_MISMATCH'],
  [new Error('Connection closed'), 'TARGET_UNREACHABLE'],
])('%s is %s', (error, code) => {
  const found = failure(error)
  expect(found).toMatchObject({ code, cause: error, message: expect.stringContaining('target "people": add') })
})

test('a result has its name, if it is a known one', () => {
  expect(failure(new InsufficientAccessError()).message).toMatch(/: add: result 50 \(insufficientAccessRights\): /)
  expect(failure(new UnknownStatusCodeError(4711, 'odd')).message).toMatch(/: add: result 4711: /)
})

test('only the attribute of the server’s message is shown, and nothing else of it', () => {
  const reported = (error: Error) => failure(error).publicText
  expect(reported(new InvalidSyntaxError('mail: value #0 invalid per syntax'))).toBe(
    'The value of "mail" cannot be stored.',
  )
  expect(reported(new ObjectClassViolationError("attribute 'sn' not allowed"))).toBe(
    'The value of "sn" cannot be stored.',
  )
  expect(reported(new InvalidSyntaxError('C:\\secret\\path'))).toBe('The request is malformed.')
})

test('the server’s message is one short line', () => {
  const words = `no\u001b[31m\r\n \u0007\u202e${'x'.repeat(5000)}`
  const { message } = failure(new UnknownStatusCodeError(80, words))
  expect(message).toMatch(/^target "people": add: result 80 \(other\): .{200,300}$/)
  expect(message).not.toMatch(/[\p{Cc}\u202e]/u)
})

test('a GatewayError stays unchanged, and its result is still available', () => {
  const once = failure(new AlreadyExistsError())
  expect(failure(once)).toBe(once)
  expect(resultCodeOf(once)).toBe(68)
  expect(resultCodeOf(new GatewayError('INTERNAL', 'x'))).toBeUndefined()
})
