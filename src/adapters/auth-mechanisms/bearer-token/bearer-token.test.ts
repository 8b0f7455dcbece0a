import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import bearerToken from './bearer-token.ts'

const token = 'abcdefghijklmnopqrstuvwxyz012345'
const other = 'another-token-of-enough-characters'
const hashOf = (text: string) => `sha256:${hash('sha256', text, 'hex')}`

const prepare = (given: string, issues = noIssues()) =>
  bearerToken.prepare(fakeParams({ token: given, userName: 'entra' }), fakeParams({}), issues, fakeParseContext())

async function begin(given: string, authorization?: string) {
  const mechanism = await prepare(given).create(fakeModuleHost())
  const request = fakeRequest(authorization === undefined ? {} : { headers: { authorization } })
  return mechanism.begin({ request, subject: undefined, root: 'o=Tremolo' })
}

test.each([
  ['the token itself', token],
  ['its hash', hashOf(token)],
  ['one of several lines', `${hashOf(other)}\n\n${token}\n`],
])('accepts the token where the secret has %s', async (_, secret) => {
  const outcome = await begin(secret, `Bearer ${token}`)
  if (outcome.kind !== 'authenticated') throw new Error(outcome.kind)
  expect(outcome.subject.dn.toString()).toBe('uid=entra,ou=tokens,o=Tremolo')
  expect(outcome.subject.uid).toBe('entra')
})

test.each([
  ['another token', `Bearer ${other}`, 'error="invalid_token"'],
  ['the hash instead of the token', `Bearer ${hash('sha256', token, 'hex')}`, 'error="invalid_token"'],
  ['a part of the token', `Bearer ${token.slice(0, -1)}`, 'error="invalid_token"'],
  ['a malformed header', 'Bearer a b', 'error="invalid_request"'],
  ['basic authentication', 'Basic aWRwOnNlY3JldA==', 'realm="gatehouse"'],
  ['no header', undefined, 'realm="gatehouse"'],
])('refuses %s with a challenge', async (_, authorization, challenge) => {
  const outcome = await begin(hashOf(token), authorization)
  if (outcome.kind !== 'rejected') throw new Error(outcome.kind)
  expect(outcome.headers?.['www-authenticate']).toContain(challenge)
  expect(JSON.stringify(outcome)).not.toContain(token.slice(0, 10))
})

test.each([
  ['short', /line 1: a token needs at least 20 characters/],
  [`${token}\nsha256:abc`, /line 2: expected 64 hexadecimal digits/],
  [`${token} ${token}`, /line 1: a bearer token has letters/],
  [Array.from({ length: 11 }, (_, i) => token + i).join('\n'), /at most 10 tokens/],
])('%j is not a valid token, and the problem does not show it', (given, problem) => {
  const issues = noIssues()
  prepare(given, issues)
  const texts = issueTexts(issues.list).join()
  expect(texts).toMatch(problem)
  expect(texts).not.toContain(token)
})
