import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { LoginGuard } from '#sdk/auth/login.ts'
import { fakeDirectory } from '#testing/login/fake-directory.ts'
import { fakeAttempt, formPost, openGuard } from '#testing/login/login-attempt.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import formLogin from './form-login.ts'

const person = (uid: string, more: Record<string, string[]> = {}) => ({
  dn: Dn.parse(`uid=${uid},ou=people,o=Tremolo`),
  attributes: Attributes.from({ uid: [uid], mail: [`${uid}@corp.test`], userPassword: ['{SSHA}x'], ...more }),
})
const people = [
  person('ada'),
  person('grace', { ou: ['navy'] }),
  person('twin1', { mail: ['twin@corp.test'] }),
  person('off', { active: ['false'] }),
]

async function open(params: ParamValues = {}, failure?: GatewayError) {
  const issues = noIssues()
  const prepared = formLogin.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
  const binds: string[] = []
  const host = fakeModuleHost()
  const directory = fakeDirectory({
    search: async ({ filter, limit }) => {
      if (failure !== undefined) throw failure
      return [...people, person('twin2', { mail: ['twin@corp.test'] })]
        .filter(({ attributes }) => matches(filter, attributes))
        .slice(0, limit)
        .map(directoryEntry)
    },
    isMember: async () => false,
  })
  const bind = async (dn: Dn, password: string) => {
    binds.push(dn.toString())
    return /^uid=(?:ada|off),ou=people,o=Tremolo$/.test(dn.toString()) && password === 'right horse'
  }
  const mechanism = await prepared.create({ ...host, directory: { ...directory, bind } })
  return { issues: issueTexts(issues.list), mechanism, binds, prepared }
}

async function submit(fields: Record<string, string>, params: ParamValues = {}) {
  const { mechanism, binds } = await open(params)
  const guard = openGuard()
  const outcome = await mechanism.proceed?.(fakeAttempt({ ...formPost(fields), guard }))
  if (outcome === undefined) throw new Error('the form does not proceed')
  return { outcome, tries: guard.tries, binds }
}

const answerOf = (outcome: Awaited<ReturnType<typeof submit>>['outcome']) => {
  if (outcome.kind !== 'challenge') throw new Error(`not asked again: ${outcome.kind}`)
  // The typed login is filled in again, and is all that differs.
  const body = String(outcome.response.body).replace(/(?<=id="user"[^>]*value=")[^"]*/, '')
  return { status: outcome.response.status, body }
}

