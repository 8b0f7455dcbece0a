import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import gitHubTeams from '#adapters/authorizations/github-teams/github-teams.ts'
import { Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import { FakeGitHub, type FakeGitHubAccount } from '#testing/login/fake-github.ts'
import { challengeOf, type FakeLogin, fakeLogin } from '#testing/login/fake-login-attempt.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import github from './github.ts'

const id = 'L'.repeat(43)
const ada: FakeGitHubAccount = {
  id: 1815,
  login: 'ada',
  name: 'Ada Lovelace',
  emails: [
    { email: 'old@corp.test', primary: false, verified: true },
    { email: 'ada@corp.test', primary: true, verified: true },
  ],
  orgs: ['engines'],
  teams: ['engines/Platform Team'],
}

let server: FakeGitHub
let mechanisms: AuthMechanism[]

beforeEach(async () => {
  server = await FakeGitHub.start()
  mechanisms = []
})
afterEach(async () => {
  for (const one of mechanisms) await one.close?.()
  await server.close()
})

const basic = (): ParamValues => ({
  clientid: server.clientId,
  secretid: server.clientSecret,
  noMatchOU: 'github',
  idpURL: `${server.url}/login/oauth/authorize`,
  loadTokenURL: `${server.url}/login/oauth/access_token`,
  apiUrl: server.url,
})

/** Starts a login, up to the page of GitHub. */
async function depart(
  params: ParamValues = {},
  entries: readonly InsertEntry[] = [],
): Promise<FakeLogin & { asked: URL }> {
  const issues = noIssues()
  const given = fakeParams({ ...basic(), ...params }, ['secretid'])
  const prepared = github.prepare(given, fakeParams({}), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const mechanism = await prepared.create(fakeModuleHost({ entries }))
  mechanisms.push(mechanism)
  const login = fakeLogin(mechanism, { uri: '/auth/github', id })
  return Object.assign(login, { asked: new URL(challengeOf(await login.begin()).location) })
}

const back = (login: FakeLogin, url: URL): Promise<AuthOutcome> => login.proceed({ url: url.href })

async function arrive(account: FakeGitHubAccount, params: ParamValues = {}, entries: readonly InsertEntry[] = []) {
  const login = await depart(params, entries)
  return back(login, server.consent(login.asked, account))
}

const subjectOf = (outcome: AuthOutcome) => {
  if (outcome.kind !== 'authenticated') throw new Error(`not authenticated: ${JSON.stringify(outcome)}`)
  return outcome.subject
}

describe('a login', () => {
  test('asks with state and PKCE, and reads the user with orgs and teams', async () => {
    const login = await depart()
    expect(Object.fromEntries(login.asked.searchParams)).toMatchObject({
      client_id: server.clientId,
      redirect_uri: 'https://portal.test/auth/github',
      scope: 'read:user user:email read:org',
      state: id,
      code_challenge_method: 'S256',
    })
    const outcome = await back(login, server.consent(login.asked, ada))
    const { dn, uid, attributes, identity } = subjectOf(outcome)
    expect([dn.toString(), uid]).toEqual(['login=ada,ou=github,o=Tremolo', 'ada'])
    expect(String(identity)).toContain('1815')
    const values = (name: string) => attributes.values(name)
    expect([values('githubOrgs'), values('githubTeams')]).toEqual([['engines'], ['engines/Platform Team']])
    expect([values('mail'), values('email_verified'), values('name')]).toEqual([
      ['ada@corp.test'],
      ['true'],
      ['Ada Lovelace'],
    ])
    expect(values('memberOf')).toEqual([])
    expect(JSON.stringify(outcome)).not.toContain('gho_')
  })

  test('keeps the token in the session only if a name is configured', async () => {
    expect(await arrive(ada, { bearerTokenName: 'githubToken' })).toMatchObject({
      session: { slots: { githubToken: expect.stringMatching(/^gho_/) } },
    })
  })

  test('reads all pages of orgs and teams, up to a limit', async () => {
    const names = (count: number, prefix: string) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)
    const outcome = await arrive({ ...ada, orgs: names(250, 'org'), teams: names(1500, 'engines/t') })
    const { attributes } = subjectOf(outcome)
    expect([attributes.values('githubOrgs').length, attributes.values('githubTeams').length]).toEqual([250, 1000])
  })

  test('identifies a user by the number: who takes over a login is another user', async () => {
    const first = subjectOf(await arrive(ada))
    const second = subjectOf(await arrive({ ...ada, id: 666 }))
    expect(first.dn.toString()).toBe(second.dn.toString())
    expect(first.identity).not.toBe(second.identity)
  })

  test('finds the user in the directory, never by an address that GitHub has not verified', async () => {
    const entries = [
      {
        dn: Dn.parse('uid=lovelace,ou=people,o=Tremolo'),
        attributes: Attributes.from({ uid: ['lovelace'], githubId: ['1815'], mail: ['ada@corp.test'] }),
      },
    ]
    const byId = { linkToDirectory: 'true', lookupFilter: '(githubId=${id})' }
    expect(subjectOf(await arrive(ada, byId, entries)).dn.toString()).toBe('uid=lovelace,ou=people,o=Tremolo')
    const byMail = { linkToDirectory: 'true', lookupFilter: '(mail=${mail})' }
    const emails = [{ email: 'ada@corp.test', primary: true, verified: false }]
    expect(await arrive({ ...ada, id: 666, login: 'eve', emails }, byMail, entries)).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining('is not verified'),
    })
  })

  test('is for browsers', async () => {
    await depart()
    const attempt = { request: fakeRequest({}), subject: undefined, root: 'o=Tremolo' }
    expect(await mechanisms[0]?.begin(attempt)).toMatchObject({ kind: 'rejected', noCredential: true })
  })
})

