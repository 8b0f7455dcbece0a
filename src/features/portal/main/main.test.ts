import { describe, expect, test } from 'vitest'
import type { MainConfig } from '#features/portal/contract/main.ts'
import { type ServedReport, serveReport } from '#features/reports/report.ts'
import { Reports } from '#features/reports/report-endpoint.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Subject } from '#identity/subject.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { privateErrors } from '#sdk/api/json-answer.ts'
import { fakeSecretBox } from '#testing/login/fake-login-services.ts'
import { ann, link, openMain, org, outsider, person, someone, workflow } from '#testing/modules/main-fixture.ts'
import { absentStore } from '#testing/workflows/call-store.ts'

describe('config', () => {
  /** The list of portal.md 1.1; removing a field breaks existing pages. */
  const fields = `displayNameAttribute uidAttributeName frontPage canEditUser showPortalOrgs logoutURL enableApprovals
    attributes warnMinutesLeft requireReasons reasonIsList reasons startPage hidePages themePrimaryMain themePrimaryDark
    themePrimaryLight themeSecondaryMain themeSecondaryDark themeSecondaryLight headerTitle errorColor groupsAreJson
    groupsFields`.split(/\s+/)

  test.each(fields)('has %s', async (field) => {
    const { send } = await openMain()
    expect((await send('GET', '/config')).body).toHaveProperty([field])
  })

  test('shows labels and rules of the fields, with no-store', async () => {
    const { send } = await openMain({ params: { roleAttribute: 'roles', reasonIsList: 'true', reasons: ['a'] } })
    const { body, headers } = await send('GET', '/config')
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json; charset=utf-8' })
    expect(body).toMatchObject({
      roleAttribute: 'roles',
      reasons: ['a'],
      requireReasons: true,
      themePrimaryMain: '#3b5bdb',
      attributeNameList: ['uid', 'displayName', 'mail', 'team'],
      attributes: { team: { displayName: 'Team', type: 'list', values: [{ name: 'Red', value: 'red', num: 0 }, {}] } },
    } satisfies { [K in keyof MainConfig]?: unknown })
  })

  test('D24: no client sees names of workflows', async () => {
    const { send } = await openMain({ params: { jitWorkflow: 'make-person' } })
    const { text, body } = await send('GET', '/config')
    expect(text).not.toMatch(/make-person|save/)
    expect(body.createsUnknownUsers).toBe(true)
  })

  test('D18: the answer has nothing that a browser would execute', async () => {
    const { send, prepared } = await openMain()
    expect((await send('GET', '/config')).text).not.toMatch(/javascript|jsUris|function/i)
    expect(prepared.errors(new GatewayError('BAD_REQUEST', 'x'), 'r').headers['content-type']).toContain('json')
  })
})

