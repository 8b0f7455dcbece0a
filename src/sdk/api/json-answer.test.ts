import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { problemErrors } from './json-answer.ts'

const id = '0190a0b0-0000-7000-8000-000000000000'
const shown = (error: GatewayError) => {
  const { headers, body } = problemErrors(error, id)
  return { type: headers['content-type'], body: JSON.parse(String(body)) }
}

test('RFC 9457: a problem has its type, title, status and instance', () => {
  expect(shown(new GatewayError('ACCESS_DENIED', 'for the log only'))).toEqual({
    type: 'application/problem+json',
    body: {
      type: 'urn:gatehouse:error:access-denied',
      title: 'You are not allowed to use this resource.',
      status: 403,
      instance: `urn:uuid:${id}`,
    },
  })
})

test('its own text is the detail, and the message is for the log only', () => {
  const { body } = shown(new GatewayError('CONFLICT', 'secret detail', { publicText: 'Taken.', cause: new Error('x') }))
  expect(body).toMatchObject({ detail: 'Taken.', status: 409 })
  expect(JSON.stringify(body)).not.toContain('secret')
})

test('RFC 9457 3.2: errors point into the body, with characters that a URI fragment allows', () => {
  const problems = [{ pointer: '/user/attributes/0/näme', detail: 'must be text' }]
  const { body } = shown(new GatewayError('UNPROCESSABLE', '', { problems }))
  expect(body.errors).toEqual([{ pointer: '#/user/attributes/0/n%C3%A4me', detail: 'must be text' }])
})
