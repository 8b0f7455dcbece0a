import { expect, test } from 'vitest'
import { createAccessLog, createLogger } from './log.ts'
import { hasColors, logText } from './text.ts'

function logged(colored = false) {
  const lines: string[] = []
  const write = (line: string): void => void lines.push(logText(line, colored))
  return { lines, log: createLogger('debug', { write }), access: createAccessLog('debug', write) }
}

const entry = {
  requestId: 'r1',
  method: 'GET',
  host: 'a.test',
  path: '/x',
  status: 200,
  ms: 1.5,
  application: 'portal',
  subject: 'ada',
  remote: '127.0.0.1',
}

test('a line has time, level, message and fields', () => {
  const { lines, log, access } = logged()
  log.warn('target is away', { target: 'crm', attempts: 3, reason: 'no "answer"', list: ['a', 1] })
  access(entry)
  expect(lines[0]).toMatch(
    /^\d\d:\d\d:\d\d WARN {2}target is away target=crm attempts=3 reason="no \\"answer\\"" list=\["a",1\]\n$/,
  )
  expect(lines[1]).toMatch(
    /^\d\d:\d\d:\d\d INFO {2}GET 200 a\.test\/x \(2 ms\) application=portal subject=ada remote=127\.0\.0\.1 requestId=r1\n$/,
  )
})

test('colors are used only if they are wanted', () => {
  const { lines, log } = logged(true)
  log.error('no')
  expect(lines[0]).toContain('\u001b[31mERROR\u001b[0m no')
  expect(hasColors({}, true)).toBe(true)
  expect(hasColors({ NO_COLOR: '' }, true)).toBe(true)
  for (const environment of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) expect(hasColors(environment, true)).toBe(false)
  expect(hasColors({}, false)).toBe(false)
})

const hostile = '\u001b[2J\r\n12:00:00 INFO  fake\u009b31m\u007f\u202e\u2028\u0000\ud800'

test.each([true, false])('callers cannot send terminal sequences or lines (colors: %s)', (colored) => {
  const { lines, log, access } = logged(colored)
  const nested = { list: [hostile], [hostile]: 1 }
  log.error(hostile, { [hostile]: hostile, nested, err: new Error(hostile, { cause: new Error(hostile) }) })
  access({ ...entry, path: hostile, host: hostile, method: hostile, subject: hostile, application: hostile })
  for (const text of lines) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: our own colors
    const bare = text.replaceAll(/\u001b\[(?:0|2|31|32)m/g, '')
    expect(bare.replaceAll(/\n(?= {4}at |$)/g, '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u)
    expect(bare).toContain('\\u001b[2J\\u000d\\u000a12:00:00 INFO  fake\\u009b31m\\u007f\\u202e\\u2028\\u0000')
  }
  expect(lines).toHaveLength(2)
  expect(lines[1]?.match(/\n/g)).toHaveLength(1)
})

test('an error has its causes in the line, and its frames below it', () => {
  const { lines, log } = logged()
  const err = new Error('no answer', { cause: new TypeError('refused') })
  log.error('call failed', { err })
  log.warn('call failed', { err })
  const [first = '', ...frames] = (lines[0] ?? '').trimEnd().split('\n')
  expect(first).toMatch(/ERROR call failed err="Error: no answer, because of TypeError: refused"$/)
  expect(frames.length).toBeGreaterThan(0)
  for (const frame of frames) expect(frame).toMatch(/^ {4}at /)
  expect(lines[1]?.trimEnd().split('\n')).toHaveLength(1)
})

test('long values are cut, and a line that is not JSON is kept', () => {
  const { lines, log } = logged()
  log.info('x'.repeat(5000), { y: 'y'.repeat(5000) })
  expect(lines[0]?.length).toBeLessThan(700)
  expect(logText('not JSON\u001b\n', true)).toBe('not JSON\\u001b\n')
})

test('a value cannot look like another field, and hidden characters are shown whole', () => {
  const { lines, log } = logged()
  log.info('login', { user: 'ada\\" status="200', tag: '\u{e0041}' })
  expect(lines[0]).toContain(String.raw`user="ada\\\" status=\"200" tag="\u{e0041}"`)
})

test('secrets are redacted as in JSON', () => {
  const { lines, log } = logged()
  log.info('login', { password: 'hunter2' })
  expect(lines[0]).not.toContain('hunter2')
})
