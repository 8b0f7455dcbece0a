import { describe, expect, test } from 'vitest'
import { filters } from '#catalog/catalog.ts'
import { offersProfile } from '#features/portal/access/profile-form.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import { privateErrors } from '#sdk/api/json-answer.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { ann, mainParams, person, someone } from '#testing/modules/main-fixture.ts'
import operators from './operators.ts'

const basic: ParamValues = {
  bases: ['People=ou=people,o=x'],
  searchableAttributes: ['uid=Login ID', 'mail=Email Address'],
  resultAttributes: ['uid=Login ID', 'mail=Email Address'],
  scaleMainAppName: 'scale',
  scaleMainURI: '/scale/main',
  homeUrl: '/scale/',
}

const prepare = (params: ParamValues) => {
  const issues = noIssues()
  return {
    prepared: operators.prepare(fakeParams(params), issues, fakeParseContext()),
    issues: issueTexts(issues.list),
  }
}

const elsewhere = {
  dn: Dn.parse('uid=root,ou=admins,o=x'),
  attributes: Attributes.from({ uid: ['root'], mail: ['root@example.com'] }),
}
const group = {
  dn: Dn.parse('cn=staff,ou=people,o=x'),
  attributes: Attributes.from({ cn: ['staff'], mail: ['staff@example.com'], member: ['uid=bob,ou=people,o=x'] }),
}
const entries = [
  person('ann', { mail: ['ann@example.com'] }),
  person('bob', { mail: ['bob@example.com'], userPassword: ['secret'] }),
  person('star', { mail: ['a*b@example.com'] }),
  elsewhere,
  group,
]

async function open(params: ParamValues = basic, more: ParamValues = {}) {
  const { prepared, issues } = prepare(params)
  expect(issues).toEqual([])
  const main = filters
    .find('filters.Main')
    ?.prepare(fakeParams({ ...mainParams, ...more }), noIssues(), fakeParseContext())
  if (main === undefined || !offersProfile(main)) throw new Error('the main filter has no profile')
  const calls: WorkflowCall[] = []
  const outcome = { status: 'completed' as 'completed' | 'waiting', changes: 1 }
  const run = async (call: WorkflowCall) => {
    calls.push(call)
    return { id: 'r', ...outcome }
  }
  const profiles = [{ application: 'scale', uri: '/scale/main', form: main.profile }]
  const host = fakeModuleHost({ entries, profiles, runs: { run } })
  const filter = await prepared.create(host)
  const send = async (method: string, path: string, body?: unknown, caller = ann, type = 'application/json') => {
    const url = new URL(`https://portal.test/scale/ops${path}`)
    const request = fakeRequest({
      method,
      url: url.href,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': type } }),
    })
    const exchange = {
      request,
      application: 'ops',
      mount: '/scale/ops',
      pathInfo: url.pathname.slice(10),
      subject: caller,
    }
    try {
      const answer = await filter.handle(exchange, async () => expect.unreachable())
      return { status: answer.status, headers: answer.headers, body: JSON.parse(String(answer.body)) }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return { status: error.status, headers: {}, body: JSON.parse(String(privateErrors(error, 'r', request).body)) }
    }
  }
  const search = (value: string, name = 'mail', base = 'People') =>
    send('PUT', '/search', { base, toSearch: [{ name, label: 'x', value, picked: true }] })
  return { send, search, calls, outcome, host }
}

const dnOf = (uid: string) => `uid=${uid},ou=people,o=x`
const userPath = (dn: string) => `/user?dn=${encodeURIComponent(dn)}`
const update = (dn: string, values: Record<string, string>, reason = 'Married') => ({
  dn,
  reason,
  attributes: Object.entries(values).map(([name, value]) => ({ name, values: [value] })),
})

