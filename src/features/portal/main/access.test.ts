import { describe, expect, test } from 'vitest'
import { issuerIdentity } from '#identity/identity.ts'
import type { Grant } from '#sdk/workflow/grant.ts'
import { ann, type MainOptions, openMain, person, workflow } from '#testing/modules/main-fixture.ts'
import type { Public } from '#testing/workflows/call-store.ts'
import type { OwnGrants } from '#workflows/grants/own-grants.ts'

const day = 24 * 60 * 60_000
const granted = new Date('2030-01-01T00:00:00Z')
const inDays = (days: number): Date => new Date(granted.getTime() + days * day)

const grant = (id: string, more: Partial<Grant> = {}): Grant => ({
  id,
  target: 'store',
  subject: 'ann',
  kind: 'group',
  name: id,
  granted,
  expires: inDays(30),
  state: 'active',
  ...more,
})

const grantsOf = (active: readonly Grant[], ended: readonly Grant[] = []): Partial<Public<OwnGrants>> => ({
  ofSubject: async () => active,
  endedOf: async () => ended,
  get: async (id) => [...active, ...ended].find((one) => one.id === id),
  groupOrigins: async () => new Map(),
})

const open = (grants: Partial<Public<OwnGrants>>, options: MainOptions = {}) =>
  openMain({ now: () => granted.getTime(), ...options, grants: { ...grantsOf([]), ...grants } })

const member = { member: ['uid=ann,ou=people,o=x'], objectClass: ['groupOfNames'] }
const inGroup = (cn: string) => ({ ...person(cn, { ...member, cn: [cn] }) })

describe('the access that the caller has', () => {
  test('is listed with the request that granted it, the soonest expiry first', async () => {
    const active = [grant('later', { run: 'r1' }), grant('sooner', { expires: inDays(1), run: 'r2' }), grant('bare')]
    const longest = { months: 0, millis: 90 * day }
    const { send, runs } = await open(grantsOf(active), {
      portal: { workflows: [workflow('join', { accessEnds: { required: true, longest } })] },
    })
    runs.add({
      head: { id: 'r1', workflow: 'join', subject: 'ann', who: { subject: ann.identity } },
      state: 'completed',
    })
    runs.add({
      head: { id: 'r2', workflow: 'gone', subject: 'ann', who: { subject: ann.identity } },
      state: 'completed',
    })
    const { access } = (await send('GET', '/access')).body
    expect(access.map(({ id }: Grant) => id)).toEqual(['sooner', 'later', 'bare'])
    expect(access[0]).toEqual({
      id: 'sooner',
      target: 'store',
      kind: 'group',
      name: 'sooner',
      granted: granted.toISOString(),
      expires: inDays(1).toISOString(),
      request: { id: 'r2', label: 'gone' },
      mayGiveBack: true,
    })
    expect(access[1]).toMatchObject({
      request: { id: 'r1', label: 'Workflow join' },
      workflow: { name: 'join', accessEnds: { required: true, longestSeconds: 90 * 86_400 } },
    })
    expect(access[2]).toMatchObject({ mayGiveBack: false })
    expect(access[2]).not.toHaveProperty('request')
  })

  test('does not include access that a run about another user granted', async () => {
    const { send, runs } = await open(grantsOf([grant('theirs', { run: 'r' }), grant('unknown', { run: 'pruned' })]))
    runs.add({ head: { id: 'r', subject: 'ann', who: { subject: issuerIdentity('https://idp', 'ann') } } })
    const { access } = (await send('GET', '/access')).body
    expect(access).toMatchObject([{ id: 'unknown', mayGiveBack: false }])
  })

  test('names the open request for the same workflow', async () => {
    const { send, runs } = await open(grantsOf([grant('vault', { run: 'r1' })]))
    runs.add({
      head: { id: 'r1', workflow: 'join', subject: 'ann', who: { subject: ann.identity } },
      state: 'completed',
    })
    runs.add({ head: { id: 'r2', workflow: 'join', subject: 'ann', who: { subject: ann.identity } }, state: 'waiting' })
    expect((await send('GET', '/access')).body.access).toMatchObject([{ pending: 'r2' }])
  })

  test('includes groups, and says since when only if a known request added the caller', async () => {
    const since = inDays(-3)
    const origins = new Map([
      ['known', { since, run: 'r1' }],
      ['another', { since, run: 'r2' }],
    ])
    const { send, runs } = await open(
      { ...grantsOf([grant('Timed')]), groupOrigins: async () => origins },
      { entries: [person('ann'), ...['known', 'another', 'manual', 'timed'].map(inGroup)] },
    )
    runs.add({
      head: { id: 'r1', workflow: 'join', subject: 'ann', who: { subject: ann.identity } },
      state: 'completed',
    })
    runs.add({ head: { id: 'r2', workflow: 'join', subject: 'ann', who: {} }, state: 'completed' })
    expect((await send('GET', '/access')).body.groups).toEqual([
      { name: 'another' },
      {
        name: 'known',
        since: since.toISOString(),
        request: { id: 'r1', label: 'Workflow join' },
        workflow: { name: 'join', label: 'Workflow join' },
      },
      { name: 'manual' },
    ])
  })
})

test('access that ended is listed once, unless the caller has it again, with the state of its removal', async () => {
  const revoked = (id: string, name: string, days: number, removal?: string): Grant =>
    grant(id, { name, state: 'revoked', ended: inDays(days), ...(removal === undefined ? {} : { removal }) })
  const ended = [revoked('e3', 'a', 1, 'm1'), revoked('e2', 'a', 2), revoked('e1', 'b', 3), revoked('e0', 'C', 4)]
  const { send, runs } = await open(grantsOf([grant('now', { name: 'c' })], ended))
  runs.add({ head: { id: 'm1' }, state: 'incident' })
  const listed = (await send('GET', '/access')).body.ended
  expect(listed).toMatchObject([
    { id: 'e1', ended: inDays(3).toISOString() },
    { id: 'e3', removal: 'incident' },
  ])
  expect(listed[0]).not.toHaveProperty('removal')
})

describe('giving access back', () => {
  const own = grant('vault', { run: 'r1' })
  const head = { id: 'r1', workflow: 'join', subject: 'ann', who: { subject: ann.identity } }
  const about = { head, state: 'completed' } as const

  test('revokes the grant in the name of the caller', async () => {
    const given: unknown[] = []
    const { send, runs } = await open({
      ...grantsOf([own]),
      giveBack: async (...call) => {
        given.push(call)
        return 'removal'
      },
    })
    runs.add(about)
    const { status, body } = await send('POST', '/access/vault/return')
    expect([status, body]).toEqual([202, { request: 'removal' }])
    expect(given).toMatchObject([[own, { login: 'ann', identity: ann.identity }]])
  })

  test.each([
    ['that does not exist', 'none'],
    ['of another login', 'others'],
    ['whose run is about another user', 'theirs'],
    ['whose run is not known', 'pruned'],
  ])('%s is not possible', async (_, id) => {
    const grants = grantsOf([
      grant('others', { subject: 'bob', run: 'r1' }),
      grant('theirs', { run: 'r2' }),
      grant('pruned', { run: 'r3' }),
    ])
    const { send, runs } = await open(grants)
    runs.add(about)
    runs.add({ ...about, head: { id: 'r2', who: { subject: issuerIdentity('https://idp', 'ann') } } })
    await expect(send('POST', `/access/${id}/return`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})