describe('auth.FormLogin', () => {
  test('sends browsers to its page, and rejects other clients', async () => {
    const { mechanism, prepared } = await open()
    expect(prepared.interactive).toBe(true)
    const { login, ...rest } = fakeAttempt({})
    expect(await mechanism.begin({ ...rest, login })).toMatchObject({
      kind: 'challenge',
      response: { status: 303, headers: { location: login.address } },
    })
    expect(await mechanism.begin(rest)).toMatchObject({ kind: 'rejected', noCredential: true })
  })

  test('shows an accessible page that works without scripts', async () => {
    const { mechanism } = await open({ title: 'Corp <Login>', themePrimaryMain: '#123456' })
    const outcome = await mechanism.proceed?.(fakeAttempt({}))
    if (outcome?.kind !== 'challenge') throw new Error('no page')
    const { status, headers, body } = outcome.response
    expect(status).toBe(200)
    const policy = String(headers['content-security-policy'])
    expect(policy).toMatch(/default-src 'none'; style-src 'sha256-[\w+/=]+'/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|script-src|\*/)
    const html = String(body)
    expect(html).not.toMatch(/<script|\son\w+=|javascript:|style="/i)
    expect(html).toContain('<h1>Corp &lt;Login&gt;</h1>')
    expect(html).toContain('--main: #123456')
    expect(html).toMatch(/<html lang="en">/)
    expect(html).toMatch(/<label for="user">.*<\/label>\s*<input id="user" name="user"[^>]*autocomplete="username"/)
    expect(html).toMatch(
      /<label for="pwd">.*<\/label>\s*<input id="pwd" name="pwd"[^>]*autocomplete="current-password"/,
    )
    expect(html).not.toContain('role="alert"')
  })

  test('links to the page for forgotten passwords if there is one', async () => {
    const pageOf = async (params: ParamValues) => {
      const outcome = await (await open(params)).mechanism.proceed?.(fakeAttempt({}))
      return outcome?.kind === 'challenge' ? String(outcome.response.body) : ''
    }
    expect(await pageOf({ forgotPasswordURL: '/password' })).toContain('<a href="/password">Forgot your password?</a>')
    expect(await pageOf({})).not.toContain('Forgot your password?')
    for (const address of ['//evil.test', 'javascript:alert(1)', 'password']) {
      expect((await open({ forgotPasswordURL: address }).catch(() => ({ issues: ['refused'] }))).issues).not.toEqual([])
    }
  })

  test('links to the registration if there is one', async () => {
    const outcome = await (await open({ registerURL: '/join' })).mechanism.proceed?.(fakeAttempt({}))
    expect(outcome).toMatchObject({
      response: { body: expect.stringContaining('<a href="/join">Create an account</a>') },
    })
    expect((await open({ registerURL: 'join' }).catch(() => ({ issues: ['refused'] }))).issues).not.toEqual([])
  })

  test('keeps the typed login after a failed attempt, never the password, and focuses what is missing', async () => {
    const bodyOf = async (user: string): Promise<string> => {
      const { outcome } = await submit({ user, pwd: 'wrong horse' })
      return outcome.kind === 'challenge' ? String(outcome.response.body) : ''
    }
    const body = await bodyOf('"><b>ada')
    expect(body).toContain('value="&quot;&gt;&lt;b&gt;ada"')
    expect(body).not.toContain('wrong horse')
    expect(body).toMatch(/<input id="pwd"[^>]* autofocus/)
    expect(await bodyOf('a'.repeat(257))).toMatch(/<input id="user"[^>]*value=""[^>]* autofocus/)
  })

  test("speaks the reader's language, except where the configuration has its own text", async () => {
    const headers = { 'accept-language': 'de' }
    const bodyOf = async (params: ParamValues): Promise<string> => {
      const outcome = await (await open(params)).mechanism.proceed?.(fakeAttempt({ headers }))
      return outcome?.kind === 'challenge' ? String(outcome.response.body) : ''
    }
    const plain = await bodyOf({ forgotPasswordURL: '/password' })
    expect(plain).toContain('<html lang="de">')
    for (const text of ['<h1>Anmelden</h1>', '>Benutzername<', '>Passwort<', '>Passwort vergessen?<']) {
      expect(plain).toContain(text)
    }
    expect(await bodyOf({ title: 'Welcome', userLabel: 'Employee ID' })).toMatch(/<h1>Welcome<.*>Employee ID</s)
  })

  test('authenticates users by password, and keeps the password out of the subject', async () => {
    const { outcome, tries } = await submit({ user: ' ada ', pwd: 'right horse' })
    if (outcome.kind !== 'authenticated') throw new Error('ada is not let in')
    expect(outcome.subject).toMatchObject({ uid: 'ada' })
    expect(outcome.subject.attributes.has('userPassword')).toBe(false)
    expect(tries).toEqual(['ada succeeded'])
  })

  test('rejects a deactivated user with the right password, like a wrong password', async () => {
    const off = await submit({ user: 'off', pwd: 'right horse' })
    const wrong = await submit({ user: 'ada', pwd: 'wrong' })
    expect(answerOf(off.outcome)).toEqual(answerOf(wrong.outcome))
    expect(off.tries).toEqual(['off failed: switched off (off)'])
  })

  test('answers the same to an unknown user, a wrong password, several matches and no password', async () => {
    const wrong = await submit({ user: 'ada', pwd: 'wrong' })
    const unknown = await submit({ user: 'nobody', pwd: 'wrong' })
    const params = { uidAttr: '(mail=${user})', uidIsFilter: 'true' }
    const several = await submit({ user: 'twin@corp.test', pwd: 'wrong' }, params)
    const empty = await submit({ user: 'ada', pwd: '' })
    const answers = [wrong, unknown, several, empty].map(({ outcome }) => answerOf(outcome))
    expect(answers[0]?.status).toBe(401)
    expect(answers[0]?.body).toContain('role="alert"')
    for (const answer of answers) expect(answer).toEqual(answers[0])
    expect(wrong.tries).toEqual(['ada failed: wrong password (ada)'])
    expect(unknown.tries).toEqual(['nobody failed: no such user'])
  })

  test('does the same work for an unknown user, and answers both at the same interval', async () => {
    const known = await submit({ user: 'ada', pwd: 'wrong' })
    const unknown = await submit({ user: 'nobody', pwd: 'wrong' })
    expect([known.binds, unknown.binds]).toEqual([
      ['uid=ada,ou=people,o=Tremolo'],
      ['uid=nobody-of-this-name,ou=people,o=Tremolo'],
    ])
    for (const user of ['ada', 'nobody']) {
      const started = performance.now()
      await submit({ user, pwd: 'wrong' })
      expect(performance.now() - started).toBeGreaterThanOrEqual(248)
    }
  })

  test.each(['*', 'a*', '*)(uid=*', 'ada)(|(uid=*', 'ada\0', '(uid=ada)', '\\2a'])(
    'D8: the typed login is a value and never a part of the filter: %j',
    async (user) => {
      expect(answerOf((await submit({ user, pwd: 'right horse' })).outcome).status).toBe(401)
      const params = { uidAttr: '(|(uid=${user})(mail=${user}))', uidIsFilter: 'true' }
      expect(answerOf((await submit({ user, pwd: 'right horse' }, params)).outcome).status).toBe(401)
    },
  )

  test('finds users by the configured filter', async () => {
    const params = { uidAttr: '(|(uid=${user})(mail=${user}))', uidIsFilter: 'true' }
    const { outcome } = await submit({ user: 'ada@corp.test', pwd: 'right horse' }, params)
    expect(outcome).toMatchObject({ kind: 'authenticated', subject: { uid: 'ada' } })
  })

  test('does not check a locked login, and says when to try again', async () => {
    const { mechanism, binds } = await open()
    const guard = { begin: async () => ({ allowed: false, retryAfterSeconds: 61, concealed: false }) as const }
    const outcome = await mechanism.proceed?.(fakeAttempt({ ...formPost({ user: 'ada', pwd: 'right horse' }), guard }))
    expect(outcome).toMatchObject({ kind: 'challenge', response: { status: 429, headers: { 'retry-after': '61' } } })
    expect(binds).toEqual([])
  })

  test('answers an account that is locked under another name like a wrong password, after the same work', async () => {
    const wrong = await submit({ user: 'ada', pwd: 'wrong' })
    const { mechanism, binds } = await open()
    const guard = { begin: async () => ({ allowed: false, retryAfterSeconds: 61, concealed: true }) as const }
    const attempt = fakeAttempt({ ...formPost({ user: 'ada', pwd: 'right horse' }), guard })
    const started = performance.now()
    const outcome = await mechanism.proceed?.(attempt)
    expect(performance.now() - started).toBeGreaterThanOrEqual(248)
    if (outcome?.kind !== 'challenge') throw new Error('let in')
    expect(answerOf(outcome)).toEqual(answerOf(wrong.outcome))
    expect(outcome.response.headers['retry-after']).toBeUndefined()
    expect(binds).toEqual(['uid=nobody-of-this-name,ou=people,o=Tremolo'])
  })

  test('the guard gets the entry that the typed login finds', async () => {
    const { mechanism } = await open({ uidAttr: '(|(uid=${user})(mail=${user}))', uidIsFilter: 'true' })
    const found: unknown[] = []
    const guard: LoginGuard = {
      begin: async (_typed, options) => {
        found.push(await options?.find?.())
        return { allowed: false, retryAfterSeconds: 1, concealed: false }
      },
    }
    for (const user of ['ada', 'ADA@corp.test', 'nobody']) {
      await mechanism.proceed?.(fakeAttempt({ ...formPost({ user, pwd: 'x' }), guard }))
    }
    const ada = { identity: directoryEntry(person('ada')).identity, login: 'ada' }
    expect(found).toEqual([ada, ada, undefined])
  })

  test('a directory that does not answer counts against no user', async () => {
    const { mechanism } = await open({}, new GatewayError('TARGET_UNREACHABLE', 'down'))
    const guard = openGuard()
    const attempt = fakeAttempt({ ...formPost({ user: 'ada', pwd: 'right horse' }), guard })
    await expect(mechanism.proceed?.(attempt)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(guard.tries).toEqual(['ada abandoned'])
  })

  test.each([
    [{ method: 'PUT' }, 'METHOD_NOT_ALLOWED'],
    [
      { method: 'POST', body: '{"user":"ada"}', headers: { 'content-type': 'application/json' } },
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [{ method: 'POST', body: 'user=ada&pwd=x', headers: { 'content-type': 'text/plain' } }, 'UNSUPPORTED_MEDIA_TYPE'],
    [{ pathInfo: '/more' }, 'NOT_FOUND'],
  ])('refuses %j', async (request, code) => {
    const { mechanism } = await open()
    await expect(mechanism.proceed?.(fakeAttempt(request))).rejects.toMatchObject({ code })
  })

  test('reports invalid parameters', () => {
    const read = (params: ParamValues) => {
      const issues = noIssues()
      formLogin.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
      return issueTexts(issues.list)
    }
    expect(read({ uidAttr: 'uid', uidIsFilter: 'false' })).toEqual([])
    expect(read({ FORMLOGIN_JSP: '/auth/forms/defaultForm.jsp' })).toEqual([
      'warning params.FORMLOGIN_JSP: not used: the login page is part of Gatehouse',
    ])
    expect(read({ uidAttr: '(uid=${user}', uidIsFilter: 'true' })).toHaveLength(1)
    expect(read({ uidAttr: '(uid=ada)', uidIsFilter: 'true' })).toEqual([
      expect.stringContaining('the filter must contain ${user}'),
    ])
    expect(read({ uidAttr: '(&(uid=${user})(ou=${org}))', uidIsFilter: 'true' })).toEqual([
      expect.stringContaining('no field "org"'),
    ])
    expect(read({ uidAttr: '(uid=*)' })).toHaveLength(1)
    expect(read({ themePrimaryMain: 'red; } body { display: none' })).toHaveLength(1)
  })
})
