import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasPasswords, type TargetChange } from '#sdk/target/target.ts'
import { type ScimBehind, scimBehind } from '#testing/scim/scim-behind.ts'
import { type Fault, type ProxiedCall, type ScimProxy, startScimProxy } from '#testing/scim/scim-proxy.ts'
import { freshBehind, groupNames, openTargetOn, type WholeScimTarget } from '#testing/scim/scim-target-fixture.ts'

let behind: ScimBehind
let proxy: ScimProxy
let target: WholeScimTarget

beforeAll(async () => {
  behind = await scimBehind()
  proxy = await startScimProxy(behind.client.base)
}, 60_000)
beforeEach(async () => {
  await freshBehind(behind)
  proxy.fault = () => undefined
  proxy.describe = (config) => config
  proxy.ignoresFilters = false
  target = await openTargetOn(behind, { url: proxy.url })
  proxy.calls.length = 0
  return () => target.close()
})
afterAll(async () => {
  proxy?.close()
})

const [one, two, three] = groupNames
const title = ['title']
const ada = (values: Record<string, string[]> = { title: ['Countess'] }, groups: readonly string[] = [one]): User =>
  userOf('ada', values, groups)

/** The request of one step, and the changes that it reported. */
function step(key: string) {
  const { request, changes } = targetFixture(target, { attributes: ['a', 'b', 'c'], groups: [one, two, three] })
  return { request: { ...request, idempotencyKey: key }, changes }
}

/** The n-th call of this kind, from 1, has the fault. */
function failing(isKind: (call: ProxiedCall) => boolean, fault: Fault, from = 1, until = from): void {
  let nth = 0
  proxy.fault = (call) => {
    if (!isKind(call)) return undefined
    nth++
    return nth >= from && nth <= until ? fault : undefined
  }
}
const posts = ({ method, path }: ProxiedCall) => method === 'POST' && path === '/Users'
const patches = ({ method }: ProxiedCall) => method === 'PATCH'
const ofGroups = ({ method, path }: ProxiedCall) => method === 'PATCH' && path.startsWith('/Groups/')
const reported = (changes: readonly TargetChange[]) =>
  changes.map(({ action, attribute, value }) => `${action} ${attribute} ${value}`)
const people = async () =>
  (await behind.client.list('/Users')).body.Resources as { userName: string; groups?: object[] }[]

