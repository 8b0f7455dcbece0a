import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import type { HttpCall, HttpSend } from '#protocols/http/http-client.ts'
import { type PasswordSettings, passwordRules } from './password-rules.ts'

const settings: PasswordSettings = { minChars: 8, maxChars: 64, breachListURL: undefined, acceptUnchecked: false }
const sha1 = (text: string) => createHash('sha1').update(text).digest('hex').toUpperCase()

function open(more: Partial<PasswordSettings>, answer: string | Error = '', status = 200) {
  const calls: HttpCall[] = []
  const send: HttpSend = async (call) => {
    calls.push(call)
    if (answer instanceof Error) throw answer
    return { status, headers: {}, body: answer }
  }
  const check = passwordRules({ ...settings, ...more }, send, silentLogger)
  return {
    calls,
    check: (password: string, ...values: string[]) => check({ password, repeated: password, values }, true),
    checkUnknown: (password: string) => check({ password, repeated: password, values: [] }, false),
  }
}

test('only the beginning of a hash is sent', async () => {
  const { calls, check } = open({ breachListURL: 'http://list.example/range/' }, `${'0'.repeat(35)}:3\r\n`)
  expect(await check('correct horse')).toEqual([])
  expect(calls.map(({ url }) => url.href)).toEqual([`http://list.example/range/${sha1('correct horse').slice(0, 5)}`])
})

test('a known password is rejected; padding is not', async () => {
  const suffix = sha1('correct horse').slice(5)
  const known = open({ breachListURL: 'http://list.example' }, `${'0'.repeat(35)}:1\r\n${suffix}:12\r\n`)
  expect(await known.check('correct horse')).toEqual([{ kind: 'breached' }])
  expect(await open({ breachListURL: 'http://list.example' }, `${suffix}:0`).check('correct horse')).toEqual([])
})

test('the handling of an unchecked password is reported', async () => {
  const down = { breachListURL: 'http://list.example' }
  for (const failure of [new Error('down'), 'x'] as const) {
    const status = failure instanceof Error ? 200 : 500
    expect(await open(down, failure, status).check('correct horse')).toEqual([{ kind: 'unchecked' }])
    expect(await open({ ...down, acceptUnchecked: true }, failure, status).check('correct horse')).toEqual([])
  }
})

test('a weak password, or one that no person sent, is not looked up', async () => {
  const { calls, check, checkUnknown } = open({ breachListURL: 'http://list.example' })
  expect(await check('short')).toHaveLength(1)
  expect(await checkUnknown('correct horse')).toEqual([])
  expect(calls).toEqual([])
})

test.each([
  ['ada@example.com', ['ada@example.com'], true],
  ['lovelace1', ['lovelace@example.com'], true],
  ['LOVELACE!!', ['lovelace'], true],
  ['lovelace and more words', ['lovelace'], false],
  ['correct horse', ['ada', ''], false],
])('%s with %j', async (password, values, reported) => {
  const errors = await open({}).check(password, ...values)
  expect(errors).toEqual(reported ? [{ kind: 'values' }] : [])
})
