import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { retryWhileChanged } from './retry-changed.ts'

const call = (headers: { ifMatch?: string; ifNoneMatch?: string } = {}) => ({
  ifMatch: headers.ifMatch,
  ifNoneMatch: headers.ifNoneMatch,
})

/** Fails so many times, then gives how often it ran. */
function work(failures: number, code: 'VERSION_MISMATCH' | 'TARGET_FAILED' = 'VERSION_MISMATCH') {
  let runs = 0
  return async (): Promise<number> => {
    if (++runs <= failures) throw new GatewayError(code, `run ${runs}`)
    return runs
  }
}

test.each([{}, { ifMatch: ' * ' }])('does it again on what is there by then (%j)', async (headers) => {
  expect(await retryWhileChanged(call(headers), work(4))).toBe(5)
})

test('gives up after a while, and says when to try again', async () => {
  const given = await retryWhileChanged(call(), work(5)).catch((error: unknown) => error)
  expect(given).toMatchObject({ status: 503, retryAfter: 1, cause: { code: 'VERSION_MISMATCH' } })
})

test.each([{ ifMatch: 'W/"1"' }, { ifNoneMatch: '*' }])(
  'not where the client names a version (%j)',
  async (headers) => {
    await expect(retryWhileChanged(call(headers), work(1))).rejects.toMatchObject({ status: 412 })
  },
)

test('nor for any other failure', async () => {
  await expect(retryWhileChanged(call(), work(1, 'TARGET_FAILED'))).rejects.toMatchObject({ code: 'TARGET_FAILED' })
})
