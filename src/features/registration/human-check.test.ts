import { expect, test } from 'vitest'
import type { LogFields, Logger } from '#kernel/logger.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { HttpCall, HttpSend } from '#protocols/http/http-client.ts'
import { type ProviderSettings, providerCheck } from './human-check.ts'

const now = new Date('2030-01-01T00:00:00Z')
const request = { host: 'portal.example.com', remoteAddress: '192.0.2.1' }

const settings: ProviderSettings = {
  kind: 'recaptcha-v2',
  secret: 'very-secret',
  url: 'http://verifier.example/verify',
  hostnames: [],
  action: undefined,
  minScore: 0.5,
}

const solved = { success: true, hostname: 'portal.example.com', challenge_ts: '2029-12-31T23:59:30Z' }

function open(answer: unknown, more: Partial<ProviderSettings> = {}, status = 200, log: Logger = silentLogger) {
  const calls: HttpCall[] = []
  const send: HttpSend = async (call) => {
    calls.push(call)
    if (answer instanceof Error) throw answer
    return { status, headers: {}, body: typeof answer === 'string' ? answer : JSON.stringify(answer) }
  }
  return {
    calls,
    passes: () => providerCheck({ ...settings, ...more }, send, log, () => now).passes('code&x=y', request),
  }
}

test('D17: the code is verified with the secret and the address, in the body', async () => {
  const { calls, passes } = open(solved)
  expect(await passes()).toBe(true)
  expect(calls).toMatchObject([{ method: 'POST', url: new URL('http://verifier.example/verify') }])
  expect(Object.fromEntries(new URLSearchParams(calls[0]?.body))).toEqual({
    secret: 'very-secret',
    response: 'code&x=y',
    remoteip: '192.0.2.1',
  })
})

const v3 = { kind: 'recaptcha-v3', action: 'register' } as const
const v3Solved = { ...solved, action: 'register', score: 0.5 }

test.each<[string, unknown, Partial<ProviderSettings>, boolean]>([
  ['not solved', { ...solved, success: false }, {}, false],
  ['success as a text', { ...solved, success: 'true' }, {}, false],
  ['solved elsewhere', { ...solved, hostname: 'evil.example' }, {}, false],
  ['no host', { ...solved, hostname: undefined }, {}, false],
  ['one of the hosts', { ...solved, hostname: 'Other.example' }, { hostnames: ['other.example'] }, true],
  ['none of the hosts', solved, { hostnames: ['other.example'] }, false],
  ['long ago', { ...solved, challenge_ts: '2029-12-31T23:40:00Z' }, {}, false],
  ['at no time', { ...solved, challenge_ts: 'x' }, {}, false],
  ['v3', v3Solved, v3, true],
  ['v3 of a low score', { ...v3Solved, score: 0.4 }, v3, false],
  ['v3 without a score', { ...v3Solved, score: undefined }, v3, false],
  ['v3 with a score as text', { ...v3Solved, score: '0.9' }, v3, false],
  ['v3 of another action', { ...v3Solved, action: 'login' }, v3, false],
  ['turnstile', solved, { kind: 'turnstile' }, true],
  ['turnstile of another action', { ...solved, action: 'x' }, { kind: 'turnstile', action: 'register' }, false],
  ['no object', [], {}, false],
  ['no JSON', '<html>', {}, false],
])('D17: %s', async (_, answer, more, expected) => {
  expect(await open(answer, more).passes()).toBe(expected)
})

test('D17: a provider that does not answer lets no user register, and the log has no secret', async () => {
  const lines: LogFields[] = []
  const log: Logger = {
    ...silentLogger,
    warn: (_, fields) => void lines.push(fields ?? {}),
    info: (_, fields) => void lines.push(fields ?? {}),
  }
  expect(await open(new Error('connect ECONNREFUSED'), {}, 200, log).passes()).toBe(false)
  expect(await open(solved, {}, 503, log).passes()).toBe(false)
  expect(await open({ success: false }, {}, 200, log).passes()).toBe(false)
  expect(lines).toHaveLength(3)
  expect(lines.map((line) => JSON.stringify({ ...line, err: String(line['err']) })).join()).not.toMatch(
    /very-secret|code&/,
  )
})
