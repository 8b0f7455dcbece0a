import { describe, expect, test } from 'vitest'
import type { CookieConfig } from '#config/configuration/configuration.ts'
import { Attributes } from '#identity/attributes.ts'
import { directoryLink } from '#identity/directory.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import type { JsonObject } from '#kernel/json.ts'
import { fakeSecretBox } from '#testing/login/fake-login-services.ts'
import { memorySessionStore } from '#testing/login/memory-session-store.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { type LiveSession, type SessionStart, Sessions } from './sessions.ts'

const cookies: CookieConfig = {
  name: 'tremolosession',
  domain: undefined,
  secure: true,
  httpOnly: true,
  sameSite: 'Lax',
  idleSeconds: 900,
  logoutUri: '/logout',
}
const portal = { name: 'portal', cookies }
const other = { name: 'other', cookies }
const ada = subject('uid=ada,o=Tremolo', { mail: ['ada@corp.com'] })

function setUp() {
  let now = new Date('2026-01-01T00:00:00Z')
  const store = memorySessionStore()
  const sessions = new Sessions(store, () => now, fakeSecretBox())
  const pass = (seconds: number) => {
    now = new Date(now.getTime() + seconds * 1000)
  }
  return { store, sessions, pass }
}

const request = fakeRequest({ url: 'https://portal.test/', headers: { 'user-agent': 'Browser/1' } })
const carrying = (setCookie: string, host = 'portal.test') =>
  fakeRequest({ url: `https://${host}/`, headers: { cookie: setCookie.split(';')[0] ?? '' } })

async function begin(sessions: Sessions, before: LiveSession | undefined, more: Partial<SessionStart> = {}) {
  return (await sessions.start(portal, { request, subject: ada, before, ...more })).cookie
}

