import assert from 'node:assert/strict'
import { timeValue, timeValues } from '#identity/entry-times.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { SearchQuery, SortOrder } from '#identity/search.ts'
import { type TargetCases, type TargetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasLookups, type LookupTarget } from '#sdk/target/target.ts'

/** Orders and positions, for targets with lookups. */
export const pageCases: TargetCases = {
  'search in order: by the first value without letter case, users without one last; and in reverse': async (
    fixture,
  ) => {
    const target = await peopled(fixture)
    const [mail, name] = fixture.attributes
    const order = async (sort: Partial<SortOrder>) => {
      const all: SortOrder = { attribute: name, descending: false, caseExact: false, ...sort }
      return (await target.searchUsers({ offset: 0, limit: 10, sort: all })).items.map(({ userID }) => userID)
    }
    assert.deepEqual(await order({}), ['cyd', 'bob', 'eve', 'ada', 'dan'])
    assert.deepEqual(await order({ descending: true }), ['dan', 'ada', 'eve', 'bob', 'cyd'])
    assert.deepEqual(await order({ attribute: mail }), ['dan', 'cyd', 'bob', 'ada', 'eve'])
    assert.deepEqual(await order({ attribute: 'userID' }), ['ada', 'bob', 'cyd', 'dan', 'eve'])
    assert.deepEqual((await order({ caseExact: true })).slice(0, 4), ['cyd', 'bob', 'eve', 'ada'])
  },
  'pages by position equal pages by offset, and the last has no next position': async (fixture) => {
    const target = await peopled(fixture)
    const [mail, name] = fixture.attributes
    const queries: Omit<SearchQuery, 'offset' | 'limit'>[] = [
      {},
      { filter: { kind: 'present', attribute: name } },
      { sort: { attribute: mail, descending: false, caseExact: false } },
      { sort: { attribute: name, descending: true, caseExact: true } },
      {
        filter: { kind: 'present', attribute: mail },
        sort: { attribute: name, descending: false, caseExact: false },
      },
    ]
    for (const query of queries) {
      const logins = async (more: Pick<SearchQuery, 'offset' | 'limit'>) =>
        (await target.searchUsers({ ...query, ...more })).items.map(({ userID }) => userID)
      const all = await logins({ offset: 0, limit: 10 })
      const followed: string[] = []
      let after: string | undefined
      let pages = 0
      do {
        const wanted = { ...query, offset: 0, limit: 2, ...(after === undefined ? {} : { after }) }
        const page = await target.searchUsers(wanted)
        const uncounted = await target.searchUsers({ ...wanted, uncounted: true })
        assert.deepEqual(
          uncounted.items.map(({ userID }) => userID),
          page.items.map(({ userID }) => userID),
        )
        assert.equal(uncounted.next === undefined, page.next === undefined)
        assert.ok(uncounted.total <= page.total)
        const found = page.items.map(({ userID }) => userID)
        assert.deepEqual(found, await logins({ offset: pages * 2, limit: 2 }))
        assert.equal(page.total, all.length)
        followed.push(...found)
        after = page.next
        pages++
      } while (after !== undefined && pages < 10)
      assert.deepEqual(followed, all)
      assert.equal(pages, Math.ceil(all.length / 2))
    }
  },
  'times in searches equal the shown times': async (fixture) => {
    const target = await peopled(fixture)
    const ada = await target.lookupUserByLogin('ada')
    assert.ok(ada !== undefined)
    for (const attribute of target.servedTimes?.users ?? []) {
      const [value] = timeValues(attribute, ada)
      assert.ok(value !== undefined, `${attribute} is served and not shown`)
      const finds = async (filter: Filter) =>
        (await target.searchUsers({ filter, offset: 0, limit: 10 })).items.some(({ userID }) => userID === 'ada')
      for (const [kind, expected] of [
        ['equal', true],
        ['greaterOrEqual', true],
        ['lessOrEqual', true],
        ['greater', false],
        ['less', false],
      ] as const) {
        assert.equal(await finds({ kind, attribute, value }), expected, `${attribute} ${kind}`)
        const negated: Filter = { kind: 'not', filter: { kind, attribute, value } }
        assert.equal(await finds(negated), !expected, `not ${attribute} ${kind}`)
      }
      const hourAgo = timeValue(Date.parse(value) - 3_600_000)
      assert.equal(await finds({ kind: 'greater', attribute, value: hourAgo }), true)
      assert.equal(await finds({ kind: 'less', attribute, value: hourAgo }), false)
      const sort = { attribute, descending: true, caseExact: false }
      const { items } = await target.searchUsers({ sort, offset: 0, limit: 10 })
      const shown = items.flatMap((user) => timeValues(attribute, user))
      assert.deepEqual(shown, shown.toSorted().reverse())
      assert.equal(shown.length, 5)
    }
  },
  'rejects the position of another search': async (fixture) => {
    const target = await peopled(fixture)
    const sort = { attribute: fixture.attributes[0], descending: false, caseExact: false }
    const { next = '' } = await target.searchUsers({ offset: 0, limit: 2, sort })
    assert.notEqual(next, '')
    const wrong: Partial<SearchQuery>[] = [
      { after: '' },
      { after: 'nonsense' },
      { after: 'x'.repeat(20_000) },
      { after: next },
      { after: next, sort: { ...sort, descending: true } },
    ]
    for (const query of wrong) {
      await assert.rejects(target.searchUsers({ offset: 0, limit: 2, ...query }), { code: 'BAD_REQUEST' })
    }
    await assert.rejects(target.searchGroups({ offset: 0, limit: 2, sort, after: next }), { code: 'BAD_REQUEST' })
  },
}

async function peopled({ target, attributes, groups, create }: TargetFixture): Promise<LookupTarget> {
  assert.ok(hasLookups(target), 'the target has no look-ups')
  const [mail, name] = attributes
  const people = [
    userOf('ada', { [mail]: ['d@x.test'], [name]: ['zoe'] }, [groups[0]]),
    userOf('bob', { [mail]: ['c@x.test', 'a@x.test'], [name]: ['B'] }),
    userOf('cyd', { [mail]: ['b@x.test'], [name]: ['a'] }),
    userOf('dan', { [mail]: ['A@x.test'] }),
    userOf('eve', { [name]: ['C'] }),
  ]
  for (const user of people) await create(user)
  return target
}
