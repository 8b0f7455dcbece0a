import { expect, test } from 'vitest'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { parseSmtp, sendOutcome } from './smtp.ts'

function read(given: ParamValues) {
  const issues = noIssues()
  const params = fakeParams({ host: 'mail.example.com', from: 'gatehouse@example.com', ...given }, ['password'])
  return { config: parseSmtp(params, issues, fakeParseContext()), issues: issueTexts(issues.list) }
}

test('encryption is required by default, and decides the port', () => {
  const way = (given: ParamValues) => {
    const { config } = read(given)
    return [config.security, config.port]
  }
  expect(way({})).toEqual(['starttls', 587])
  expect(way({ security: 'tls' })).toEqual(['tls', 465])
  expect(way({ security: 'none', port: '2525' })).toEqual(['none', 2525])
  expect(way({ tls: 'true' })).toEqual(['starttls', 587])
  expect(way({ tls: 'false' })).toEqual(['none', 25])
})

test('the sender is an address, with or without a name', () => {
  expect(read({ from: 'Gate "House" <g@example.com>' }).config.from).toEqual({
    name: 'Gate "House"',
    address: 'g@example.com',
  })
  expect(read({ from: '"Gatehouse" <g@example.com>' }).config.from.name).toBe('Gatehouse')
  for (const from of ['nobody', 'a@b\r\nBcc: c@d', 'x\ny <a@b>', 'a@b, c@d', '<a@b> <c@d>']) {
    expect(read({ from }).issues).toEqual([expect.stringMatching(/^error params\.from/)])
  }
})

test('contradictory parameters are reported', () => {
  expect(read({ security: 'tls', tls: 'true' }).issues).toEqual([expect.stringMatching(/params\.tls/)])
  expect(read({ caFile: 'ca.pem', certificate: 'x' }).issues).toEqual([expect.stringMatching(/certificate/)])
  expect(read({ user: 'u' }).issues).toEqual([expect.stringMatching(/params\.password/)])
  expect(read({ password: 'p' }).issues).toEqual([expect.stringMatching(/params\.user/)])
  expect(read({ useSOCKSProxy: 'true' }).issues).toEqual([expect.stringMatching(/SOCKS/)])
  expect(read({ user: 'u', password: 'p', security: 'none' }).issues).toEqual([expect.stringMatching(/^warning/)])
  expect(read({ useSOCKSProxy: 'false', SOCKSProxyHost: 'h', SOCKSProxyPort: '1', subject: 's' }).issues).toEqual([])
})

test('only a permanent error of the server about this mail is a refusal', () => {
  const outcome = (fields: object) => sendOutcome(Object.assign(new Error('said\r\n no'), fields), false)
  expect(outcome({ code: 'EENVELOPE', responseCode: 550 })).toEqual({ kind: 'refused', reason: 'said no' })
  expect(outcome({ code: 'EMESSAGE', responseCode: 554 }).kind).toBe('refused')
  expect(outcome({ code: 'EMESSAGE', command: 'API' }).kind).toBe('refused')
  for (const fields of [
    { code: 'EENVELOPE', responseCode: 451 },
    { code: 'EAUTH', responseCode: 535 },
    { code: 'EPROTOCOL', responseCode: 554 },
    { code: 'ECONNECTION' },
    { code: 'ETLS' },
    { code: 'EMESSAGE' },
    {},
  ]) {
    expect(outcome(fields).kind).toBe('failed')
  }
  expect(sendOutcome('text', false)).toEqual({ kind: 'failed', reason: 'text' })
})