describe('a lost answer', () => {
  test('to a creation: there is one user, reported once', async () => {
    failing(posts, 'lost')
    const { request, changes } = step('1')
    await target.createUser(ada(), title, request)
    expect(await people()).toHaveLength(1)
    expect(reported(changes)).toEqual(['add userID ada', 'add title Countess', `add groups ${one}`])
    expect(proxy.calls.filter(posts)).toHaveLength(1)
  })

  test('to a creation that never arrived: it is sent again', async () => {
    failing(posts, 'never')
    await target.createUser(ada(), title, step('1').request)
    expect(await people()).toMatchObject([{ userName: 'ada', title: 'Countess' }])
  })

  test('to a membership of a new user: the next attempt of the step continues, another step gets a conflict', async () => {
    failing(ofGroups, { status: 500 })
    const first = step('1')
    await expect(target.createUser(ada(), title, first.request)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(first.changes).toEqual([])
    await expect(target.createUser(ada(), title, step('2').request)).rejects.toMatchObject({ code: 'CONFLICT' })
    const again = step('1')
    await target.createUser(ada(), title, again.request)
    expect(reported(again.changes)).toEqual(['add userID ada', 'add title Countess', `add groups ${one}`])
    expect((await target.lookupUserByLogin('ada'))?.groups).toEqual([one])
  })

  test('to a change: it is made once, and reported once', async () => {
    await target.createUser(ada(), title, step('1').request)
    for (const fault of ['lost', 'never'] as const) {
      failing(patches, fault)
      const { request, changes } = step(fault)
      await target.syncUser(ada({ title: [fault] }), syncOptions(title), request)
      expect(reported(changes)).toEqual([`replace title ${fault}`])
      expect((await target.lookupUserByLogin('ada'))?.attributes.first('title')).toBe(fault)
    }
  })

  test('to a change that is bound to a version: it does not conflict with itself', async () => {
    await target.createUser(ada(), title, step('1').request)
    const expectedVersion = (await target.lookupUserByLogin('ada'))?.version ?? ''
    failing(patches, 'lost')
    const options = syncOptions(title, { expectedVersion })
    await target.syncUser(ada({ title: ['Lady'] }), options, step('2').request)
    const stale = target.syncUser(ada({ title: ['x'] }), options, step('3').request)
    await expect(stale).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
  })

  test('to a new login: the rest of the change uses it', async () => {
    await target.createUser(ada(), title, step('1').request)
    failing(patches, 'lost')
    const { request, changes } = step('2')
    const options = syncOptions(title, { newUserID: 'adele' })
    await target.syncUser(ada({ title: ['Lady'] }, [two]), options, request)
    expect(reported(changes)).toEqual([
      'replace userID adele',
      'replace title Lady',
      `add groups ${two}`,
      `delete groups ${one}`,
    ])
    expect(await target.lookupUserByLogin('adele')).toMatchObject({ groups: [two] })
  })

  test('to a deletion, and to changes of a group', async () => {
    await target.createUser(ada(), title, step('1').request)
    const { request, changes } = step('2')
    failing(({ method }) => method === 'DELETE', 'lost')
    await target.deleteUser(ada(), request)
    failing(({ method, path }) => method === 'POST' && path === '/Groups', 'lost')
    await target.createGroup('crew', { description: ['Old'] }, request)
    failing(patches, 'lost')
    await target.updateGroup('crew', { newName: 'team', attributes: { description: ['New'] } }, request)
    failing(({ method }) => method === 'DELETE', 'lost')
    await target.deleteGroup('team', request)
    expect(reported(changes)).toEqual([
      'delete userID ada',
      'add name crew',
      'add description Old',
      'replace name team',
      'replace description New',
      'delete name team',
    ])
  })
})

describe('a server that fails', () => {
  test('permanently at a group: the new user is deleted again, and nothing is reported', async () => {
    failing(ofGroups, { status: 403 })
    const { request, changes } = step('1')
    await expect(target.createUser(ada(), title, request)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    expect(await people()).toEqual([])
    expect(changes).toEqual([])
  })

  test('in the middle of a change: it is an error, and the next attempt does the rest', async () => {
    await target.createUser(ada(), title, step('1').request)
    failing(({ path }) => path === '/Bulk', { status: 500 }, 1, 9)
    const wanted = ada({ title: ['Lady'] }, [two, three])
    const { request, changes } = step('2')
    await expect(target.syncUser(wanted, syncOptions(title), request)).rejects.toMatchObject({
      code: 'TARGET_UNREACHABLE',
    })
    expect(changes).toEqual([])
    proxy.fault = () => undefined
    await target.syncUser(wanted, syncOptions(title), request)
    const stored = await target.lookupUserByLogin('ada')
    expect([...(stored?.groups ?? [])].sort()).toEqual([two, three])
  })

  test('with 429 gets a retry after the wait', async () => {
    failing(() => true, { status: 429, headers: { 'retry-after': '0' } }, 1, 3)
    await target.createUser(ada(), title, step('1').request)
    expect(await people()).toHaveLength(1)
  })

  test('before discovery: the target exists, and works when the server does', async () => {
    proxy.fault = () => 'never'
    const late = await openTargetOn(behind, { url: proxy.url, timeoutMillis: 1000 })
    await expect(late.lookupUserByLogin('ada')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(late.keepsVersions).toBe(false)
    proxy.fault = () => undefined
    expect(await late.lookupUserByLogin('ada')).toBeUndefined()
    expect(late.keepsVersions).toBe(true)
    late.close()
  })
})

test('several memberships are one bulk request', async () => {
  await target.createUser(ada({}, []), [], step('1').request)
  proxy.calls.length = 0
  await target.syncUser(ada({}, [one, two, three]), syncOptions([]), step('2').request)
  expect(proxy.calls.filter(({ method }) => method !== 'GET')).toEqual([{ method: 'POST', path: '/Bulk' }])
})

test('a missing group is rejected by name, before any change', async () => {
  const { request } = step('1')
  const lost = target.createUser(ada({}, [one, 'nowhere']), [], request)
  await expect(lost).rejects.toMatchObject({ code: 'BAD_REQUEST', publicText: expect.stringContaining('"nowhere"') })
  expect(await people()).toEqual([])
})

test('a group that was renamed meanwhile is not joined under its old name', async () => {
  await target.createUser(ada({}, []), [], step('1').request)
  const group = await target.lookupGroupByName(one)
  const expectedGroup = { name: one, id: group?.id ?? '' }
  await target.updateGroup(one, { newName: 'other' }, step('2').request)
  const late = target.syncUser(ada({}, [one]), syncOptions([], { expectedGroup }), step('3').request)
  await expect(late).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
})

describe('a server that does not filter', () => {
  beforeEach(async () => {
    for (const login of ['ada', 'bob', 'cyd']) {
      const values = { title: [login === 'cyd' ? 'Dr' : 'Countess'] }
      await target.createUser(userOf(login, values), title, step(login).request)
    }
  })

  test.each(['says so', 'does not say so'])('and %s is filtered here', async (how) => {
    if (how === 'says so') proxy.describe = (config) => ({ ...config, filter: { supported: false } })
    proxy.ignoresFilters = true
    const blind = await openTargetOn(behind, { url: proxy.url })
    expect((await blind.lookupUserByLogin('BOB'))?.userID).toBe('bob')
    expect(await blind.lookupUserByLogin('nobody')).toBeUndefined()
    await blind.deleteUser(userOf('nobody'), step('1').request)
    const filter = { kind: 'equal', attribute: 'title', value: 'countess' } as const
    const { items, total } = await blind.searchUsers({ filter, offset: 0, limit: 10 })
    expect(items.map(({ userID }) => userID).sort()).toEqual(['ada', 'bob'])
    expect(total).toBe(2)
    expect(await people()).toHaveLength(3)
    blind.close()
  })
})

test('ids that would change the path find no user', async () => {
  for (const id of ['', '.', '..', '.search', '../Groups', 'a/../..', '?x', '\0', '\ud800', 'x'.repeat(5000)]) {
    expect(await target.lookupUserById(id)).toBeUndefined()
    expect(await target.lookupGroupById(id)).toBeUndefined()
  }
})

test('attributes of an extension that only this server has, by their types', async () => {
  const badge = 'urn:example:params:scim:schemas:Badge'
  const values = {
    [`${badge}:badge`]: ['7'],
    [`${badge}:doors`]: ['north', 'south'],
    [`${badge}:since`]: ['2026-01-02T03:04:05Z'],
    emails: ['{"value":"a@x.test","type":"work","primary":true}'],
  }
  const names = Object.keys(values)
  await target.createUser(userOf('ada', values), names, step('1').request)
  const stored = await target.lookupUserByLogin('ada')
  expect(stored?.attributes.pick(names).toObject()).toEqual(Attributes.from(values).toObject())
  expect(await people()).toMatchObject([{ [badge]: { badge: 7, doors: ['north', 'south'] } }])
  const filter = { kind: 'equal', attribute: `${badge}:badge`, value: '7' } as const
  expect((await target.searchUsers({ filter, offset: 0, limit: 5 })).total).toBe(1)
})

test('client credentials: one token for many calls, and a new one when it is rejected', async () => {
  let asked = 0
  const issuer = createServer((request, response) => {
    asked++
    const access_token = asked === 1 ? 'expired' : behind.client.token
    request.resume().on('end', () => response.end(JSON.stringify({ access_token, expires_in: 300 })))
  })
  await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve))
  const { port } = issuer.address() as AddressInfo
  const byClient = await openTargetOn(behind, {
    access: {
      kind: 'client',
      tokenUrl: new URL(`http://127.0.0.1:${port}/token`),
      clientId: 'gatehouse',
      proof: { kind: 'basic', secret: 'hush' },
      scope: undefined,
      audience: undefined,
    },
  })
  await Promise.all(['a', 'b', 'c', 'd'].map((login) => byClient.createUser(userOf(login), [], step(login).request)))
  expect(await people()).toHaveLength(4)
  expect(asked).toBeLessThanOrEqual(4)
  byClient.close()
  issuer.close()
})

test('a password is sent, and never reported', async () => {
  const withPasswords = await openTargetOn(behind, { url: proxy.url, passwords: true })
  if (!hasPasswords(withPasswords)) throw new Error('no passwords')
  await withPasswords.createUser(userOf('ada'), [], step('1').request)
  const { request, changes } = step('2')
  await withPasswords.setUserPassword(userOf('ada'), 'correct horse', request)
  expect(changes).toEqual([{ subject: 'attribute', action: 'replace', attribute: 'password' }])
  expect(proxy.calls.at(-1)).toMatchObject({ method: 'PATCH' })
  withPasswords.close()
  expect(hasPasswords(target)).toBe(false)
})

describe('two gateways with one server', () => {
  const openTwo = async () => [await openTargetOn(behind), await openTargetOn(behind)] as const

  test('one of many changes that expect the same version succeeds', async () => {
    const both = await openTwo()
    await target.createUser(ada(), title, step('1').request)
    const expectedVersion = (await target.lookupUserByLogin('ada'))?.version ?? ''
    const options = syncOptions(title, { expectedVersion })
    const attempts = await Promise.allSettled(
      both.map((one, i) => one.syncUser(ada({ title: [`v${i}`] }), options, step(`s${i}`).request)),
    )
    const refused = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason.code] : []))
    expect(refused).toEqual(['VERSION_MISMATCH'])
    for (const one of both) one.close()
  })

  test('values that both add to one list are all stored', async () => {
    const both = await openTwo()
    await target.createUser(ada({}, []), [], step('1').request)
    const options = syncOptions(['emails.value'], { addOnly: true })
    const added = Array.from({ length: 4 }, (_, i) => `m${i}@x.test`)
    await Promise.all(
      added.map((mail, i) => both[i % 2]?.syncUser(ada({ 'emails.value': [mail] }, []), options, step(mail).request)),
    )
    const stored = await target.lookupUserByLogin('ada')
    expect([...(stored?.attributes.values('emails.value') ?? [])].sort()).toEqual(added)
    for (const one of both) one.close()
  })

  test('one of two callers that create the same user differently gets a conflict', async () => {
    const both = await openTwo()
    const attempts = await Promise.allSettled(
      both.map((one, i) => one.createUser(ada({ title: [`v${i}`] }), title, step(`s${i}`).request)),
    )
    const refused = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason.code] : []))
    expect(refused).toEqual(['CONFLICT'])
    const winner = attempts.findIndex(({ status }) => status === 'fulfilled')
    expect(await people()).toMatchObject([{ title: `v${winner}` }])
    for (const one of both) one.close()
  })
})
