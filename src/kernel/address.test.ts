import { describe, expect, test } from 'vitest'
import { isLoopbackHost, networkOf, parseIssuerUrl } from '#kernel/address.ts'

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
])('"%s" is not this machine', (host) => expect(isLoopbackHost(host)).toBe(false))

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:DB8:1:2::9', '2001:db8:1:2'],
  ['2001:0db8:0001:0002::', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['unknown', 'unknown'],
])('%s counts as %s', (address, key) => {
  expect(networkOf(address)).toBe(key)
})

describe('parseIssuerUrl', () => {
  test.each([
    'https://issuer.example.com',
    'https://issuer.example.com:8443/realms/a/',
    'http://127.0.0.1:8080/dev-issuer',
    'http://127.9.9.9',
    'http://[::1]:8080',
    'http://localhost:8080',
  ])('accepts %s', (text) => {
    expect(parseIssuerUrl(text).href).toContain('://')
  })

  test.each([
    ['http://issuer.example.com', /this machine only/],
    ['http://127.0.0.1.example.com', /this machine only/],
    ['http://127.example.com', /this machine only/],
    ['http://localhost.example.com', /this machine only/],
    ['http://10.0.0.1', /this machine only/],
    ['ftp://127.0.0.1', /https/],
    ['issuer', /absolute URL/],
    ['https://user:pw@issuer.example.com', /password/],
    ['https://issuer.example.com/?a=b', /query/],
    ['https://issuer.example.com/?', /query/],
    ['https://issuer.example.com/#a', /fragment/],
  ])('rejects %s', (text, reason) => {
    expect(() => parseIssuerUrl(text)).toThrow(reason)
  })
})