describe('the configuration', () => {
  test('is what OpenUnison’s page reads, without the names of the directory', async () => {
    const { send } = await open({ ...basic, rolesWith: '4', approveChecked: 'TRUE' })
    const { body } = await send('GET', '/config')
    expect(body).toMatchObject({
      searchBases: ['People'],
      searchableAttributes: [{ name: 'uid', label: 'Login ID', picked: false, value: '' }, { name: 'mail' }],
      resultsAttributes: [{ name: 'uid', label: 'Login ID' }, { name: 'mail' }],
      scaleJsMainUri: '/scale/main',
      homeUrl: '/scale/',
      approveChecked: true,
      showPreApprove: true,
      approvedLabel: 'Approved',
      maxWidth: 'sm',
      attributesWidth: 6,
      rolesWidth: 4,
    })
    expect(JSON.stringify(body)).not.toContain('ou=people')
  })

  test.each<[ParamValues, string]>([
    [{ bases: ['People'] }, '"bases": "People"'],
    [{ bases: ['People=not a name'] }, '"bases"'],
    [{ bases: ['A=o=x', 'A=o=y'] }, 'appears twice'],
    [{ searchableAttributes: ['uid'] }, 'must be "attribute=label"'],
    [{ resultAttributes: ['userPassword=Password'] }, 'is never shown'],
    [{ scaleMainURI: '' }, '"scaleMainURI" is required'],
  ])('%j is a mistake', (more, message) => {
    expect(prepare({ ...basic, ...more }).issues.join('\n')).toContain(message)
  })

  test('needs the portal whose profile it uses', async () => {
    await expect(prepare(basic).prepared.create(fakeModuleHost())).rejects.toThrow('no filters.Main at "/scale/main"')
  })
})

describe('a search', () => {
  test.each([
    ['bob@example.com', ['bob']],
    ['bob*', ['bob']],
    ['*example.com', ['ann', 'bob', 'star']],
    ['*b@ex*', ['bob', 'star']],
    ['a*b@example.com', ['star']],
    ['*', ['ann', 'bob', 'star']],
    ['nobody', []],
    ['*)(uid=*', []],
    ["' or 1=1 --", []],
    ['\\2a', []],
  ])('for %s finds %j, and only users below the base', async (value, expected) => {
    const { search } = await open()
    const { status, body } = await search(value)
    expect([status, body.map(({ uid }: { uid: string }) => uid)]).toEqual([200, expected])
  })

  test('shows the configured attributes only, and says if there are more', async () => {
    const { search } = await open({ ...basic, maxResults: '2' })
    const { body, headers } = await search('*example.com')
    expect(body).toEqual([
      { dn: dnOf('ann'), uid: 'ann', mail: 'ann@example.com' },
      { dn: dnOf('bob'), uid: 'bob', mail: 'bob@example.com' },
    ])
    expect(headers).toMatchObject({ 'x-more-results': 'true', 'cache-control': 'no-store' })
    expect((await (await open()).search('*example.com')).headers).not.toHaveProperty('x-more-results')
  })

  test('is refused by another attribute, at another base, and without a condition', async () => {
    const { send, search, host } = await open()
    expect((await search('x', 'userPassword')).status).toBe(400)
    expect((await search('x', 'MAIL')).status).toBe(400)
    expect((await search('x', '__proto__')).status).toBe(400)
    expect((await search('x', 'mail', 'o=x')).status).toBe(400)
    expect((await search('  ')).status).toBe(400)
    expect((await search('x'.repeat(300))).status).toBe(400)
    expect((await search('\0')).status).toBe(400)
    for (const toSearch of [[], [{ name: 'mail', label: 'x', value: 'ann*', picked: false }]]) {
      expect((await send('PUT', '/search', { base: 'People', toSearch })).body.errors[0]).toContain('at least one')
    }
    expect((await send('PUT', '/search', {}, ann, 'text/plain')).status).toBe(415)
    expect(host.searches).toEqual([])
  })
})

describe('a user', () => {
  test('is shown as in their own profile, with the fields’ descriptions', async () => {
    const { send } = await open()
    const { body } = await send('GET', userPath(dnOf('bob')))
    expect(body).toMatchObject({
      dn: dnOf('bob'),
      uid: 'bob',
      groups: ['staff'],
      canEditUser: true,
      metaData: { uid: { displayName: 'Login', readOnly: true }, mail: { displayName: 'Mail' } },
    })
    expect(body.attributes).toContainEqual({ name: 'mail', values: ['bob@example.com'], dataType: 'string' })
    expect(JSON.stringify(body)).not.toContain('secret')
  })

  test.each([
    ['uid=root,ou=admins,o=x'],
    ['cn=staff,ou=people,o=x'],
    [dnOf('nobody')],
    ['not a name'],
    ['uid=ann,o=x\\,ou=people,o=x'],
    [`uid=${'x'.repeat(3000)},ou=people,o=x`],
  ])('%s is not found, whether it exists or not', async (dn) => {
    const { send, calls } = await open()
    expect((await send('GET', userPath(dn))).status).toBe(404)
    if (dn.length < 2000) expect((await send('POST', '/user', update(dn, { mail: 'a@example.com' }))).status).toBe(404)
    expect(calls).toEqual([])
  })

  test('needs a name, once', async () => {
    const { send } = await open()
    expect((await send('GET', '/user')).status).toBe(400)
    expect((await send('GET', `${userPath(dnOf('ann'))}&dn=x`)).status).toBe(400)
  })
})

