import { expect, test } from 'vitest'
import { Issues } from '#kernel/issues.ts'
import { fakeParams, fakeParseContext } from '#testing/modules/fake-parse.ts'
import portal, { portalPage } from './portal-site.ts'

const problems = (params: Record<string, string>): string[] => {
  const issues = new Issues()
  portal.prepare(fakeParams(params), issues, fakeParseContext())
  return issues.list.map(({ message }) => message)
}

const policyWith = (captcha?: 'none' | 'recaptcha' | 'turnstile'): string =>
  String(portalPage('', { base: '', title: '', apis: {} }, captcha).headers['content-security-policy'])

test('a portal has the API of the portal, or only the registration form', () => {
  expect(problems({ register: '/api/register' })).toEqual([])
  expect(problems({ main: '/main' })).toEqual([])
  expect(problems({ token: '/api/token' })).toEqual([expect.stringContaining('"main" is required, or "register"')])
  expect(problems({ register: '//elsewhere.example/register' })).toHaveLength(2)
})

test('scripts of a provider are allowed only if the configuration names it', () => {
  expect(policyWith()).toMatch(/script-src 'self';/)
  expect(policyWith()).not.toContain('frame-src')
  const policy = policyWith('turnstile')
  expect(policy).toContain("script-src 'self' https://challenges.cloudflare.com;")
  expect(policy).toContain('frame-src https://challenges.cloudflare.com;')
  expect(policy).not.toContain('google')
  expect(problems({ main: '/main', captcha: 'elsewhere' })).toHaveLength(1)
})