describe('addresses', () => {
  test('the mount may end in /main or be above it', async () => {
    const { send } = await openMain({ mount: '/portal' })
    expect((await send('GET', '/main/config')).status).toBe(200)
    await expect(send('GET', '/config')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(send('GET', '/mainly/config')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('unknown ones are 404, other methods are 405 with the allowed ones, HEAD has no body', async () => {
    const { send } = await openMain()
    for (const path of ['', '/', '/config/', '/nothing', '/workflows/org/', '/requests/a/b', '/__proto__']) {
      await expect(send('GET', path)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
    await expect(send('POST', '/user', {})).rejects.toMatchObject({
      code: 'METHOD_NOT_ALLOWED',
      headers: { allow: 'GET, HEAD, PUT' },
    })
    await expect(send('DELETE', '/config')).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
    expect(await send('HEAD', '/config')).toMatchObject({ status: 200, text: '' })
    await expect(send('GET', '/approvals/%ff')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('failures have the shape that clients expect', () => {
    const problems = [{ pointer: '/0/name', detail: 'is required' }]
    const { body } = privateErrors(new GatewayError('BAD_REQUEST', 'secret', { publicText: 'No.', problems }), 'r-1')
    expect(JSON.parse(String(body))).toEqual({
      errors: ['No.', '/0/name is required'],
      code: 'BAD_REQUEST',
      requestId: 'r-1',
    })
  })
})

test('a user who has the name of callers without a login does not see their requests', async () => {
  const { send } = await openMain()
  await expect(send('GET', '/requests', undefined, someone('ANONYMOUS'))).rejects.toMatchObject({
    code: 'AUTH_REQUIRED',
  })
})

test('an anonymous caller sees at most links, and changes nothing', async () => {
  const { send, runs, calls } = await openMain({ portal: { urls: [link('wiki')] } })
  const nobody = { ...ann, level: 0 }
  for (const path of ['/config', '/orgs', '/urls', '/urls/org/root']) {
    expect((await send('GET', path, undefined, nobody)).status).toBe(200)
  }
  const personal = [
    '/user',
    '/requests',
    '/approvals',
    '/favorites',
    '/search?q=ab',
    '/admin/runs',
    '/reports/org/root',
  ]
  for (const path of [...personal, '/workflows/org/root', '/urls/org/other/x']) {
    await expect(send('GET', path, undefined, nobody)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  }
  for (const path of ['/user', '/workflows', '/urls']) {
    await expect(send('PUT', path, [], nobody)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  }
  expect([runs.calls, calls]).toEqual([[], []])
})

describe('orgs and links', () => {
  const orgs = [
    org('root'),
    org('hidden', { parent: 'root', rules: [] }),
    org('below', { parent: 'hidden' }),
    org('open', { parent: 'root' }),
  ]

  test('denied branches are hidden, with everything below them', async () => {
    const { send } = await openMain({ portal: { orgs } })
    const { body } = await send('GET', '/orgs')
    expect(body).toMatchObject({ id: 'root', name: 'Org root', subOrgs: [{ id: 'open', subOrgs: [] }] })
    expect(body.subOrgs).toHaveLength(1)
    expect((await send('GET', '/orgs', undefined, someone('guest', []))).body).toMatchObject({ id: '', subOrgs: [] })
  })

  test('several top orgs are below a root of their own', async () => {
    const { send } = await openMain({ portal: { orgs: [org('a'), org('b')] } })
    expect((await send('GET', '/orgs')).body).toMatchObject({ id: '', subOrgs: [{ id: 'a' }, { id: 'b' }] })
  })

  test('links are shown by their rules, and by org', async () => {
    const urls = [link('a', { org: 'open', icon: 'iVBORw0KGgo=' }), link('b'), link('c', { rules: [] })]
    const { send } = await openMain({ portal: { orgs, urls } })
    expect((await send('GET', '/urls')).body).toEqual([
      { name: 'a', label: 'Link a', org: 'open', url: 'https://a.example.com/', icon: 'iVBORw0KGgo=' },
      { name: 'b', label: 'Link b', org: '', url: 'https://b.example.com/', icon: '' },
    ])
    expect((await send('GET', '/urls/org/root')).body).toMatchObject([{ name: 'b' }])
    for (const id of ['hidden', 'below', 'absent']) {
      await expect(send('GET', `/urls/org/${id}`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  })

  test('equal rules are evaluated once', async () => {
    let asked = 0
    const urls = Array.from({ length: 50 }, (_, i) => link(`l${i}`))
    const { send } = await openMain({
      portal: { urls },
      authorize: () => {
        asked++
        return { allowed: true, verdicts: [] }
      },
    })
    expect((await send('GET', '/urls')).body).toHaveLength(50)
    expect(asked).toBe(1)
  })
})

describe('search', () => {
  const portal = {
    urls: [link('wiki'), link('hidden-wiki', { rules: [] })],
    workflows: [workflow('wiki-admin'), workflow('wiki-internal', { inList: false }), workflow('other')],
  }

  test('finds what the caller sees, and users only for callers that may request for others', async () => {
    const { send } = await openMain({ portal })
    const { body } = await send('GET', '/search?q=WIKI')
    expect(body).toMatchObject({
      workflows: [{ name: 'wiki-admin' }],
      urls: [{ name: 'wiki' }],
      people: [],
      more: false,
    })
    expect(body.workflows).toHaveLength(1)
    expect(body.urls).toHaveLength(1)
    await expect(send('GET', '/search?q=bob&kind=person')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    const allowed = await openMain({ portal, params: { canDelegate: 'YES' } })
    expect((await allowed.send('GET', '/search?q=bob&kind=person')).body).toMatchObject({
      workflows: [],
      people: [{ uid: 'bob', displayName: 'bob Doe' }],
    })
  })

  test('is bounded, and treats the typed text as plain text', async () => {
    const entries = Array.from({ length: 60 }, (_, i) => person(`user${i}`))
    const { send, host } = await openMain({ entries, params: { canDelegate: 'YES' } })
    const { body } = await send('GET', '/search?q=user')
    expect(body.people).toHaveLength(20)
    expect(body.more).toBe(true)
    expect(host.searches.at(-1)?.limit).toBe(21)
    expect((await send('GET', `/search?q=${encodeURIComponent('*)(uid=*')}`)).body.people).toEqual([])
    for (const query of ['', '?q=a', `?q=${'x'.repeat(101)}`, '?q=ab&q=cd', '?q=ab&kind=all', '?q=a%00b', '?qq=ab']) {
      await expect(send('GET', `/search${query}`)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })
})

describe('favorites and recent', () => {
  const portal = { urls: [link('wiki'), link('hidden', { rules: [] })] }

  test('are marked, listed with labels, and removed', async () => {
    const { send } = await openMain({ portal })
    expect((await send('PUT', '/favorites/url/wiki')).status).toBe(204)
    await send('PUT', '/favorites/workflow/join')
    await send('POST', '/recent', { kind: 'url', name: 'wiki' })
    expect((await send('GET', '/favorites')).body).toMatchObject({
      favorites: [
        { kind: 'url', name: 'wiki', label: 'Link wiki' },
        { kind: 'workflow', name: 'join' },
      ],
      recent: [{ kind: 'url', name: 'wiki' }],
    })
    expect((await send('GET', '/favorites', undefined, someone('guest', []))).body).toEqual({
      favorites: [],
      recent: [],
    })
    await send('DELETE', '/favorites/url/wiki')
    expect((await send('GET', '/favorites')).body.favorites).toHaveLength(1)
  })

  test('items that the caller does not see cannot be marked, and disappear from the list', async () => {
    const { send, memory } = await openMain({ portal })
    for (const path of ['url/hidden', 'url/absent', 'person/bob', 'url/%00', 'workflow/wiki']) {
      await expect(send('PUT', `/favorites/${path}`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
    await expect(send('POST', '/recent', { kind: 'url', name: 'hidden' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(send('POST', '/recent', { kind: 'url' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await memory.addFavorite({ identity: ann.identity, login: 'ann' }, { kind: 'url', name: 'hidden' })
    expect((await send('GET', '/favorites')).body.favorites).toEqual([])
  })
})

describe('administration', () => {
  const params = { administrators: 'filter;(groups=admins)' }

  test('no spelling of its paths leads around that', async () => {
    const { send } = await openMain({ params })
    for (const path of ['/%61dmin/runs', '/admi%6E/people', '/%61dmin/audit']) {
      await expect(send('GET', path)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  })

  test('is for administrators, and for no one if none are configured', async () => {
    const closed = await openMain()
    await expect(closed.send('GET', '/admin/runs')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    const { send, runs } = await openMain({ params, readJournal: async () => ({ entries: [] }) })
    const admin = someone('root', ['people', 'admins'])
    for (const path of [
      '/admin/runs',
      '/admin/incidents',
      '/admin/scim-journal',
      '/admin/statistics',
      '/admin/nothing',
    ]) {
      await expect(send('GET', path)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    }
    const stuck = runs.add({ state: 'incident', incident: { task: 'w:0', code: 'TARGET_FAILED', message: 'no' } })
    expect((await send('GET', '/config', undefined, admin)).body.administrator).toBe(true)
    expect((await send('GET', '/config')).body.administrator).toBe(false)
    const { body, headers } = await send('GET', '/admin/incidents', undefined, admin)
    expect(body.runs).toMatchObject([{ id: stuck.head.id, incident: { message: 'no' } }])
    expect(headers['cache-control']).toBe('no-store')
    expect((await send('GET', '/admin/scim-journal', undefined, admin)).body).toEqual({ entries: [] })
    await expect(send('GET', '/admin/nothing', undefined, admin)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('changes nothing for administrators who are not operators', async () => {
    const root = someone('root', ['people', 'admins'])
    const operator = someone('olga', ['people', 'admins', 'operators'])
    const outsider = someone('otto', ['people', 'operators'])
    const readOnly = await openMain({ params })
    const kept = readOnly.runs.add({ state: 'incident' })
    for (const caller of [root, operator]) {
      const retry = readOnly.send('POST', `/admin/runs/${kept.head.id}/retry`, { fence: 1 }, caller)
      await expect(retry).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    }
    const { send, runs } = await openMain({ params: { ...params, operators: 'filter;(groups=operators)' } })
    const stuck = runs.add({ state: 'incident' })
    const retry = (caller: Subject) => send('POST', `/admin/runs/${stuck.head.id}/retry`, { fence: 1 }, caller)
    await expect(retry(root)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    await expect(retry(outsider)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    expect(runs.interventions).toEqual([])
    await retry(operator)
    expect(runs.interventions).toMatchObject([{ action: 'retry', by: 'olga' }])
    const seen = async (caller: Subject) => (await send('GET', '/config', undefined, caller)).body
    expect(await seen(root)).toMatchObject({ administrator: true, operator: false })
    expect(await seen(outsider)).toMatchObject({ administrator: false, operator: false })
    expect(await seen(operator)).toMatchObject({ administrator: true, operator: true })
  })
})

describe('reports', () => {
  test('are called with the orgs that the caller sees', async () => {
    const report = (orgId: string): ServedReport =>
      serveReport({ name: `of ${orgId}`, orgId, dataFields: ['id'], sql: 'select id from report_requests' })
    const { send } = await openMain({
      portal: { orgs: [org('root'), org('hidden', { rules: [] })] },
      reports: new Reports({
        reports: [report('root'), report('hidden')],
        store: absentStore('database of reports'),
        secrets: fakeSecretBox('report'),
        clock: systemClock,
        log: silentLogger,
      }),
    })
    expect((await send('GET', '/reports/org/root')).body.reports).toMatchObject([{ name: 'of root' }])
    const hidden = send('GET', '/reports/org/hidden')
    await expect(hidden).rejects.toMatchObject({ code: 'NOT_FOUND', message: `no org "hidden" for "${ann.uid}"` })
  })

  test('are 404 if there are none', async () => {
    const { send } = await openMain()
    await expect(send('GET', '/reports/org/root')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

const noAccess = {
  ofSubject: async () => [],
  endedOf: async () => [],
  groupOrigins: async () => new Map(),
}

test('only shows access to a caller whose login no other user has', async () => {
  const { send } = await openMain({ grants: noAccess })
  await expect(send('GET', '/access', undefined, outsider('bob'))).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  expect((await send('GET', '/access', undefined, outsider('guest'))).body).toEqual({
    access: [],
    groups: [],
    ended: [],
  })
})

test('a portal that identifies users by another attribute rejects callers whose value is the login of another user', async () => {
  const entries = [person('ann', { number: ['7'] }), person('bob', { number: ['8'] })]
  const { send } = await openMain({ params: { uidAttributeName: 'number' }, entries, grants: noAccess })
  const access = (who: Subject) => send('GET', '/access', undefined, who)
  const as = (who: Subject, number: string): Subject => {
    const attributes = Attributes.from({ groups: ['people'], number: [number] })
    return { ...who, attributes }
  }
  expect((await access(as(ann, '7'))).status).toBe(200)
  expect((await access(as(outsider('x'), '9'))).status).toBe(200)
  for (const number of ['8', 'bob']) {
    await expect(access(as(ann, number))).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    await expect(access(as(outsider('x'), number))).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  }
})
