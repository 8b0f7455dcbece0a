import { expect, test } from 'vitest'
import { entryIdentity, loginIdentity } from '#identity/identity.ts'
import { newId } from '#kernel/ids.ts'
import type { Session } from '#requests/sessions/session.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import type { ChangeOutcome, ResetLink } from './password-change-store.ts'

const [ada, grace] = [entryIdentity('people', '1'), entryIdentity('people', '2')]

const link = (more: Partial<ResetLink> = {}): ResetLink => ({
  id: newId(),
  form: 'portal',
  owner: ada,
  data: { login: 'ada' },
  tokenHash: `hash ${newId()}`,
  validMillis: 60_000,
  ...more,
})

const row = (what: string): AuditEntry => ({
  id: newId(),
  time: new Date(),
  requestor: 'ada',
  subject: 'ada',
  workflow: { id: '', name: 'password' },
  target: 'gatehouse',
  kind: 'token',
  action: 'issue',
  attribute: what,
})

const session = (id: string, more: Partial<Session> = {}): Session => ({
  id,
  publicId: `public ${id}`,
  context: 'c',
  application: 'portal',
  owner: ada,
  userID: 'ada',
  data: {},
  created: new Date(),
  touched: new Date(),
  idleSeconds: 600,
  ...more,
})

onEachDatabase('password changes', (freshUrl) => {
  const open = async () => {
    const { one, two } = await openStores(await freshUrl())
    return [one, two] as const
  }

  const mail = { id: 'm', recipient: 'ada@corp.test', subject: 's', text: 't' }
  const ending = (except?: string): ChangeOutcome => ({
    ending: {
      owners: [ada],
      logins: [],
      ...(except === undefined ? {} : { exceptPublicId: except }),
      audit: (ended) => ended.map(({ publicId }) => row(`ended ${publicId}`)),
    },
    audit: [row('changed')],
  })

  test('finds a link in its form until it expires', async () => {
    const [{ passwordChanges: store }] = await open()
    const made = link()
    expect(await store.addLink(made, 3, [mail], [row('issued')])).toBe('added')
    expect(await store.findLink('portal', made.tokenHash)).toMatchObject({ id: made.id, data: { login: 'ada' } })
    expect(await store.findLink('other', made.tokenHash)).toBeUndefined()
    expect(await store.findLink('portal', 'another')).toBeUndefined()
    const late = link({ validMillis: -1, owner: grace })
    await store.addLink(late, 3, [], [])
    expect(await store.findLink('portal', late.tokenHash)).toBeUndefined()
    expect(await store.claimLink('portal', late.tokenHash, 60_000)).toBeUndefined()
  })

  test('replaces the earlier link of a user, and limits links per hour', async () => {
    const [{ passwordChanges: store }] = await open()
    const [first, second, third, other] = [link(), link(), link(), link({ owner: grace })]
    for (const one of [other, first, second]) expect(await store.addLink(one, 2, [], [])).toBe('added')
    expect(await store.addLink(third, 2, [], [])).toBe('too many')
    const found = await Promise.all([other, first, second, third].map((one) => store.findLink('portal', one.tokenHash)))
    expect(found.map((one) => one?.id)).toEqual([other.id, undefined, second.id, undefined])
  })

  test('limits concurrent requests, and leaves one usable link', async () => {
    const [one, two] = await open()
    const links = Array.from({ length: 8 }, () => link())
    const outcomes = await Promise.all(
      links.map((each, i) => (i % 2 === 0 ? one : two).passwordChanges.addLink(each, 3, [], [])),
    )
    expect(outcomes.filter((outcome) => outcome === 'added')).toHaveLength(3)
    const found = await Promise.all(links.map((each) => one.passwordChanges.findLink('portal', each.tokenHash)))
    expect(found.filter((each) => each !== undefined)).toHaveLength(1)
  })

  test('lets one of concurrent callers use a link, once', async () => {
    const [one, two] = await open()
    const made = link()
    await one.passwordChanges.addLink(made, 3, [], [])
    const claims = await Promise.all(
      [one, two, one, two].map(({ passwordChanges }) => passwordChanges.claimLink('portal', made.tokenHash, 60_000)),
    )
    const [claim, another] = claims.filter((each) => each !== undefined)
    expect([claim?.id, another]).toEqual([made.id, undefined])
    if (claim === undefined) throw new Error('no claim')
    await one.passwordChanges.finish(claim, { audit: [] })
    expect(await two.passwordChanges.findLink('portal', made.tokenHash)).toBeUndefined()
    expect(await two.passwordChanges.claimLink('portal', made.tokenHash, 60_000)).toBeUndefined()
  })

  test('ends all sessions of the user but one, with audit entries, when a change finishes', async () => {
    const [{ passwordChanges: store, sessions, audit }] = await open()
    await sessions.create(session('kept'))
    await sessions.create(session('a', { userID: 'another spelling' }))
    await sessions.create(session('same login elsewhere', { owner: grace }))
    const claim = await store.begin({ id: newId(), form: 'portal', owner: ada, data: {} }, 60_000)
    expect(await store.finish(claim, ending('public kept'))).toBe(1)
    const ids = ['kept', 'a', 'same login elsewhere']
    const left = await Promise.all(ids.map((id) => sessions.find(id, new Date())))
    expect(left.map((one) => one?.id)).toEqual(['kept', undefined, 'same login elsewhere'])
    const { rows } = await audit.list({ subject: 'ada', limit: 10 })
    expect(rows.map(({ attribute }) => attribute).sort()).toEqual(['changed', 'ended public a'])
  })

  test('lets a released link, or one with an expired lease, be claimed again', async () => {
    const [{ passwordChanges: store, sessions }] = await open()
    const made = link()
    await store.addLink(made, 3, [], [])
    const first = await store.claimLink('portal', made.tokenHash, 60_000)
    if (first === undefined) throw new Error('no claim')
    await store.release(first, { audit: [] })
    const second = await store.claimLink('portal', made.tokenHash, -1)
    if (second === undefined) throw new Error('no claim')
    expect((await store.abandoned(10)).map(({ id }) => id)).toEqual([made.id])
    const third = await store.claimLink('portal', made.tokenHash, 60_000)
    expect(third?.id).toBe(made.id)
    await sessions.create(session('s'))
    // The second claim is void, so that it neither opens the link nor ends sessions.
    await store.release(second, ending())
    expect(await sessions.find('s', new Date())).toBeDefined()
    expect(await store.claimLink('portal', made.tokenHash, 60_000)).toBeUndefined()
  })

  test('voids a link with an unknown outcome after a newer link or another change', async () => {
    const [{ passwordChanges: store }] = await open()
    const [first, second, third] = [link(), link(), link()]
    await store.addLink(first, 3, [], [])
    await store.claimLink('portal', first.tokenHash, -1)
    await store.addLink(second, 3, [], [])
    expect(await store.claimLink('portal', first.tokenHash, 60_000)).toBeUndefined()
    for (const claim of await store.abandoned(10)) await store.release(claim, { audit: [] })
    expect(await store.findLink('portal', first.tokenHash)).toBeUndefined()
    expect(await store.findLink('portal', second.tokenHash)).toBeDefined()
    await store.addLink(third, 3, [], [])
    await store.claimLink('portal', third.tokenHash, -1)
    const change = await store.begin({ id: newId(), form: 'portal', owner: ada, data: {} }, 60_000)
    await store.finish(change, { audit: [] })
    const abandoned = await store.abandoned(10)
    expect(abandoned.map(({ id }) => id)).toEqual([third.id])
    for (const claim of abandoned) await store.release(claim, { audit: [] })
    expect(await store.claimLink('portal', third.tokenHash, 60_000)).toBeUndefined()
  })

  test('returns changes whose process ended, and settles them once', async () => {
    const [{ passwordChanges: store, sessions }] = await open()
    await sessions.create(session('s'))
    await store.begin({ id: newId(), form: 'portal', owner: ada, data: {} }, -1)
    const [claim] = await store.abandoned(10)
    if (claim === undefined) throw new Error('not found')
    await store.release(claim, ending())
    expect(await sessions.find('s', new Date())).toBeUndefined()
    expect(await store.abandoned(10)).toEqual([])
  })

  test('settles a change that a run reports, voids links, and records the time of the change', async () => {
    const [storage] = await open()
    const { passwordChanges: store } = storage
    const linked = link()
    await store.addLink(linked, 5, [], [])
    expect(await store.changedAt([ada, grace])).toBeUndefined()
    const claim = await store.begin({ id: newId(), form: 'workflow', owner: ada, data: {} }, 60_000)
    expect(await store.abandoned(10)).toEqual([])
    expect(await store.abandoned(10, 'all')).toEqual([claim])
    await storage.sessions.create(session('one'))
    const { ending: of = { owners: [], logins: [], audit: () => [] } } = ending()
    await storage.runs.record({ endings: [{ ...of, settles: claim }] })
    expect(await storage.sessions.find('one', new Date())).toBeUndefined()
    expect(await store.abandoned(10, 'all')).toEqual([])
    expect(await store.findLink('portal', linked.tokenHash)).toBeUndefined()
    const first = await store.changedAt([grace, ada])
    expect(first).toBeInstanceOf(Date)
    expect(await store.changedAt([grace])).toBeUndefined()
    await store.deleteExpired()
    // By login if no owner is known; a later change replaces the time.
    await storage.runs.record({ endings: [{ ...of, owners: [], logins: ['Grace'] }] })
    expect(await store.changedAt([loginIdentity('grace')])).toBeInstanceOf(Date)
    await storage.runs.record({ endings: [of] })
    expect((await store.changedAt([ada]))?.getTime()).toBeGreaterThanOrEqual(first?.getTime() ?? Number.NaN)
  })

  test('records the time of a change with an unknown outcome, but not of a refused one', async () => {
    const [{ passwordChanges: store }] = await open()
    const begin = () => store.begin({ id: newId(), form: 'portal', owner: ada, data: {} }, 60_000)
    await store.release(await begin(), { audit: [] })
    expect(await store.changedAt([ada])).toBeUndefined()
    await store.release(await begin(), ending())
    expect(await store.changedAt([ada])).toBeInstanceOf(Date)
  })

  test('voids other links of the user after an unknown outcome, and none after a refusal', async () => {
    const [{ passwordChanges: store }] = await open()
    const [own, others] = [link(), link({ owner: grace })]
    await store.addLink(own, 3, [], [])
    await store.addLink(others, 3, [], [])
    const begin = () => store.begin({ id: newId(), form: 'portal', owner: ada, data: {} }, 60_000)
    const found = async () =>
      (await Promise.all([own, others].map((one) => store.findLink('portal', one.tokenHash)))).map((one) => one?.id)
    await store.release(await begin(), { audit: [] })
    expect(await found()).toEqual([own.id, others.id])
    const claim = await store.claimLink('portal', own.tokenHash, 60_000)
    if (claim === undefined) throw new Error('no claim')
    await store.release(claim, ending())
    expect(await found()).toEqual([own.id, others.id])
    await store.release(await begin(), ending())
    expect(await found()).toEqual([undefined, others.id])
  })

  test('deletes changes an hour after their expiry', async () => {
    const [{ passwordChanges: store }] = await open()
    await store.addLink(link({ validMillis: -3_700_000 }), 3, [], [])
    await store.addLink(link({ validMillis: -60_000, owner: grace }), 3, [], [])
    expect(await store.deleteExpired()).toBe(1)
  })
})
