import { expect, test } from 'vitest'
import { fakeAttempt, formPost } from '#testing/login/login-attempt.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import acknowledge from './acknowledge.ts'

async function open(params: ParamValues) {
  const issues = noIssues()
  const prepared = acknowledge.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
  return { mechanism: await prepared.create(fakeModuleHost()), issues: issueTexts(issues.list) }
}

const banner = 'I shall do no harm.\n\nNot even <b>a bit</b>.'

test('shows the text, and only a user who agrees continues', async () => {
  const { mechanism } = await open({ banner })
  const { login, ...rest } = fakeAttempt({})
  expect(await mechanism.begin({ ...rest, login })).toMatchObject({ kind: 'challenge', response: { status: 303 } })
  expect(await mechanism.begin(rest)).toMatchObject({ kind: 'rejected', noCredential: true })
  for (const attempt of [fakeAttempt({}), fakeAttempt(formPost({})), fakeAttempt(formPost({ agree: 'false' }))]) {
    const shown = await mechanism.proceed?.(attempt)
    if (shown?.kind !== 'challenge') throw new Error('no page')
    const body = String(shown.response.body)
    expect(body).toContain('<p>I shall do no harm.</p>')
    expect(body).toContain('Not even &lt;b&gt;a bit')
    expect(body).toContain('<button type="submit" name="agree" value="true">I agree</button>')
  }
  expect(await mechanism.proceed?.(fakeAttempt(formPost({ agree: 'true' })))).toEqual({ kind: 'passed' })
})

test("OpenUnison's parameters are read", async () => {
  expect((await open({ banner, loginJSP: '/auth/forms/acknowledge.jsp' })).issues).toEqual([
    expect.stringMatching(/^warning params\.loginJSP/),
    expect.stringMatching(/^warning params\.banner/),
  ])
  expect((await open({})).issues).toEqual([expect.stringContaining('"banner" is required')])
})
