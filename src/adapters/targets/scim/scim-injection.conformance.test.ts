import { beforeAll, expect, test } from 'vitest'
import { loginProblem } from '#identity/login-name.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { hostileTexts, syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { unstorable } from '#testing/hostile/hostile-entry.ts'
import { hostileTrial } from '#testing/hostile/hostile-trial.ts'
import { hostileSeed, sampled, withSeed } from '#testing/hostile/sample.ts'
import { type ScimBehind, scimBehind } from '#testing/scim/scim-behind.ts'
import { freshBehind, groupNames, openTargetOn } from '#testing/scim/scim-target-fixture.ts'

let behind: ScimBehind

beforeAll(async () => {
  behind = await scimBehind()
}, 60_000)

const wanted = sampled(1500, 10_000)
const perList = 28
const singles = ['title', 'displayName', 'nickName', 'name.familyName', 'name.givenName', 'externalId']
const lists = ['emails.value', 'phoneNumbers.value']
const attributes = [...singles, ...lists]
const pieces = [
  ...hostileTexts,
  ...['*', '(', ')', '\\', ',', '+', '"', '<', '>', ';', '=', '#', "'", '%', '_', '&', '|', '!', '/', '?', '[', ']'],
  ...[
    '" or userName pr or title eq "',
    'eq',
    'pr',
    'and',
    'members[value eq "',
    '{"value":',
    '}',
    ' ',
    '  ',
    '\t',
    '\r\n',
  ],
  ...['../', '%2e%2e', '\u2028', '\u202e', '\ufeff', '👩‍👩‍👧', 'ﬀ', 'İ', 'é', 'e\u0301', '-0', 'null', 'true', '0x1'],
]

