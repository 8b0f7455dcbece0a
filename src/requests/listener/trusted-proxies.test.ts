import { expect, test } from 'vitest'
import type { Logger } from '#kernel/logger.ts'
import { silentLogger } from '#kernel/logger.ts'
import { clientAddressText, reportIgnoredHeaders, TrustedProxies } from './trusted-proxies.ts'

test('only named proxies are trusted', () => {
  expect(new TrustedProxies([]).trusts('127.0.0.1')).toBe(false)
})

test('accepts addresses and ranges of both families, also IPv4 written as IPv6', () => {
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

test('headers that are ignored are counted each time and logged at intervals', () => {
  let [now, counted] = [Date.UTC(2030, 0, 1), 0]
  const lines: unknown[] = []
  const log: Logger = { ...silentLogger, warn: (_message, fields) => void lines.push(fields) }
  const ignored = reportIgnoredHeaders({ count: () => counted++, log, clock: () => new Date(now) })
  for (let i = 0; i < 100; i++) ignored('10.0.0.1')
  expect([counted, lines]).toEqual([100, [{ peer: '10.0.0.1', requests: 1 }]])
  now += 10 * 60_000
  ignored('10.0.0.2')
  expect(lines[1]).toEqual({ peer: '10.0.0.2', requests: 100 })
})

test('the start says how clients’ addresses are determined', () => {
  expect(clientAddressText([])).toContain('those of the connections')
  expect(clientAddressText(['10.0.0.0/8', '::1'])).toContain('X-Forwarded-For header of 10.0.0.0/8, ::1')
})
