import { describe, expect, test } from 'vitest'
import { AuditStore } from '#audit/store/audit-store.ts'
import type { CookieConfig } from '#config/configuration/configuration.ts'
import type { SecondFactors } from '#features/account/second-factors/second-factors.ts'
import {
  consoleGroupDetails,
  consolePersonDetails,
  personFactors,
  personSessions,
} from '#features/portal/contract/console-people.ts'
import type { DirectorySearch } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { entryIdentity, type Identity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { systemClock } from '#kernel/clock.ts'
import { SessionStore } from '#requests/sessions/session-store.ts'
import { createSessionAccess, Sessions } from '#requests/sessions/sessions.ts'
import type { SessionAccess } from '#sdk/auth/session.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { fakeDirectory } from '#testing/login/fake-directory.ts'
import { fakeSecretBox } from '#testing/login/fake-login-services.ts'
import { memorySecondFactors } from '#testing/login/memory-second-factors.ts'
import { subject } from '#testing/login/subjects.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { type MainOptions, openMain, person, someone } from '#testing/modules/main-fixture.ts'
import { MemoryPeople } from '#testing/workflows/memory-people.ts'

const cookies: CookieConfig = {
  name: 'session',
  domain: undefined,
  secure: true,
  httpOnly: true,
  sameSite: 'Lax',
  idleSeconds: 600,
  logoutUri: '/logout',
}

/** Sessions on a database in memory, with the engine's interface for modules. */
function memorySessions(database = memoryDatabase()) {
  const sessions = new Sessions(new SessionStore(database), systemClock, fakeSecretBox())
  const access: SessionAccess = createSessionAccess(sessions, { applications: [] })
  /** Logs the user in at the portal; returns the public id of the session. */
  const logIn = async (identity: Identity, login: string): Promise<string> => {
    const request = fakeRequest({ url: 'https://portal.test/', headers: { 'user-agent': 'Browser/1' } })
    const who = { ...subject('o=x'), identity, uid: login }
    const started = await sessions.start({ name: 'portal', cookies }, { request, subject: who, before: undefined })
    return started.session.handle.id
  }
  return { access, logIn }
}

const admin = someone('root', ['people', 'admins'])
const idOf = (login: string): Identity => entryIdentity('people', `id of ${login}`)
const path = (login: string, rest = ''): string => `/admin/people/${encodeURIComponent(idOf(login))}${rest}`
const reasoned = { reason: 'left the company' }

/** Three users, of whom ada is in two groups and olga is the operator. */
async function open(options: MainOptions = {}) {
  const people = new MemoryPeople()
    .put('ada', ['crew', 'admins'], { displayName: ['Ada Lovelace'], userPassword: ['S3CR3T'], title: ['Countess'] })
    .put('bob', ['crew'], { active: ['false'], displayName: ['Bob <b>'] })
    .put('olga', [], { displayName: ['Olga'] })
  const database = memoryDatabase()
  const sessions = memorySessions(database)
  const secondFactors = memorySecondFactors(database)
  const main = await openMain({
    directory: people.directory,
    sessions: sessions.access,
    secondFactors,
    ...options,
    params: {
      administrators: ['filter;(groups=admins)', 'filter;(groups=operators)'],
      operators: 'filter;(groups=operators)',
      deactivateWorkflow: 'leave',
      ...options.params,
    },
  })
  const olga: Subject = { ...someone('olga', ['people', 'operators']), identity: idOf('olga') }
  const get = (where: string, who = admin) => main.send('GET', where, undefined, who)
  const post = (where: string, body: unknown = reasoned, who = olga) => main.send('POST', where, body, who)
  const audit = async () => (await new AuditStore(database).list({ limit: 50 })).rows
  return { ...main, people, sessions, secondFactors, get, post, audit, olga }
}

const addPhone = (factors: SecondFactors, login: string) =>
  factors.add(
    { ...someone(login), identity: idOf(login) },
    { id: `phone of ${login}`, kind: 'totp', name: 'Phone', secret: { secret: 'S3CR3T' }, counter: 0 },
    { requestId: 'r' },
  )

describe('the list of users', () => {
  test('is for administrators alone', async () => {
    const { send, get } = await open()
    await expect(send('GET', '/admin/people')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    await expect(send('GET', path('ada'))).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    expect((await get('/admin/people')).headers['cache-control']).toBe('no-store')
  })

  test.each([
    ['AD', ['ada']],
    ['ada lov', ['ada']],
    ['bob@', ['bob']],
    ['ob', []],
    ['*', []],
    [')(uid=*', []],
    ['', ['ada', 'bob', 'olga']],
  ])('finds "%s" at the start of login, display name and mail address', async (q, logins) => {
    const { get } = await open()
    const { body } = await get(`/admin/people?q=${encodeURIComponent(q)}`)
    expect(body.people.map(({ login }: { login: string }) => login)).toEqual(logins)
  })

  test('has pages, says who is deactivated, and names users by identity', async () => {
    const { get } = await open()
    const { body } = await get('/admin/people?limit=2')
    expect(body.people).toEqual([
      { id: idOf('ada'), login: 'ada', displayName: 'Ada Lovelace', mail: 'ada@x.org', deactivated: false },
      { id: idOf('bob'), login: 'bob', displayName: 'Bob <b>', mail: 'bob@x.org', deactivated: true },
    ])
    const rest = await get(`/admin/people?limit=2&after=${encodeURIComponent(body.next)}`)
    expect(rest.body).toMatchObject({ people: [{ login: 'olga' }] })
    expect(rest.body).not.toHaveProperty('next')
  })

  test('is exported to a file, in which a name is never a formula', async () => {
    const { get, people } = await open()
    people.put('eve', [], { displayName: ['=cmd|calc'] })
    const { text, headers } = await get('/admin/people?format=csv&q=e')
    expect(headers?.['content-disposition']).toBe('attachment; filename="people.csv"')
    const [head, row, ...more] = text.trim().split('\r\n')
    expect(head).toBe('login,displayName,mail,deactivated,id')
    expect(row).toMatch(/^eve,"?'=cmd\|calc"?,eve@x\.org,false,/)
    expect(more).toEqual([])
  })

  test('rejects a position that no page returned, an unknown parameter and a long text', async () => {
    const { get } = await open()
    for (const query of ['after=1', 'login=ada', `q=${'x'.repeat(257)}`, 'q=%00', 'limit=0', 'format=xml']) {
      await expect(get(`/admin/people?${query}`)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })

  test('fails while the directory does not answer', async () => {
    const { get, people } = await open()
    people.failure = new Error('down')
    await expect(get('/admin/people')).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    await expect(get(path('ada'))).rejects.toMatchObject({ code: 'TARGET_FAILED' })
  })
})

describe('one user', () => {
  test('is found by id and by login, with attributes that are not secret', async () => {
    const { get } = await open()
    for (const where of [path('ada'), '/admin/people/ADA']) {
      const { body, text } = await get(where)
      expect(consolePersonDetails.strict().parse(body)).toMatchObject({
        id: idOf('ada'),
        login: 'ada',
        own: false,
        canDeactivate: true,
        dn: 'uid=ada,ou=people,o=Tremolo',
      })
      expect(text).not.toContain('S3CR3T')
      expect(body.attributes).toContainEqual({ name: 'userPassword', values: [], hidden: true })
      expect(body.attributes).toContainEqual({ name: 'title', values: ['Countess'] })
    }
  })

  test('has long values and many values cut, and says so', async () => {
    const { get, people } = await open()
    people.put('long', [], { note: ['x'.repeat(1001)], tag: Array.from({ length: 51 }, (_, i) => `t${i}`) })
    const { attributes } = (await get(path('long'))).body
    const named = (name: string) => attributes.find((one: { name: string }) => one.name === name)
    expect(named('note')).toEqual({ name: 'note', values: ['x'.repeat(1000)], cut: true })
    expect(named('tag')).toMatchObject({ cut: true, values: { length: 50 } })
  })

  test.each(['nobody', entryIdentity('people', 'none'), entryIdentity('people', 'id of crew'), 'entry:%zz:x', 'a/b'])(
    'is not found as %s',
    async (id) => {
      const { get } = await open()
      await expect(get(`/admin/people/${encodeURIComponent(id)}`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    },
  )

  test('the login of an identity that does not exist is not another user', async () => {
    const { get, people } = await open()
    const id = entryIdentity('people', 'gone')
    people.put(id)
    await expect(get(`/admin/people/${encodeURIComponent(id)}`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('has groups, with pages', async () => {
    const { get } = await open()
    const { body } = await get(path('ada', '/groups'))
    expect(body.groups.map(({ name }: { name: string }) => name).sort()).toEqual(['admins', 'crew'])
    const first = await get(path('ada', '/groups?limit=1'))
    expect(first.body).toMatchObject({ groups: [{}], next: expect.any(String) })
    expect((await get(path('olga', '/groups'))).body).toEqual({ groups: [] })
  })

  test('has sessions and second factors of the identity, without secrets', async () => {
    const { get, sessions, secondFactors } = await open()
    const session = await sessions.logIn(idOf('ada'), 'ada')
    await sessions.logIn(entryIdentity('elsewhere', 'ada'), 'ada')
    await addPhone(secondFactors, 'ada')
    const shown = await get(path('ada', '/sessions'))
    expect(personSessions.strict().parse(shown.body).sessions).toMatchObject([{ id: session, application: 'portal' }])
    const factors = await get(path('ada', '/factors'))
    expect(personFactors.strict().parse(factors.body)).toMatchObject({
      factors: [{ kind: 'totp', name: 'Phone' }],
      recoveryCodes: 10,
    })
    expect(factors.text).not.toContain('S3CR3T')
    expect((await get(path('bob', '/factors'))).body).toEqual({ factors: [], recoveryCodes: 0 })
  })

  test('has the runs about the identity, not those about another user with the same login', async () => {
    const { get, runs } = await open()
    const own = runs.add({ head: { subject: 'ada', who: { subject: idOf('ada') } } })
    runs.add({ head: { subject: 'ada', who: { subject: entryIdentity('elsewhere', 'ada') } } })
    const { body } = await get(path('ada', '/runs'))
    expect(body.runs.map(({ id }: { id: string }) => id)).toEqual([own.head.id])
  })
})

describe('changes by operators', () => {
  test.each(['/sessions/end', '/factors/reset', '/deactivate'])(
    '%s needs an operator, a reason and an id',
    async (rest) => {
      const { post, olga, audit, runs } = await open()
      const where = path('ada', rest)
      await expect(post(where, reasoned, admin)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
      for (const body of [{}, { reason: '' }, { reason: ' ' }, { reason: 'a\0' }, { reason: 'x', more: 1 }]) {
        await expect(post(where, body)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      }
      await expect(post(`/admin/people/ada${rest}`)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      await expect(post(path('nobody', rest))).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(post(path('olga', rest), reasoned, olga)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
      expect([await audit(), runs.calls]).toEqual([[], []])
    },
  )

  test('end one session or all, with audit entries, and say how many', async () => {
    const { post, sessions, audit } = await open()
    const ids = [await sessions.logIn(idOf('ada'), 'ada'), await sessions.logIn(idOf('ada'), 'ada')]
    const bobs = await sessions.logIn(idOf('bob'), 'bob')
    const where = path('ada', '/sessions/end')
    expect((await post(where, { ...reasoned, session: bobs })).body).toEqual({ ended: 0 })
    expect((await post(where, { ...reasoned, session: ids[0] })).body).toEqual({ ended: 1 })
    expect((await post(where)).body).toEqual({ ended: 1 })
    expect((await post(where)).body).toEqual({ ended: 0 })
    expect(await sessions.access.ofUser(idOf('bob'))).toHaveLength(1)
    const rows = await audit()
    expect(rows.map(({ value }) => value).sort()).toEqual([...ids].sort())
    for (const row of rows) {
      expect(row).toMatchObject({ requestor: 'olga', subject: 'ada', kind: 'session', action: 'delete', ...reasoned })
    }
  })

  test('reset second factors, with an audit entry, and say how many', async () => {
    const { post, secondFactors, audit } = await open()
    await addPhone(secondFactors, 'ada')
    await addPhone(secondFactors, 'bob')
    const where = path('ada', '/factors/reset')
    expect((await post(where)).body).toEqual({ removed: 1 })
    expect((await post(where)).body).toEqual({ removed: 0 })
    const [bob] = await secondFactors.of({ ...someone('bob'), identity: idOf('bob') })
    expect(bob).toMatchObject({ name: 'Phone' })
    const resets = (await audit()).filter(({ requestor }) => requestor === 'olga')
    expect(resets).toMatchObject([{ subject: 'ada', attribute: 'second factor', value: 'all', ...reasoned }])
  })

  test('start the workflow that deactivates, in the name of the operator', async () => {
    const { post, runs, olga } = await open()
    const { status, body } = await post(path('ada', '/deactivate'))
    expect([status, body]).toEqual([202, { run: expect.any(String) }])
    expect(runs.calls).toMatchObject([
      {
        head: {
          workflow: 'leave',
          requester: 'olga',
          who: { requester: olga.identity, subject: idOf('ada') },
          ...reasoned,
        },
        user: { userID: 'ada' },
        asynchronous: true,
        kept: true,
      },
    ])
    await expect(post(path('bob', '/deactivate'))).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(runs.calls).toHaveLength(1)
  })

  test('do not deactivate one of two users with the same login, since the workflow could reach the other', async () => {
    const both = ['one', 'two'].map((id) => ({
      ...person('sam'),
      dn: Dn.of(['uid', 'sam'], ['ou', id], ['o', 'x']),
      id,
    }))
    const search = async ({ base, filter, limit }: DirectorySearch) =>
      both
        .map(directoryEntry)
        .filter(({ dn, attributes }) => dn.isWithin(base) && matches(filter, attributes))
        .slice(0, limit)
    const { post, runs } = await open({ directory: fakeDirectory({ search, isMember: async () => false }) })
    const sam = `/admin/people/${encodeURIComponent(entryIdentity('test', 'two'))}`
    await expect(post(`${sam}/deactivate`)).rejects.toMatchObject({
      code: 'CONFLICT',
      publicText: expect.stringContaining('same login'),
    })
    expect(runs.calls).toEqual([])
  })

  test('do not offer to deactivate without a workflow', async () => {
    const { post, get, runs } = await open({ params: { deactivateWorkflow: '' } })
    expect((await get(path('ada'))).body.canDeactivate).toBe(false)
    await expect(post(path('ada', '/deactivate'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(runs.calls).toEqual([])
  })
})

describe('groups', () => {
  const groupPath = (name: string, rest = ''): string =>
    `/admin/groups/${encodeURIComponent(entryIdentity('people', `id of ${name}`))}${rest}`

  test('are listed by the start of their names, without users', async () => {
    const { get } = await open()
    const names = async (query: string) =>
      (await get(`/admin/groups${query}`)).body.groups.map(({ name }: { name: string }) => name)
    expect((await names('')).sort()).toEqual(['admins', 'crew'])
    expect(await names('?q=CR')).toEqual(['crew'])
    expect(await names('?q=rew')).toEqual([])
    await expect(get('/admin/groups?name=crew')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('one is found by id and by name, without its members', async () => {
    const { get, people } = await open()
    people.putGroup('crew', { description: ['All <i>hands</i>'] })
    for (const where of [groupPath('crew'), '/admin/groups/Crew']) {
      const details = consoleGroupDetails.strict().parse((await get(where)).body)
      expect(details).toMatchObject({ name: 'crew', description: 'All <i>hands</i>' })
      expect(details.attributes.map(({ name }) => name)).not.toContain('uniqueMember')
    }
    for (const where of ['/admin/groups/none', path('ada').replace('people/', 'groups/')]) {
      await expect(get(where)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  })

  test('have members, with pages', async () => {
    const { get } = await open()
    const first = await get(groupPath('crew', '/members?limit=1'))
    expect(first.body).toEqual({
      members: [
        {
          dn: 'uid=ada,ou=people,o=Tremolo',
          kind: 'user',
          id: idOf('ada'),
          name: 'ada',
          displayName: 'Ada Lovelace',
        },
      ],
      next: '1',
    })
    const second = await get(groupPath('crew', '/members?limit=1&after=1'))
    expect(second.body).toMatchObject({ members: [{ name: 'bob' }] })
    expect(second.body).not.toHaveProperty('next')
    for (const after of ['x', '-1', '1e9']) {
      await expect(get(groupPath('crew', `/members?after=${after}`))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })
})
