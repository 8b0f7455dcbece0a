import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { cpuSecondsOf, parseCpuSeconds, parseMegabytes, parseWrittenBytes } from './process-figures.ts'

test('CPU seconds are those of user and system, whatever the program is called', () => {
  const stat = '42 (a) b (c)) S 1 42 42 0 -1 4194304 100 200 0 0 123 77 9 9 20 0 11 0 500 1000 2000'
  expect(parseCpuSeconds(stat)).toBe(2)
})

test('the CPU time of this process is the one that Node.js reports', () => {
  const { user, system } = process.cpuUsage()
  expect(Math.abs(cpuSecondsOf(process.pid) - (user + system) / 1_000_000)).toBeLessThan(1)
})

test('memory is the line of that name only', () => {
  const status = 'Name:\tnode\nVmRSS:\t  204800 kB\nRssAnon:\t  102400 kB\n'
  expect(parseMegabytes(status, 'VmRSS')).toBe(200)
  expect(parseMegabytes(status, 'RssAnon')).toBe(100)
  expect(parseMegabytes(status, 'RssFile')).toBe(0)
  expect(parseMegabytes(readFileSync('/proc/self/status', 'utf8'), 'VmRSS')).toBeGreaterThan(10)
})

test('written bytes do not include cancelled ones', () => {
  expect(parseWrittenBytes('wchar: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 512\n')).toBe(4096)
})