describe('a change', () => {
  test('runs the portal’s workflow for the user, in the operator’s name, with the reason', async () => {
    const { send, calls, outcome } = await open()
    const answer = await send('POST', '/user', update(dnOf('bob'), { mail: 'robert@example.com' }))
    expect(answer).toMatchObject({ status: 200, body: { status: 'completed' } })
    expect(calls).toMatchObject([
      {
        head: { workflow: 'save', requester: 'ann', reason: 'Married' },
        keepGroups: true,
        user: { userID: 'bob', groups: [] },
      },
    ])
    expect(calls[0]?.head.who?.requester).toBe(ann.identity)
    expect(calls[0]?.head.who?.subject).toBe(someone('bob').identity)
    const { attributes } = calls[0]?.user ?? {}
    expect([attributes?.values('mail'), attributes?.values('displayName'), attributes?.values('uid')]).toEqual([
      ['robert@example.com'],
      ['bob Doe'],
      ['bob'],
    ])
    expect(attributes?.has('userPassword')).toBe(false)
    outcome.status = 'waiting'
    const waiting = await send('PUT', '/user', update(dnOf('bob'), { mail: '' }))
    expect(waiting).toMatchObject({ status: 200, body: { status: 'waiting' } })
    expect(calls[1]?.cleared).toEqual(['mail'])
  })

  test('that the workflow did not make is not called completed', async () => {
    const { send, outcome } = await open()
    outcome.changes = 0
    const { body } = await send('PUT', '/user', update(dnOf('bob'), { mail: 'other@example.com' }))
    expect(body).toEqual({ status: 'unchanged' })
  })

  test('of nothing starts no workflow, and says so', async () => {
    const { send, calls } = await open()
    const same = update(dnOf('bob'), { mail: 'bob@example.com' })
    expect((await send('POST', '/user', same)).body).toEqual({ status: 'unchanged' })
    expect(calls).toEqual([])
  })

  test.each([
    [{ mail: 'bob@evil.test' }, 'Mail must be one of ours'],
    [{ uid: 'root' }, 'Login cannot be changed'],
    [{ displayName: '' }, 'Name is required'],
    [{ userPassword: 'x' }, 'Invalid attribute userPassword'],
    [{ team: 'green' }, 'Team has a value that is not in the list'],
  ])('to %j is refused: %s', async (values: Record<string, string>, message) => {
    const { send, calls } = await open()
    const { status, body } = await send('POST', '/user', update(dnOf('bob'), values))
    expect([status, body]).toEqual([500, { errors: [message] }])
    expect(calls).toEqual([])
  })

  test('needs a user, a reason, and one value for each attribute', async () => {
    const { send, calls } = await open()
    const bodies = [
      // What one of OpenUnison's pages sends: it does not say whose profile it is.
      { mail: { name: 'mail', value: 'x@example.com' } },
      update(dnOf('bob'), { mail: 'x@example.com' }, ' '),
      { ...update(dnOf('bob'), {}), attributes: [{ name: 'mail', values: ['a@example.com', 'b@example.com'] }] },
      { ...update(dnOf('bob'), {}), attributes: ['a', 'b'].map((v) => ({ name: 'mail', values: [v] })) },
      { ...update(dnOf('bob'), {}), approved: true },
    ]
    for (const body of bodies) {
      const answer = await send('PUT', '/user', body)
      expect([answer.status, answer.body.errors.length > 0]).toEqual([400, true])
    }
    expect(calls).toEqual([])
  })

  test('is refused where the portal lets no one change profiles', async () => {
    const { send, calls } = await open(basic, { canEditUser: 'false' })
    expect((await send('GET', userPath(dnOf('bob')))).body.canEditUser).toBe(false)
    expect((await send('POST', '/user', update(dnOf('bob'), { mail: 'x@example.com' }))).status).toBe(403)
    expect(calls).toEqual([])
  })
})

test('callers who did not log in get nothing, and other paths do not exist', async () => {
  const { send } = await open()
  for (const nobody of [subject('uid=anonymous,o=x', {}, 0), subject('uid=Anonymous,o=x')]) {
    expect((await send('GET', '/config', undefined, nobody)).status).toBe(401)
  }
  expect((await send('GET', '/other')).status).toBe(404)
  expect((await send('DELETE', '/user')).status).toBe(405)
})