/** A generator with the same texts for the same seed. */
function generator(seed: number) {
  let state = seed
  const below = (limit: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
  let made = 0
  /** Hostile from its first character to its last, and different from all others, ignoring letter case. */
  const text = (): string => {
    const some = (): string => Array.from({ length: 1 + below(3) }, () => pieces[below(pieces.length)] ?? '').join('')
    return `${some()}${(made++).toString(36)}${some()}`
  }
  return { text, made: () => made }
}

test(`${wanted} hostile values are written, found and removed unchanged`, async () => {
  await freshBehind(behind)
  const { client } = behind
  const target = await openTargetOn(behind, { timeoutMillis: 60_000 })
  const { request } = targetFixture(target, { attributes: ['a', 'b', 'c'], groups: groupNames })
  const bystanders = ['*', '%', 'O"Brien', 'bob', 'x\\'].map((login) =>
    userOf(login, { title: ['t'] }, [groupNames[1]]),
  )
  for (const user of bystanders) await target.createUser(user, ['title'], request)
  const untouched = async () =>
    (await client.list('/Users', { filter: 'title eq "t"', sortBy: 'userName' })).body.Resources
  const before = await untouched()
  expect(before).toHaveLength(bystanders.length)

  const values = generator(hostileSeed)
  const user = (login: string) => {
    const one = singles.map((name) => [name, [values.text()]] as const)
    const many = lists.map((name) => [name, Array.from({ length: perList }, () => values.text())] as const)
    return userOf(login, Object.fromEntries([...one, ...many]), [groupNames[0]])
  }
  const rounds = Math.ceil(wanted / (2 * (singles.length + lists.length * perList) + 3))
  const round = async () => {
    let login = values.text()
    // The gateway behind refuses some.
    while (loginProblem(login) !== undefined) login = values.text()
    const created = user(login)
    await target.createUser(created, attributes, request)
    const found = await target.lookupUserByLogin(login)
    const stored = (one = found) => one?.attributes.pick(attributes).toObject()
    expect(found?.userID).toBe(login)
    expect(stored()).toEqual({ ...created.attributes.toObject() })
    expect(found?.groups).toEqual([groupNames[0]])
    for (const attribute of ['title', 'emails.value', 'externalId']) {
      const value = created.attributes.values(attribute).at(-1) ?? ''
      const filter = { kind: 'equal', attribute, value, caseExact: attribute === 'externalId' } as const
      const { items } = await target.searchUsers({ filter, offset: 0, limit: 3 })
      expect(items.map(({ userID }) => userID)).toEqual([login])
    }
    const part = {
      kind: 'substring',
      attribute: 'displayName',
      any: [created.attributes.first('displayName') ?? ''],
    } as const
    expect((await target.searchUsers({ filter: part, offset: 0, limit: 3 })).items).toHaveLength(1)
    const changed = user(login)
    await target.syncUser(changed, syncOptions(attributes), request)
    expect(stored(await target.lookupUserById(found?.id ?? ''))).toEqual({ ...changed.attributes.toObject() })
    const group = values.text()
    await target.createGroup(group, { description: [values.text()] }, request)
    expect((await target.findGroup(group))?.name).toBe(group)
    await target.syncUser(userOf(login, {}, [group]), syncOptions([]), request)
    expect((await target.lookupGroupByName(group))?.members).toEqual([found?.id])
    await target.deleteGroup(group, request)
    await target.deleteUser(changed, request)
    expect(await target.lookupUserByLogin(login)).toBeUndefined()
  }
  await withSeed(() => inParallel(Array.from({ length: rounds }), 8, round))
  expect(values.made()).toBeGreaterThanOrEqual(wanted)
  expect(await untouched()).toEqual(before)
  expect((await client.list('/Users')).body.totalResults).toBe(bystanders.length)
  expect((await client.list('/Groups')).body.totalResults).toBe(groupNames.length)
  target.close()
}, 180_000)

test(
  'each passes through every lookup and write unchanged, and touches no other user',
  async () => {
    await behind.empty()
    const target = await openTargetOn(behind, { timeoutMillis: 60_000 })
    try {
      await hostileTrial('SCIM on a second gateway', target, {
        attributes: ['emails.value', 'title'],
        mayRefuse: (place, value) =>
          unstorable(place, value) || (place === 'login' && loginProblem(value) !== undefined),
        batch: 50,
        pack: 5,
      })
    } finally {
      target.close()
    }
  },
  trialMillis,
)

test('64 KB come back, and a value that cannot be stored is rejected by name', async () => {
  await freshBehind(behind)
  const target = await openTargetOn(behind)
  const { request } = targetFixture(target, { attributes: ['a', 'b', 'c'], groups: groupNames })
  const long = ' 🎉"*()'.repeat(10_000).slice(0, 65_536 / 2)
  await target.createUser(userOf('long', { title: [long] }), ['title'], request)
  expect((await target.lookupUserByLogin('long'))?.attributes.first('title')).toBe(long)
  for (const filter of [
    { kind: 'equal', attribute: 'title', value: long },
    { kind: 'substring', attribute: 'title', any: [], final: long.slice(7000) },
  ] as const) {
    expect((await target.searchUsers({ filter, offset: 0, limit: 2 })).items).toHaveLength(1)
  }
  const other = { kind: 'equal', attribute: 'title', value: `${long}x` } as const
  expect((await target.searchUsers({ filter: other, offset: 0, limit: 2 })).items).toEqual([])
  for (const value of ['a\0b', '\ud800', 'x'.repeat(70_000)]) {
    const refused = target.createUser(userOf('bad', { title: [value] }), ['title'], request)
    await expect(refused).rejects.toMatchObject({ code: 'BAD_REQUEST', publicText: expect.stringContaining('title') })
  }
  for (const login of ['', 'a\0b', '\udfff', 'x'.repeat(2000)]) {
    const refused = target.createUser(userOf(login), [], request)
    await expect(refused).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(await target.lookupUserByLogin(login)).toBeUndefined()
  }
  expect((await behind.client.list('/Users')).body.totalResults).toBe(1)
  target.close()
})