describe('an attacker', () => {
  test.each([
    ['another state', { state: 'M'.repeat(43) }],
    ['no state', { state: null }],
    ['an error of GitHub', { error: 'access_denied' }],
    ['an empty code', { code: '' }],
    ['a code that is too long', { code: 'x'.repeat(600) }],
    ['a code that GitHub did not make', { code: 'guess' }],
  ] as [string, Record<string, string | null>][])('gets nothing with %s', async (_what, changes) => {
    const login = await depart()
    const url = server.consent(login.asked, ada)
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) url.searchParams.delete(name)
      else url.searchParams.set(name, value)
    }
    expect((await back(login, url)).kind).toBe('rejected')
    expect(server.calls.filter((call) => call === 'GET /user')).toEqual([])
  })

  test('cannot add a second state or code', async () => {
    for (const name of ['state', 'code']) {
      const login = await depart()
      const url = server.consent(login.asked, ada)
      url.searchParams.append(name, 'x')
      expect((await back(login, url)).kind).toBe('rejected')
    }
  })

  test('cannot use a code a second time', async () => {
    const login = await depart()
    const url = server.consent(login.asked, ada)
    expect((await back(login, url)).kind).toBe('authenticated')
    expect(await back(login, url)).toMatchObject({
      kind: 'rejected',
      reason: 'the token endpoint says bad_verification_code',
    })
  })

  test("cannot inject their own code into another user's login, which has another verifier", async () => {
    const [victim, attacker] = [await depart(), await depart()]
    const stolen = server.consent(attacker.asked, { ...ada, id: 666, login: 'eve' })
    expect((await back(victim, stolen)).kind).toBe('rejected')
  })

  test('cannot choose where the browser or the code goes', async () => {
    const login = await depart()
    const url = server.consent(login.asked, ada)
    url.searchParams.set('target', 'https://evil.test/')
    url.searchParams.set('redirect_uri', 'https://evil.test/')
    const outcome = await back(login, url)
    expect(JSON.stringify(outcome)).not.toContain('evil.test')
    const again = challengeOf(await login.proceed({ url: 'https://portal.test/auth/github?target=https://evil.test' }))
    expect(again.location.startsWith(`${server.url}/login/oauth/authorize?`)).toBe(true)
    expect(again.location).not.toContain('evil.test')
  })

  test('of another org is not allowed by the rule of ours', async () => {
    const prepared = gitHubTeams.prepare(fakeParams({}), noIssues(), fakeParseContext())
    const rule = await prepared.create(fakeModuleHost())
    const may = (orgs: string[], teams: string[], ...params: string[]) =>
      rule.isAuthorized(subject('uid=x,o=T', { githubOrgs: orgs, githubTeams: teams }), params)
    expect(may(['Engines'], [], 'engines/')).toBe(true)
    expect(may(['engines'], ['engines/platform'], 'other/', 'engines/platform')).toBe(true)
    expect(may(['engines-evil', 'evil'], ['evil/platform'], 'engines/', 'engines/platform')).toBe(false)
    expect(may(['engines'], [], 'engines/platform')).toBe(false)
    expect(may([], ['engines/platform'], 'engines/')).toBe(false)
    for (const param of ['', '/', 'engines', '/platform']) expect(may(['engines', ''], ['', '/'], param)).toBe(false)
    expect(may(['engines'], ['engines/platform'])).toBe(false)
  })

  test('cannot name an org or team so that it passes for another', async () => {
    const { attributes } = subjectOf(
      await arrive({ ...ada, orgs: ['engines/x', 'ok', ''], teams: ['/admins', 'a b/c'] }),
    )
    expect([attributes.values('githubOrgs'), attributes.values('githubTeams')]).toEqual([['ok'], []])
  })
})

