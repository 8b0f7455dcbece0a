import { expect, test } from 'vitest'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import loginTest from './login-test.ts'

const documented = { jspURI: '/auth/forms/loginTest.jsp', logoutURI: '/logout' }

function prepare(params: ParamValues) {
  const issues = noIssues()
  const prepared = loginTest.prepare(fakeParams(params), issues, fakeParseContext())
  return { prepared, problems: issueTexts(issues.list) }
}

async function ask(attributes: Record<string, string[]>, params: ParamValues = documented, method = 'GET') {
  const filter = await prepare(params).prepared.create(fakeModuleHost())
  const caller = subject('uid=ada,o=Tremolo', attributes)
  const request = fakeRequest({ method, headers: { 'accept-language': 'de' } })
  const exchange = { request, application: 'app', mount: '/app', pathInfo: '', subject: caller }
  const answer = await filter.handle(exchange, async () => ({ status: 404, headers: {} }))
  return { ...answer, text: String(answer.body) }
}

test('shows users their own login, in their language', async () => {
  const { status, headers, text } = await ask({ mail: ['ada@corp.test', 'a@b.test'], cn: ['Ada'] })
  expect([status, headers['cache-control']]).toEqual([200, 'no-store'])
  for (const shown of ['Ihre Anmeldung', 'uid=ada,o=Tremolo', 'ada@corp.test', 'a@b.test', 'href="/logout"', '>20<']) {
    expect(text).toContain(shown)
  }
  expect(text.indexOf('<dt>cn</dt>')).toBeLessThan(text.indexOf('<dt>mail</dt>'))
})

test('escapes values, leaves out secrets and cuts what is long', async () => {
  const groups = Array.from({ length: 150 }, (_, i) => `group-${i}`)
  const { text } = await ask({
    cn: ['<script>alert(1)</script>'],
    userPassword: ['hidden-1'],
    id_token: ['hidden-2'],
    groups,
  })
  expect(text).toContain('&lt;script&gt;')
  expect(text).not.toMatch(/<script>|hidden-|group-149/)
})

test('only reads', async () => {
  await expect(ask({}, documented, 'POST')).rejects.toMatchObject({ status: 405 })
})

test('a login without attributes has a text, and without logoutURI there is no link', async () => {
  const { text } = await ask({}, {})
  expect(text).toContain('keine Attribute')
  expect(text).not.toContain('<a ')
})

test('the page of OpenUnison is not used, and links stay on this host', () => {
  expect(prepare(documented).problems).toEqual(['warning params.jspURI: not used: the page is part of Gatehouse'])
  for (const logoutURI of ['https://evil.test/', '//evil.test', 'javascript:alert(1)', 'logout']) {
    expect(prepare({ logoutURI }).problems).toHaveLength(1)
  }
})
