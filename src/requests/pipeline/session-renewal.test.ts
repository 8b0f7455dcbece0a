import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { type DirectoryEntry, type DirectorySearch, directoryLink } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import type { Subject } from '#identity/subject.ts'
import { silentLogger } from '#kernel/logger.ts'
import { type Chain, ChainRunner } from '#requests/routing/chain.ts'
import { type LiveSession, Sessions } from '#requests/sessions/sessions.ts'
import type { AuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { fakeLoginServices, fakeSecretBox } from '#testing/login/fake-login-services.ts'
import { memorySessionStore } from '#testing/login/memory-session-store.ts'
import { subject } from '#testing/login/subjects.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { type RenewalTimes, SessionRenewal } from './session-renewal.ts'

const cookies = {
  name: 'session',
  domain: undefined,
  secure: true,
  httpOnly: true,
  sameSite: 'Lax',
  idleSeconds: 36_000,
  logoutUri: '/logout',
} as const
const portal = { name: 'portal', cookies }
const request = fakeRequest({ url: 'https://portal.test/' })
const dn = Dn.parse('uid=ada,ou=people,o=Tremolo')
const filter = parseFilter('(&(uid=ada)(employeeType=staff))')
const atLogin = {
  uid: ['ada'],
  entryUUID: ['id-1'],
  employeeType: ['staff'],
  memberOf: ['cn=admins,o=Tremolo'],
  userPassword: ['{x}y'],
}

interface Directory {
  entry: DirectoryEntry | undefined
  failure: Error | undefined
  stuck: boolean
  asked: number
}

interface Options {
  readonly linked?: boolean
  readonly uidAttr?: string | undefined
  readonly times?: RenewalTimes
  readonly mechanisms?: readonly AuthMechanism[]
}

async function setUp({ linked = true, times, mechanisms = [], ...options }: Options = {}) {
  const uidAttr = 'uidAttr' in options ? options.uidAttr : 'uid'
  const at = { now: new Date('2026-01-01T00:00:00Z').getTime() }
  const clock = () => new Date(at.now)
  const store = memorySessionStore()
  const services = fakeLoginServices(clock, store)
  const { audited, counted, sessions } = services
  const directory: Directory = {
    entry: directoryEntry({ dn, attributes: Attributes.from(atLogin) }),
    failure: undefined,
    stuck: false,
    asked: 0,
  }
  const search = async ({ base, scope, filter: wanted }: DirectorySearch): Promise<readonly DirectoryEntry[]> => {
    directory.asked++
    expect([base.key, scope]).toEqual([dn.key, 'base'])
    await new Promise((resolve) => directory.stuck || setImmediate(resolve))
    if (directory.failure !== undefined) throw directory.failure
    const { entry } = directory
    return entry !== undefined && matches(wanted, entry.attributes) ? [entry] : []
  }
  const links = mechanisms.map((mechanism, i) => ({ name: `m${i}`, required: true, mechanism }))
  const chain: Chain = { name: 'test', level: 20, root: 'o=Tremolo', finishOnRequiredSuccess: false, links }
  const chains = new ChainRunner(new Map([['test', chain]]))
  const parts = { ...services, directory: { search }, chains, log: silentLogger }
  const renewal = new SessionRenewal({ ...parts, ...(times === undefined ? {} : { times }) })
  const ada: Subject = subject(dn.toString(), atLogin)
  const link = directoryLink(
    { dn, attributes: ada.attributes },
    { filter, uidAttr, added: Attributes.from({ locale: ['en'] }) },
  )
  const renewals = links.map(({ name }, i) => ({ chain: 'test', link: i, name }))
  const start = async (): Promise<string> => {
    const owner = linked ? { ...ada, link } : ada
    return (await sessions.start(portal, { request, subject: owner, before: undefined, renewals })).cookie
  }
  const load = async (cookie: string, by: Sessions = sessions): Promise<LiveSession | undefined> => {
    const found = await by.find(portal, carrying(cookie))
    return found && (await renewal.current(found, request))
  }
  const change = (attributes: Record<string, string[]>) => {
    directory.entry = directoryEntry({ dn, attributes: Attributes.from({ ...atLogin, ...attributes }) })
  }
  const pass = (seconds: number) => {
    at.now += seconds * 1000
  }
  return { store, sessions, renewal, directory, audited, counted, start, load, change, pass, clock }
}

const carrying = (cookie: string) =>
  fakeRequest({ url: 'https://portal.test/', headers: { cookie: cookie.split(';')[0] ?? '' } })

describe('SessionRenewal', () => {
  test('a directory result is used for a minute, and then read again, once', async () => {
    const { start, load, pass, change, directory } = await setUp()
    const cookie = await start()
    const first = await load(cookie)
    change({ memberOf: ['cn=users,o=Tremolo'] })
    pass(59)
    expect((await load(cookie))?.subject).toBe(first?.subject)
    expect(directory.asked).toBe(0)
    pass(1)
    const all = await Promise.all(Array.from({ length: 20 }, () => load(cookie)))
    expect(directory.asked).toBe(1)
    expect(new Set(all.map((session) => session?.subject)).size).toBe(1)
    const renewed = all[0]?.subject
    expect(renewed?.attributes.values('memberOf')).toEqual(['cn=users,o=Tremolo'])
    expect(renewed).toMatchObject({ uid: 'ada', level: 20, chain: 'test' })
    expect(renewed?.attributes.values('locale')).toEqual(['en'])
    expect(renewed?.attributes.has('userPassword')).toBe(false)
    expect((await load(cookie))?.subject).toBe(renewed)
  })

  test('decisions are not cached beyond a check without changes', async () => {
    const { start, load, pass } = await setUp()
    const cookie = await start()
    const before = (await load(cookie))?.subject
    pass(60)
    const after = (await load(cookie))?.subject
    expect(after).toBeDefined()
    expect(after).not.toBe(before)
  })

  test('a user who was never in the directory is not looked up', async () => {
    const { start, load, pass, directory } = await setUp({ linked: false })
    const cookie = await start()
    pass(3600)
    expect(await load(cookie)).toBeDefined()
    expect(directory.asked).toBe(0)
  })

  test.each<[string, Record<string, string[]> | undefined]>([
    ['gone', undefined],
    ['not found by the filter of the login any more', { employeeType: ['left'] }],
    ['switched off', { active: ['False'] }],
    ['another person of the same name', { entryUUID: ['id-2'] }],
    ['without the identifier', { entryUUID: [] }],
    ['of another login', { uid: ['grace', 'ada'] }],
  ])('sessions of a user who is %s end, and the audit says so', async (_, attributes) => {
    const { start, load, pass, change, directory, audited, counted, store } = await setUp()
    const [cookie, elsewhere] = [await start(), await start()]
    if (attributes === undefined) directory.entry = undefined
    else change(attributes)
    pass(60)
    expect(await load(cookie)).toBeUndefined()
    expect(await store.rows()).toEqual([])
    expect(await load(elsewhere)).toBeUndefined()
    expect(counted).toEqual(['test ended', 'test ended'])
    expect(audited).toHaveLength(2)
    expect(audited[0]).toMatchObject({ subject: 'ada', requestor: 'gatehouse', kind: 'session', action: 'delete' })
    expect(JSON.parse(audited[0]?.reason ?? '')).toMatchObject({ reason: expect.stringMatching(/directory|now/) })
    if (attributes !== undefined) change({})
    expect(await load(cookie)).toBeUndefined()
  })

  test('a login in the filter may be any of several', async () => {
    const { start, load, pass, change, directory } = await setUp({ uidAttr: undefined })
    const cookie = await start()
    directory.entry = directoryEntry({ dn, attributes: Attributes.from({ ...atLogin, uid: ['countess', 'ada'] }) })
    pass(60)
    expect((await load(cookie))?.subject).toMatchObject({ uid: 'ada' })
    change({ uid: ['countess'] })
    pass(60)
    expect(await load(cookie)).toBeUndefined()
  })

  test('links of the chain are asked again in order, and one that rejects ends the session', async () => {
    let allowed = true
    const renaming: AuthMechanism = {
      begin: async () => ({ kind: 'passed' }),
      renew: async ({ dn: name, identity, uid, attributes }) => {
        const roles = { roles: attributes.values('memberOf') }
        return { kind: 'authenticated', subject: { dn: name, identity, uid, attributes: Attributes.from(roles) } }
      },
    }
    const gate: AuthMechanism = {
      begin: async () => ({ kind: 'passed' }),
      renew: async ({ attributes }) =>
        allowed && attributes.has('roles') ? { kind: 'passed' } : { kind: 'rejected', reason: 'no rule passed' },
    }
    const { start, load, pass, audited } = await setUp({ mechanisms: [renaming, gate] })
    const cookie = await start()
    pass(60)
    const once = await load(cookie)
    expect([...(once?.subject.attributes.names() ?? [])]).toEqual(['roles'])
    expect(once?.subject.link).toBeDefined()
    pass(60)
    expect([...((await load(cookie))?.subject.attributes.names() ?? [])]).toEqual(['roles'])
    allowed = false
    pass(60)
    expect(await load(cookie)).toBeUndefined()
    expect(audited[0]?.reason).toContain('no rule passed')
  })

  test("a chain that lost the user's link makes them log in again", async () => {
    const { start, load, pass } = await setUp({ mechanisms: [{ begin: async () => ({ kind: 'passed' }) }] })
    const cookie = await start()
    pass(60)
    expect(await load(cookie)).toBeUndefined()
  })

  test('a directory that does not answer keeps sessions for the grace period, and no longer', async () => {
    const { start, load, pass, directory, store, audited } = await setUp()
    const cookie = await start()
    directory.failure = new Error('no route to host')
    pass(60)
    const kept = await load(cookie)
    expect(kept?.subject.uid).toBe('ada')
    for (let i = 0; i < 5; i++) expect((await load(cookie))?.subject).toBe(kept?.subject)
    expect(directory.asked).toBe(1)
    pass(5)
    await load(cookie)
    expect(directory.asked).toBe(2)
    pass(834)
    expect(await load(cookie)).toBeDefined()
    pass(1)
    await expect(load(cookie)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE', status: 503, retryAfter: 5 })
    await expect(load(cookie)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect([(await store.rows()).length, audited.length]).toEqual([1, 0])
    directory.failure = undefined
    pass(5)
    expect(await load(cookie)).toBeDefined()
  })

  test('a directory that never answers blocks no request', async () => {
    const { start, load, pass, directory } = await setUp()
    const cookie = await start()
    pass(60)
    directory.stuck = true
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const kept = load(cookie)
    while (directory.asked === 0) await new Promise((resolve) => setImmediate(resolve))
    vi.advanceTimersByTime(5_000)
    expect(await kept).toBeDefined()
    expect(await load(cookie)).toBeDefined()
    expect(directory.asked).toBe(1)
  })

  test('another process reads what this one stored, and then asks the directory itself', async () => {
    const { start, load, pass, change, directory, store, clock } = await setUp()
    const cookie = await start()
    change({ memberOf: ['cn=users,o=Tremolo'] })
    pass(60)
    await load(cookie)
    const other = new Sessions(store, clock, fakeSecretBox())
    const found = await load(cookie, other)
    expect(found?.subject.attributes.values('memberOf')).toEqual(['cn=users,o=Tremolo'])
    expect(directory.asked).toBe(1)
    pass(60)
    await load(cookie, other)
    expect(directory.asked).toBe(2)
  })
})
