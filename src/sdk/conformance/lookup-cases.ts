import assert from 'node:assert/strict'
import type { Filter } from '#identity/filter/ast.ts'
import { hostileTexts, type TargetCases, type TargetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasLookups, type LookupTarget } from '#sdk/target/target.ts'

const equal = (attribute: string, value: string): Filter => ({ kind: 'equal', attribute, value })

/** For targets with lookups. */
export const lookupCases: TargetCases = {
  'lookup by login and by id': async (fixture) => {
    const { attributes, groups } = fixture
    const target = await peopled(fixture)
    const ada = await target.lookupUserByLogin('ada')
    assert.equal(ada?.userID, 'ada')
    assert.deepEqual(ada?.attributes.values(attributes[0]), ['ada@x.test'])
    assert.deepEqual(ada?.groups, [groups[0]])
    assert.equal((await target.lookupUserById(ada?.id ?? 'ada'))?.userID, 'ada')
    assert.equal(await target.lookupUserByLogin('nobody'), undefined)
    assert.equal(await target.lookupUserById('0d9f5f6e-0000-7000-8000-000000000000'), undefined)
  },
  'a group has its members, by name and by id': async (fixture) => {
    const target = await peopled(fixture)
    const group = await target.lookupGroupByName(fixture.groups[0], { members: true })
    assert.equal(group?.name, fixture.groups[0])
    const members = await Promise.all(['ada', 'bob'].map((login) => memberName(target, login)))
    assert.deepEqual([...(group?.members ?? [])].sort(), members.sort())
    assert.equal((await target.lookupGroupById(group?.id ?? ''))?.name, fixture.groups[0])
    assert.equal(await target.lookupGroupByName('no such group'), undefined)
    const { items } = await target.searchGroups({ filter: equal('name', fixture.groups[0]), offset: 0, limit: 10 })
    assert.deepEqual(
      items.map(({ name }) => name),
      [fixture.groups[0]],
    )
  },
  'a member that leaves or is deleted is no longer a member': async (fixture) => {
    const { attributes, groups, sync, remove } = fixture
    const target = await peopled(fixture)
    const bob = await memberName(target, 'bob')
    await remove(userOf('ada'))
    assert.deepEqual((await target.lookupGroupByName(groups[0], { members: true }))?.members, [bob])
    await sync(userOf('bob'), { attributes: [attributes[2]] })
    assert.deepEqual((await target.lookupGroupByName(groups[0], { members: true }))?.members ?? [], [])
  },
  ...searches(),
  'hostile texts find only themselves': async (fixture) => {
    const { attributes, create } = fixture
    const target = await peopled(fixture)
    for (const [i, text] of hostileTexts.entries()) {
      assert.deepEqual(await found(target, equal(attributes[1], text)), [], text)
      await create(userOf(`user${i}`, { [attributes[1]]: [text] }))
      assert.deepEqual(await found(target, equal(attributes[1], text)), [`user${i}`], text)
      const part: Filter = { kind: 'substring', attribute: attributes[1], any: [text] }
      assert.deepEqual(await found(target, part), [`user${i}`], text)
    }
  },
  'pages follow one another without gap or overlap, and are the same when read again': async (fixture) => {
    const { create } = fixture
    const target = lookupsOf(fixture)
    const logins = ['g', 'c', 'a', 'f', 'b', 'e', 'd']
    for (const login of logins) await create(userOf(login))
    const page = async (offset: number) => {
      const { items, total } = await target.searchUsers({ offset, limit: 3 })
      assert.equal(total, logins.length)
      return items.map(({ userID }) => userID)
    }
    const pages = [await page(0), await page(3), await page(6), await page(9)]
    assert.deepEqual(
      pages.map(({ length }) => length),
      [3, 3, 1, 0],
    )
    assert.deepEqual(pages.flat().sort(), [...logins].sort())
    assert.deepEqual(await page(3), pages[1])
  },
}

function searches(): TargetCases {
  const cases: [string, (a: TargetFixture['attributes']) => Filter, string[]][] = [
    ['an equal value', ([mail]) => equal(mail, 'bob@x.test'), ['bob']],
    ['an equal value in other letter case', ([mail]) => equal(mail, 'BOB@X.TEST'), ['bob']],
    ['no equal value', ([mail]) => equal(mail, 'bob'), []],
    ['one of several values', ([mail]) => equal(mail, 'c2@x.test'), ['cyd']],
    ['the login', () => equal('userID', 'ada'), ['ada']],
    ['a present attribute', ([, , phone]) => ({ kind: 'present', attribute: phone }), ['cyd']],
    ['a beginning', ([mail]) => ({ kind: 'substring', attribute: mail, initial: 'ad', any: [] }), ['ada']],
    ['an end', ([mail]) => ({ kind: 'substring', attribute: mail, any: [], final: 'x.test' }), ['ada', 'bob', 'cyd']],
    ['a middle', ([mail]) => ({ kind: 'substring', attribute: mail, any: ['ob@'] }), ['bob']],
    [
      'all of several',
      ([mail, name]) => ({ kind: 'and', filters: [equal(name, 'same'), equal(mail, 'ada@x.test')] }),
      ['ada'],
    ],
    [
      'any of several',
      ([mail]) => ({ kind: 'or', filters: [equal(mail, 'ada@x.test'), equal(mail, 'c1@x.test')] }),
      ['ada', 'cyd'],
    ],
    ['a negation', ([mail]) => ({ kind: 'not', filter: equal(mail, 'ada@x.test') }), ['bob', 'cyd']],
    ['a negation of what is not known', ([, , phone]) => ({ kind: 'not', filter: equal(phone, 'x') }), ['cyd']],
    ['all of none', () => ({ kind: 'and', filters: [] }), ['ada', 'bob', 'cyd']],
    ['any of none', () => ({ kind: 'or', filters: [] }), []],
  ]
  const named = cases.map(([what, filter, expected]) => {
    const run = async (fixture: TargetFixture) =>
      assert.deepEqual(await found(await peopled(fixture), filter(fixture.attributes)), expected)
    return [`search by ${what}`, run] as const
  })
  return Object.fromEntries(named)
}

async function peopled(fixture: TargetFixture): Promise<LookupTarget> {
  const { attributes, groups, create } = fixture
  const [mail, name, phone] = attributes
  const target = lookupsOf(fixture)
  const people = [
    userOf('ada', { [mail]: ['ada@x.test'], [name]: ['same'] }, [groups[0]]),
    userOf('bob', { [mail]: ['bob@x.test'], [name]: ['same'] }, [groups[0]]),
    userOf('cyd', { [mail]: ['c1@x.test', 'c2@x.test'], [phone]: ['1'] }, [groups[1]]),
  ]
  for (const user of people) await create(user)
  return target
}

function lookupsOf({ target }: TargetFixture): LookupTarget {
  assert.ok(hasLookups(target), 'the target has no look-ups')
  return target
}

async function found(target: LookupTarget, filter: Filter): Promise<string[]> {
  const { items, total } = await target.searchUsers({ filter, offset: 0, limit: 100 })
  assert.equal(total, items.length)
  return items.map(({ userID }) => userID).sort()
}

async function memberName(target: LookupTarget, login: string): Promise<string> {
  return target.groupMembersAreIds ? ((await target.lookupUserByLogin(login))?.id ?? login) : login
}
