import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'

test('a request to what is set aside or not supported is refused; a fault of the gateway is not', () => {
  const refused = (['NOT_FOUND', 'NOT_SUPPORTED', 'NOT_AVAILABLE', 'INTERNAL', 'TARGET_UNREACHABLE'] as const).filter(
    (code) => new GatewayError(code, 'detail').isRefusal,
  )
  expect(refused).toEqual(['NOT_FOUND', 'NOT_SUPPORTED', 'NOT_AVAILABLE'])
})

test('a refused value is reported under the name that a layer has for its attribute', () => {
  const text = (shown = '"mail"'): string => `The value of ${shown} cannot be stored.`
  const error = new GatewayError('BAD_REQUEST', 'detail', { attribute: 'mail', publicText: text })
  expect([error.attribute, error.publicText]).toEqual(['mail', 'The value of "mail" cannot be stored.'])
  expect(error.textNaming('emails')).toBe('The value of emails cannot be stored.')
  const repeated = new GatewayError(error.code, 'again', { attribute: error.attribute, publicText: error.ownText })
  expect(repeated.textNaming('emails')).toBe('The value of emails cannot be stored.')
})

test('an error without a text of its own says so, and has the text of its code', () => {
  const error = new GatewayError('TARGET_FAILED', 'detail')
  expect([error.ownText, error.textNaming('emails')]).toEqual([undefined, 'A downstream system refused the change.'])
})
