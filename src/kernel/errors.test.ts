import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'

test('a request to what is set aside or not supported is refused; a fault of the gateway is not', () => {
  const refused = (['NOT_FOUND', 'NOT_SUPPORTED', 'NOT_AVAILABLE', 'INTERNAL', 'TARGET_UNREACHABLE'] as const).filter(
    (code) => new GatewayError(code, 'detail').isRefusal,
  )
  expect(refused).toEqual(['NOT_FOUND', 'NOT_SUPPORTED', 'NOT_AVAILABLE'])
})
