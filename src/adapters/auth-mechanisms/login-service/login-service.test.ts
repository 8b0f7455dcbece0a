import { describe, expect, test } from 'vitest'
import { fakeAttempt, formPost } from '#testing/login/login-attempt.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import loginService from './login-service.ts'

const two = { chains: ['Corporate login=corp', 'A partner=partner'] }

async function open(params: ParamValues) {
  const issues = noIssues()
  const context = {
    ...fakeParseContext(),
    chainAt: (path: string) => (path === '/login/auth' ? 'enterprise-idp' : undefined),
  }
  const prepared = loginService.prepare(fakeParams(params), fakeParams({}), issues, context)
  const { references } = context
  return { prepared, references, issues: issueTexts(issues.list), mechanism: await prepared.create(fakeModuleHost()) }
}

describe('auth.LoginService', () => {
  test('offers the configured chains by label', async () => {
    const { mechanism, prepared, references } = await open(two)
    expect(prepared.includes).toEqual(['corp', 'partner'])
    expect(references.map(({ name }) => name)).toEqual(['corp', 'partner'])
    const { login, ...rest } = fakeAttempt({})
    expect(await mechanism.begin({ ...rest, login })).toMatchObject({ kind: 'challenge', response: { status: 303 } })
    expect(await mechanism.begin(rest)).toMatchObject({ kind: 'rejected', noCredential: true })
    const shown = await mechanism.proceed?.(fakeAttempt({}))
    if (shown?.kind !== 'challenge') throw new Error('no page')
    expect(String(shown.response.body)).toContain(
      '<button type="submit" name="chain" value="A partner">A partner</button>',
    )
    expect(String(shown.response.body)).not.toContain('remember')
  })

  test('runs the chosen chain, and only one that is offered', async () => {
    const { mechanism } = await open(two)
    const chosen = await mechanism.proceed?.(fakeAttempt(formPost({ chain: 'A partner', remember: 'true' })))
    expect(chosen).toEqual({ kind: 'include', chain: 'partner' })
    for (const chain of ['partner', 'admin', '', '__proto__']) {
      await expect(mechanism.proceed?.(fakeAttempt(formPost({ chain })))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })

  test('does not ask if there is only one choice', async () => {
    const { mechanism } = await open({ chains: 'Corporate login=corp' })
    expect(await mechanism.begin(fakeAttempt({}))).toEqual({ kind: 'include', chain: 'corp' })
  })

  test('takes the chain of a URL by its path', async () => {
    const { mechanism, references, issues } = await open({ chains: 'Login=/login/auth' })
    expect([references.map(({ name }) => name), issues]).toEqual([['enterprise-idp'], []])
    expect(await mechanism.begin(fakeAttempt({}))).toEqual({ kind: 'include', chain: 'enterprise-idp' })
    expect((await open({ chains: 'Login=https://elsewhere.test/login' })).issues).toHaveLength(1)
  })

  test('remembers the choice on request, in a cookie that proves nothing', async () => {
    const { mechanism } = await open({ ...two, cookieDays: '30', cookieName: 'choice' })
    const chosen = await mechanism.proceed?.(fakeAttempt(formPost({ chain: 'A partner', remember: 'true' })))
    const cookie = 'choice=partner; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000; Secure'
    expect(chosen).toEqual({ kind: 'include', chain: 'partner', cookie })
    const unasked = await mechanism.proceed?.(fakeAttempt(formPost({ chain: 'A partner' })))
    expect(unasked).toEqual({ kind: 'include', chain: 'partner' })
    const again = (value: string) => mechanism.begin(fakeAttempt({ headers: { cookie: `choice=${value}` } }))
    expect(await again('partner')).toEqual({ kind: 'include', chain: 'partner' })
    expect(await again('admin')).toMatchObject({ kind: 'challenge' })
  })

  test('reports invalid parameters', async () => {
    expect((await open({ chains: ['corp', 'A=', '=b'] })).issues).toHaveLength(3)
    expect((await open({ chains: 'A=/auth/idp/start' })).issues).toEqual([
      expect.stringContaining('no URL of an application serves /auth/idp/start with a chain'),
    ])
    expect((await open({})).issues).toEqual([expect.stringContaining('"chains" is required')])
    expect((await open({ ...two, cookieName: 'a b' })).issues).toHaveLength(1)
    expect((await open({ ...two, serviceUrl: '/auth/forms/chooser.jsp' })).issues).toEqual([
      expect.stringMatching(/^warning params\.serviceUrl/),
    ])
  })
})
