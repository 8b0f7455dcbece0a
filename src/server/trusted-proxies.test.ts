import { expect, test } from 'vitest'
import { TrustedProxies } from '#server/trusted-proxies.ts'

test('nobody is trusted unless named', () => {
  expect(new TrustedProxies([]).trusts('127.0.0.1')).toBe(false)
})

test('addresses and ranges of both families, also as IPv6 writes IPv4', () => {
  const proxies = new TrustedProxies(['10.0.0.0/8', '192.0.2.7', '2001:db8::/32', '::1'])
  const trusted = ['10.255.0.1', '::ffff:10.0.0.1', '192.0.2.7', '2001:db8:1::2', '::1']
  const others = ['11.0.0.1', '192.0.2.8', '2001:db9::1', '::2', '', 'banana', '::ffff:banana']
  expect(trusted.filter((address) => !proxies.trusts(address))).toEqual([])
  expect(others.filter((address) => proxies.trusts(address))).toEqual([])
})

test.each([
  'banana',
  '',
  '/8',
  '10.0.0.0/',
  '10.0.0.0/ ',
  '10.0.0.0/33',
  '10.0.0.0/-1',
  '10.0.0.0/8/8',
  '::1/129',
  '10.0.0.0/1e1',
])('not a range: %j', (range) => {
  expect(() => new TrustedProxies([range])).toThrow(`not an address or CIDR range: ${range}`)
})
