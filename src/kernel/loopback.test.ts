import { expect, test } from 'vitest'
import { isLoopbackHost } from '#kernel/loopback.ts'

test.each(['127.0.0.1', '127.8.8.8', '::1', '[::1]', '::ffff:127.0.0.1', 'localhost', 'LOCALHOST', 'portal.localhost'])(
  '%s is this machine',
  (host) => expect(isLoopbackHost(host)).toBe(true),
)

test.each([
  '',
  '0.0.0.0',
  '::',
  '[::]',
  '10.0.0.1',
  '::ffff:10.0.0.1',
  '127.0.0.1.example.com',
  'localhost.example.com',
  '*',
])('"%s" is not', (host) => expect(isLoopbackHost(host)).toBe(false))
