import { expect, test } from 'vitest'
import { securityHeaders } from '#server/security-headers.ts'

test('every answer is closed to other sites, and over TLS browsers keep to it', () => {
  const plain = securityHeaders('http://portal.test')
  const secure = securityHeaders('https://portal.test')
  expect(secure).toEqual({ ...plain, 'strict-transport-security': 'max-age=31536000' })
  expect(plain['content-security-policy']).toContain("default-src 'none'")
  expect(plain['content-security-policy']).toContain("frame-ancestors 'none'")
  expect(plain['content-security-policy']).not.toMatch(/unsafe|\*/)
  expect(plain).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'same-origin' })
  expect(securityHeaders(undefined)).toBe(plain)
})
