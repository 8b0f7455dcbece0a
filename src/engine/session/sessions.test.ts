import { describe, expect, test } from 'vitest'
import { Sessions } from '#engine/session/sessions.ts'
import type { CookieConfig } from '#sdk/configuration.ts'
import { fakeRequest } from '#testing/fake-request.ts'
import { memorySessionStore } from '#testing/memory-session-store.ts'
import { subject } from '#testing/subjects.ts'

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
  const sessions = new Sessions(store, () => now)
  const pass = (seconds: number) => {
    now = new Date(now.getTime() + seconds * 1000)
  }
  return { store, sessions, pass }
}

const carrying = (setCookie: string) => fakeRequest({ headers: { cookie: setCookie.split(';')[0] ?? '' } })

describe('Sessions', () => {
  test('a started session is found by its cookie, with the same subject each time', async () => {
    const { sessions } = setUp()
    const cookie = await sessions.start(portal, ada, undefined)
    const first = await sessions.find(portal, carrying(cookie))
    expect(first?.subject).toMatchObject({ uid: 'ada', level: 20 })
    expect(first?.subject.dn.equals(ada.dn)).toBe(true)
    expect(first?.subject.attributes.first('mail')).toBe('ada@corp.com')
    expect((await sessions.find(portal, carrying(cookie)))?.subject).toBe(first?.subject)
  })

  test('the store never sees the secret', async () => {
    const { sessions, store } = setUp()
    const cookie = await sessions.start(portal, ada, undefined)
    const secret = /=([\w-]+);/.exec(cookie)?.[1] ?? ''
    expect(secret).toHaveLength(43)
    expect(JSON.stringify([...store.rows])).not.toContain(secret)
  })

  test('the cookie is bound to the host, http only and same-site', async () => {
    const { sessions } = setUp()
    const cookie = await sessions.start(portal, ada, undefined)
    expect(cookie).toMatch(/^__Host-tremolosession=[\w-]{43}; Path=\/; SameSite=Lax; Secure; HttpOnly$/)
  })

  test("another application's session is none", async () => {
    const { sessions } = setUp()
    expect(await sessions.find(other, carrying(await sessions.start(portal, ada, undefined)))).toBeUndefined()
  })

  test('ends after its idle time, not while it is used, and in any case after twelve hours', async () => {
    const { sessions, pass } = setUp()
    const cookie = await sessions.start(portal, ada, undefined)
    for (let i = 0; i < 71; i++) {
      pass(600)
      expect(await sessions.find(portal, carrying(cookie))).toBeDefined()
    }
    pass(601)
    expect(await sessions.find(portal, carrying(cookie))).toBeUndefined()
    const idle = await sessions.start(portal, ada, undefined)
    pass(901)
    expect(await sessions.find(portal, carrying(idle))).toBeUndefined()
  })

  test('a session that follows another ends it; an ended one is gone', async () => {
    const { sessions } = setUp()
    const first = await sessions.start(portal, ada, undefined)
    const before = await sessions.find(portal, carrying(first))
    const second = await sessions.start(portal, ada, before)
    expect(await sessions.find(portal, carrying(first))).toBeUndefined()
    const live = await sessions.find(portal, carrying(second))
    if (live === undefined) throw new Error('the second session is missing')
    await sessions.end(live)
    expect(await sessions.find(portal, carrying(second))).toBeUndefined()
  })

  test.each(['', 'x', 'a'.repeat(43), `${'a'.repeat(42)}'`, '../../etc/passwd'])(
    'a made-up cookie %j is no session',
    async (value) => {
      const { sessions } = setUp()
      const request = fakeRequest({ headers: { cookie: `__Host-tremolosession=${value}` } })
      expect(await sessions.find(portal, request)).toBeUndefined()
    },
  )

  test('a cookie that stands there twice is believed in neither form', async () => {
    const { sessions } = setUp()
    const pair = (await sessions.start(portal, ada, undefined)).split(';')[0]
    const request = fakeRequest({ headers: { cookie: `${pair}; __Host-tremolosession=${'a'.repeat(43)}` } })
    expect(await sessions.find(portal, request)).toBeUndefined()
  })
})