describe('a GitHub that fails', () => {
  test.each(['/user', '/user/emails', '/user/orgs', '/user/teams'])('%s that refuses ends the login', async (path) => {
    server.overrides.set(path, (_request, response) => void response.writeHead(403).end('{}'))
    expect(await arrive(ada)).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining(`${path} answered 403`),
    })
  })

  test.each([
    ['is not JSON', 'oops'],
    ['is another type', '"text"'],
    ['has no id', '{"login":"ada"}'],
    ['has an id that is not a number', '{"id":"1815","login":"ada"}'],
  ])('a profile that %s ends the login', async (_what, body) => {
    server.overrides.set('/user', (_request, response) => void response.writeHead(200).end(body))
    expect((await arrive(ada)).kind).toBe('rejected')
  })

  test('redirects are not followed, and get no token', async () => {
    let followed = false
    server.overrides.set('/elsewhere', (_request, response) => {
      followed = true
      response.end('{}')
    })
    const redirect = (path: string) =>
      server.overrides.set(path, (_request, response) => {
        response.writeHead(302, { location: `${server.url}/elsewhere` }).end()
      })
    redirect('/user')
    expect((await arrive(ada)).kind).toBe('rejected')
    redirect('/login/oauth/access_token')
    expect((await arrive(ada)).kind).toBe('rejected')
    expect(followed).toBe(false)
  })

  test('an outage, a limit and an answer without end are not the fault of the user', async () => {
    for (const status of [500, 503, 429]) {
      server.overrides.set('/user', (_request, response) => void response.writeHead(status).end('{}'))
      await expect(arrive(ada)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    }
    server.overrides.set('/user', (_request, response) => {
      response.writeHead(200)
      const write = (): void => {
        if (!response.destroyed) response.write('x'.repeat(64 * 1024), () => setImmediate(write))
      }
      write()
    })
    await expect(arrive(ada)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  })
})

test('parameters are checked', () => {
  const complaints = (params: ParamValues) => {
    const issues = noIssues()
    github.prepare(fakeParams(params, ['secretid']), fakeParams({}), issues, fakeParseContext())
    return issueTexts(issues.list)
  }
  const good = { clientid: 'c', secretid: 's', noMatchOU: 'github' }
  expect(complaints(good)).toEqual([])
  const charts = {
    ...good,
    bearerTokenName: 'githubToken',
    scope: 'user:read user:email read:org',
    linkToDirectory: 'false',
    lookupFilter: '(uid=${login})',
    uidAttr: 'login',
    defaultObjectClass: 'inetOrgPerson',
  }
  expect(complaints(charts)).toEqual([])
  expect(complaints({})).toHaveLength(3)
  expect(complaints({ ...good, apiUrl: 'http://api.github.com' })).toEqual([expect.stringContaining('use https')])
  expect(complaints({ ...good, idpURL: 'javascript:alert(1)' })).toHaveLength(1)
  expect(complaints({ ...good, bearerTokenName: 'a b' })).toHaveLength(1)
})
