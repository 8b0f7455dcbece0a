import { createDecipheriv, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { lastMileToken, readLastMileKey } from './last-mile-token.ts'

test.each([16, 32])('a token is encrypted with a key of %i bytes, and bound to a path and a time', (length) => {
  const key = randomBytes(length)
  const options = { path: '/call%20workflow', attribute: 'uid', user: 'system', skewMillis: 60_000 }
  const token = lastMileToken(key, { ...options, now: new Date('2026-01-02T03:04:05Z') })
  const outer = JSON.parse(Buffer.from(token, 'base64').toString()) as { iv: string; encryptedRequest: string }
  const decipher = createDecipheriv(`aes-${length * 8}-cbc`, key, Buffer.from(outer.iv, 'base64'))
  const text = decipher.update(outer.encryptedRequest, 'base64', 'utf8') + decipher.final('utf8')
  expect(JSON.parse(text)).toEqual({
    id: expect.stringMatching(/^\d+$/),
    notBefore: '2026-01-02T03:03:05.000Z',
    notAfter: '2026-01-02T03:05:05.000Z',
    uri: '/call workflow',
    loginLevel: 0,
    authChain: 'oauth2',
    attrs: [{ name: 'uid', values: ['system'] }],
  })
})

test('a path that cannot be decoded is used as it is', () => {
  const options = { path: '/100%/%zz', attribute: 'uid', user: 'system', skewMillis: 60_000, now: new Date() }
  const key = randomBytes(16)
  const { iv, encryptedRequest } = JSON.parse(Buffer.from(lastMileToken(key, options), 'base64').toString())
  const decipher = createDecipheriv('aes-128-cbc', key, Buffer.from(iv, 'base64'))
  expect(decipher.update(encryptedRequest, 'base64', 'utf8') + decipher.final('utf8')).toContain('"uri":"/100%/%zz"')
})

test('anything but an AES key in base64 is rejected', () => {
  expect(readLastMileKey(randomBytes(24).toString('base64'))).toHaveLength(24)
  for (const text of ['', 'short', 'not base64 at all!', randomBytes(20).toString('base64')]) {
    expect(() => readLastMileKey(text), text).toThrow('AES key')
  }
})