describe('Sessions', () => {
  test('a started session is found by its cookie, with the same subject each time', async () => {
    const { sessions } = setUp()
    const cookie = await begin(sessions, undefined)
    const first = await sessions.find(portal, carrying(cookie))
    expect(first?.subject).toMatchObject({ uid: 'ada', level: 20 })
    expect(first?.subject.dn.equals(ada.dn)).toBe(true)
    expect(first?.subject.attributes.first('mail')).toBe('ada@corp.com')
    expect((await sessions.find(portal, carrying(cookie)))?.subject).toBe(first?.subject)
  })

  test('the directory link of a user is stored and restored', async () => {
    const { sessions, store } = setUp()
    const filter = parseFilter('(&(|(uid=a\\2ada\\29)(mail=*@corp.com))(!(ou:caseExactMatch:=X)))')
    const added = Attributes.from({ locale: ['en', 'de'] })
    const link = directoryLink(
      { dn: ada.dn, attributes: Attributes.from({ entryUUID: ['7'] }) },
      { filter, uidAttr: 'uid', added },
    )
    const renewals = [{ chain: 'c', link: 1, name: 'm' }]
    const cookie = await begin(sessions, undefined, { subject: { ...ada, link }, renewals })
    const other = new Sessions(store, () => new Date('2026-01-01T00:00:01Z'), fakeSecretBox())
    const found = await other.find(portal, carrying(cookie))
    expect(found?.subject.link).toMatchObject({ id: '7', uidAttr: 'uid' })
    expect(found?.subject.link?.filter).toEqual(filter)
    expect(found?.subject.link?.dn.equals(ada.dn)).toBe(true)
    expect(found?.subject.link?.added.toObject()).toEqual({ locale: ['en', 'de'] })
    expect(found?.renewals).toEqual(renewals)
  })

  test.each([
    [{ link: 'x' }, {}],
    [{ link: { dn: 'uid=ada', filter: '(uid=ada)', uidAttr: 'uid' } }, {}],
    [{}, { renewals: [{ chain: 'c' }] }],
  ])('a session with %j and %j is invalid: no user could be looked up', async (ofSubject, ofData) => {
    const { sessions, store } = setUp()
    const cookie = await begin(sessions, undefined)
    for (const { id, data } of await store.rows()) {
      const stored = data['subject'] as JsonObject
      await store.replaceData({ id, data: { ...data, ...ofData, subject: { ...stored, ...ofSubject } } })
    }
    const other = new Sessions(store, () => new Date('2026-01-01T00:00:01Z'), fakeSecretBox())
    expect(await other.find(portal, carrying(cookie))).toBeUndefined()
  })

  test('the store never sees the secret', async () => {
    const { sessions, store } = setUp()
    const cookie = await begin(sessions, undefined)
    const secret = /=([\w-]+);/.exec(cookie)?.[1] ?? ''
    expect(secret).toHaveLength(43)
    expect(JSON.stringify(await store.rows())).not.toContain(secret)
  })

  test('the cookie is bound to the host, http only and same-site', async () => {
    const { sessions } = setUp()
    const cookie = await begin(sessions, undefined)
    expect(cookie).toMatch(/^__Host-tremolosession=[\w-]{43}; Path=\/; SameSite=Lax; Secure; HttpOnly$/)
  })

  test('applications with the same cookie on one host share a session, and no others', async () => {
    const { sessions } = setUp()
    const cookie = await begin(sessions, undefined)
    expect(await sessions.find(other, carrying(cookie))).toBeDefined()
    expect(await sessions.find(portal, carrying(cookie, 'elsewhere.test'))).toBeUndefined()
    const renamed = { name: 'third', cookies: { ...cookies, name: 'thirdsession' } }
    const asThird = cookie.replace('tremolosession', 'thirdsession')
    expect(await sessions.find(renamed, carrying(asThird))).toBeUndefined()
    const domain = { name: 'wide', cookies: { ...cookies, domain: 'test' } }
    const asWide = cookie.replace('__Host-', '')
    expect(await sessions.find(domain, carrying(asWide))).toBeUndefined()
  })

  test('slots are encrypted, survive a step-up, and belong to one session', async () => {
    const { sessions, store } = setUp()
    const first = await sessions.find(portal, carrying(await begin(sessions, undefined)))
    await first?.handle.write('auth.Test', { token: 'very-secret' })
    expect(JSON.stringify(await store.rows())).not.toContain('very-secret')
    expect(await first?.handle.read('auth.Test')).toEqual({ token: 'very-secret' })
    expect(await first?.handle.read('auth.Other')).toBeUndefined()
    const stronger = { ...ada, level: 50 }
    const second = await sessions.start(portal, { request, subject: stronger, before: first })
    expect(second.session.handle.id).toBe(first?.handle.id)
    expect(second.session.handle.level).toBe(50)
    expect(await second.session.handle.read('auth.Test')).toEqual({ token: 'very-secret' })
    const grace = subject('uid=grace,o=Tremolo')
    const third = await sessions.start(portal, { request, subject: grace, before: second.session })
    expect(third.session.handle.id).not.toBe(first?.handle.id)
    expect(await third.session.handle.read('auth.Test')).toBeUndefined()
    expect(await second.session.handle.read('auth.Test')).toBeUndefined()
  })

  test("a slot moved to another session can't be decrypted", async () => {
    const { sessions, store } = setUp()
    const one = await sessions.start(portal, { request, subject: ada, before: undefined })
    const two = await sessions.start(portal, { request, subject: ada, before: undefined })
    await one.session.handle.write('a', 'secret')
    const [from, to] = await store.rows()
    if (from === undefined || to === undefined) throw new Error('two were started')
    const slots = [from.data['slots'], to.data['slots']]
    await store.replaceData({ id: from.id, data: { ...from.data, slots: slots[1] ?? {} } })
    await store.replaceData({ id: to.id, data: { ...to.data, slots: slots[0] ?? {} } })
    await expect(two.session.handle.read('a')).rejects.toMatchObject({ code: 'INTERNAL' })
  })

  test.each(['__proto__', 'constructor', '', 'a b', 'x'.repeat(101)])("a slot can't be named %j", async (slot) => {
    const { sessions } = setUp()
    const { session } = await sessions.start(portal, { request, subject: ada, before: undefined })
    await expect(session.handle.write(slot, 1)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('a slot has a limit', async () => {
    const { sessions } = setUp()
    const { session } = await sessions.start(portal, { request, subject: ada, before: undefined })
    await expect(session.handle.write('a', 'x'.repeat(65_537))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('a step-up does not extend a session', async () => {
    const { sessions, pass } = setUp()
    let cookie = await begin(sessions, undefined)
    for (let i = 0; i < 71; i++) {
      pass(600)
      cookie = await begin(sessions, await sessions.find(portal, carrying(cookie)))
    }
    pass(601)
    expect(await sessions.find(portal, carrying(cookie))).toBeUndefined()
  })

  test('a user sees their sessions, and ends one, the others, or all', async () => {
    const { sessions, pass } = setUp()
    const one = await sessions.start(portal, { request, subject: ada, before: undefined })
    pass(10)
    const two = await sessions.start(other, { request, subject: ada, before: undefined })
    const grace = subject('uid=grace,o=Tremolo')
    await sessions.start(portal, { request, subject: grace, before: undefined })
    const listed = await sessions.ofOwner(ada.identity)
    expect(listed.map(({ id, application, agent, level }) => ({ id, application, agent, level }))).toEqual([
      { id: two.session.handle.id, application: 'other', agent: 'Browser/1', level: 20 },
      { id: one.session.handle.id, application: 'portal', agent: 'Browser/1', level: 20 },
    ])
    expect(await sessions.endOne(grace.identity, one.session.handle.id)).toBe(false)
    expect(await sessions.endAll(ada.identity, two.session.handle.id)).toBe(1)
    expect(await sessions.find(portal, carrying(one.cookie))).toBeUndefined()
    expect(await sessions.findPublic(two.session.handle.id)).toBeDefined()
    expect(await sessions.endOne(ada.identity, two.session.handle.id)).toBe(true)
    expect(await sessions.ofOwner(ada.identity)).toEqual([])
    expect(await sessions.ofOwner(grace.identity)).toHaveLength(1)
  })

  test('a marked session ends on request from outside', async () => {
    const { sessions } = setUp()
    const marked = await begin(sessions, undefined, { contribution: { marks: ['issuer sid 1'] } })
    const unmarked = await begin(sessions, undefined)
    expect(await sessions.endMarked('issuer sid 2')).toBe(0)
    expect(await sessions.endMarked('issuer sid 1')).toBe(1)
    expect(await sessions.find(portal, carrying(marked))).toBeUndefined()
    expect(await sessions.find(portal, carrying(unmarked))).toBeDefined()
  })

  test("reading a session's expiry does not extend it", async () => {
    const { sessions, pass } = setUp()
    const cookie = await begin(sessions, undefined)
    for (let i = 0; i < 8; i++) {
      pass(100)
      expect(await sessions.millisLeft(portal, carrying(cookie))).toBe(900_000 - (i + 1) * 100_000)
      expect(await sessions.find(portal, carrying(cookie), { use: false })).toBeDefined()
    }
    pass(101)
    expect(await sessions.millisLeft(portal, carrying(cookie))).toBeUndefined()
  })

  test('expires after its idle time, not while it is used, and in any case after twelve hours', async () => {
    const { sessions, pass } = setUp()
    const cookie = await begin(sessions, undefined)
    for (let i = 0; i < 71; i++) {
      pass(600)
      expect(await sessions.find(portal, carrying(cookie))).toBeDefined()
    }
    pass(601)
    expect(await sessions.find(portal, carrying(cookie))).toBeUndefined()
    const idle = await begin(sessions, undefined)
    pass(901)
    expect(await sessions.find(portal, carrying(idle))).toBeUndefined()
  })

  test('a companion session outlives the one it started with, for as long as it is used, and ends like any other', async () => {
    const { sessions, pass } = setUp()
    const companion = { id: 'companion-1', application: 'issuer', idleSeconds: 60 }
    const renewals = [{ chain: 'c', link: 1, name: 'm' }]
    const more = { contribution: { companions: [companion] }, renewals }
    const { session } = await sessions.start(portal, { request, subject: ada, before: undefined, ...more })
    await sessions.end(session)
    expect(await sessions.findPublic('companion-1')).toMatchObject({ subject: { uid: 'ada' }, renewals })
    expect(await sessions.ofOwner(ada.identity)).toMatchObject([{ id: 'companion-1', application: 'issuer' }])
    for (let i = 0; i < 10; i++) {
      pass(50)
      await sessions.useCompanion('companion-1')
    }
    expect(await sessions.findPublic('companion-1')).toBeDefined()
    pass(61)
    expect(await sessions.findPublic('companion-1')).toBeUndefined()

    await sessions.startCompanions({ request, subject: ada, companions: [{ ...companion, idleSeconds: 0 }] })
    for (let i = 0; i < 71; i++) {
      pass(600)
      await sessions.useCompanion('companion-1')
    }
    expect(await sessions.findPublic('companion-1')).toBeDefined()
    pass(601)
    expect(await sessions.findPublic('companion-1')).toBeUndefined()

    await sessions.startCompanions({ request, subject: ada, companions: [companion] })
    await sessions.endAll(ada.identity, undefined)
    expect(await sessions.findPublic('companion-1')).toBeUndefined()
  })

  test('a session of a browser is not used by its public id', async () => {
    const { sessions, pass } = setUp()
    const { session } = await sessions.start(portal, { request, subject: ada, before: undefined })
    pass(600)
    await sessions.useCompanion(session.handle.id)
    pass(301)
    expect(await sessions.findPublic(session.handle.id)).toBeUndefined()
  })

  test('if applications share a session, each applies its own idle time', async () => {
    const { sessions, pass } = setUp()
    const strict = { name: 'strict', cookies: { ...cookies, idleSeconds: 60 } }
    const cookie = await begin(sessions, undefined)
    for (let i = 0; i < 5; i++) {
      pass(55)
      expect(await sessions.find(strict, carrying(cookie))).toBeDefined()
    }
    expect(await sessions.millisLeft(strict, carrying(cookie))).toBe(60_000)
    pass(120)
    expect(await sessions.find(strict, carrying(cookie))).toBeUndefined()
    expect(await sessions.millisLeft(strict, carrying(cookie))).toBeUndefined()
    expect(await sessions.find(portal, carrying(cookie))).toBeDefined()
    expect(await sessions.find(strict, carrying(cookie))).toBeDefined()
  })

  test('a session that replaces another ends it; an ended one is gone', async () => {
    const { sessions } = setUp()
    const first = await begin(sessions, undefined)
    const before = await sessions.find(portal, carrying(first))
    const second = await begin(sessions, before)
    expect(await sessions.find(portal, carrying(first))).toBeUndefined()
    const live = await sessions.find(portal, carrying(second))
    if (live === undefined) throw new Error('the second session is missing')
    await sessions.end(live)
    expect(await sessions.find(portal, carrying(second))).toBeUndefined()
  })

  test.each(['', 'x', 'a'.repeat(43), `${'a'.repeat(42)}'`, '../../etc/passwd'])(
    'a made-up cookie %j is not a session',
    async (value) => {
      const { sessions } = setUp()
      const request = fakeRequest({ headers: { cookie: `__Host-tremolosession=${value}` } })
      expect(await sessions.find(portal, request)).toBeUndefined()
    },
  )

  test('a cookie that appears twice is ignored', async () => {
    const { sessions } = setUp()
    const pair = (await begin(sessions, undefined)).split(';')[0]
    const request = fakeRequest({
      url: 'https://portal.test/',
      headers: { cookie: `${pair}; __Host-tremolosession=${'a'.repeat(43)}` },
    })
    expect(await sessions.find(portal, request)).toBeUndefined()
  })
})
