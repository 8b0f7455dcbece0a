import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { jsonErrors } from './error-format.ts'

test('a failure has its text, the errors by part of the body, and the request', () => {
  const problems = [{ pointer: '/user', detail: 'is required' }]
  const error = new GatewayError('BAD_REQUEST', 'for the log', { publicText: 'The request body is invalid.', problems })
  expect(JSON.parse(String(jsonErrors(error, 'r-1').body))).toEqual({
    errors: ['The request body is invalid.', '/user is required'],
    code: 'BAD_REQUEST',
    requestId: 'r-1',
  })
})
