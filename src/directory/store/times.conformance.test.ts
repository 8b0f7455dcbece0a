import fc from 'fast-check'
import { expect, test } from 'vitest'
import { timeAttribute, timeValue, timeValues } from '#identity/entry-times.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import type { SearchPage, SortOrder } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { createGroup, createUser, joinGroup, sync, syncUser, user } from '#testing/databases/directory-writes.ts'
import { asSource } from '#testing/databases/odd-users.ts'
import { followPages, openDirectory } from '#testing/databases/user-directories.ts'
import { sampled } from '#testing/hostile/sample.ts'

const start = Date.UTC(2026, 0, 31, 8)

const sourceOf = (found: User) => ({
  values: (name: string) => {
    const time = timeAttribute(name)
    return time === undefined ? asSource(found).values(name) : timeValues(time, found)
  },
})

const attribute = fc.constantFrom('meta.created', 'meta.lastModified', 'META.LASTMODIFIED')
const time = fc.integer({ min: -5, max: 70 }).map((millis) => timeValue(start + millis))
const kind = fc.constantFrom('equal', 'greaterOrEqual', 'lessOrEqual', 'greater', 'less')
const leaf: fc.Arbitrary<Filter> = fc.oneof(
  { arbitrary: fc.record({ kind, attribute, value: time }), weight: 5 },
  fc.constantFrom<Filter>(
    { kind: 'present', attribute: 'meta.created' },
    { kind: 'equal', attribute: 'sn', value: 'S1' },
    { kind: 'present', attribute: 'sn' },
    { kind: 'substring', attribute: 'userID', initial: 'user1', any: [] },
  ),
)
const { filter } = fc.letrec<{ filter: Filter }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    leaf,
    fc.array(tie('filter'), { maxLength: 3 }).map((filters): Filter => ({ kind: 'and', filters })),
    fc.array(tie('filter'), { maxLength: 3 }).map((filters): Filter => ({ kind: 'or', filters })),
    tie('filter').map((inner): Filter => ({ kind: 'not', filter: inner })),
  ),
}))
const sort: fc.Arbitrary<SortOrder> = fc.record({
  attribute: fc.constantFrom('meta.created', 'meta.lastModified', 'sn'),
  descending: fc.boolean(),
  caseExact: fc.constant(false),
})

const logins = (items: readonly User[]) => items.map(({ userID }) => userID)

const follow = async (...search: Parameters<typeof followPages>): Promise<User[]> =>
  (await followPages(...search)).flatMap(({ items }) => items)

onEachDatabase('times of a directory', (freshUrl) => {
  async function clocked() {
    let now = start
    const directory = await openDirectory(await freshUrl(), () => new Date(now))
    const at = (millis: number): void => {
      now = start + millis
    }
    return { directory, at }
  }
  const change = (userID: string, title: string) => sync(userID, { title: [title] })

  test('filters and sorts by times like memory', async () => {
    const { directory, at } = await clocked()
    for (let i = 0; i < 40; i++) {
      at(i - (i % 4))
      await createUser(directory, user(`user${i}`, i % 3 === 0 ? {} : { sn: [`S${i % 5}`] }))
    }
    for (let i = 0; i < 40; i += 3) {
      at(40 + (i % 7))
      await syncUser(directory, change(`user${i}`, 'changed'))
    }
    const everyone = (await directory.searchUsers({ offset: 0, limit: 100 })).items
    const place = new Map(everyone.map(({ userID }, i) => [userID, i]))
    const key = (found: User, name: string) => (sourceOf(found).values(name)[0] ?? '~').toLowerCase()
    await fc.assert(
      fc.asyncProperty(
        fc.option(filter, { nil: undefined }),
        fc.option(sort, { nil: undefined }),
        fc.integer({ min: 6, max: 15 }),
        fc.nat({ max: 20 }),
        async (asked, order, limit, offset) => {
          const search = {
            ...(asked === undefined ? {} : { filter: asked }),
            ...(order === undefined ? {} : { sort: order }),
          }
          const matching = everyone.filter((found) => asked === undefined || matches(asked, sourceOf(found)))
          if (order !== undefined) {
            const sign = order.descending ? -1 : 1
            matching.sort((a, b) => {
              const [x, y] = [key(a, order.attribute), key(b, order.attribute)]
              return sign * (x < y ? -1 : x > y ? 1 : (place.get(a.userID) ?? 0) - (place.get(b.userID) ?? 0))
            })
          }
          const { items, total } = await directory.searchUsers({ ...search, offset, limit })
          expect({ total, found: logins(items) }).toEqual({
            total: matching.length,
            found: logins(matching.slice(offset, offset + limit)),
          })
          expect(logins(await follow(directory, { ...search, limit }))).toEqual(logins(matching))
        },
      ),
      { numRuns: sampled(40, 150) },
    )
  })

  test('pages and counts ranges of many entries and of few', async () => {
    const { directory, at } = await clocked()
    const count = 2600
    for (let i = 0; i < count; i += 200) {
      at(i)
      await Promise.all(
        Array.from({ length: 200 }, (_, j) => createUser(directory, user(`user${i + j}`, { sn: [`S${j % 2}`] }))),
      )
    }
    const since = (millis: number): Filter => ({
      kind: 'greaterOrEqual',
      attribute: 'meta.lastModified',
      value: timeValue(start + millis),
    })
    const sn: Filter = { kind: 'equal', attribute: 'sn', value: 's1' }
    const order = { attribute: 'meta.lastModified', descending: true, caseExact: false }
    const all = (await follow(directory, { limit: 1000 })).map(({ userID }) => userID)
    for (const [filter, expected] of [
      [since(0), count],
      [since(200), count - 200],
      [since(1200), count - 1200],
      [since(2400), 200],
      [since(count), 0],
      [{ kind: 'and', filters: [since(600), sn] }, (count - 600) / 2],
      [{ kind: 'and', filters: [since(2400), sn] }, 100],
      [{ kind: 'and', filters: [since(400), { kind: 'not', filter: since(600) }] }, 200],
      [{ kind: 'and', filters: [since(400), { ...since(400), kind: 'lessOrEqual' } as Filter] }, 200],
    ] as const) {
      const plain = logins(await follow(directory, { filter, limit: 700 }))
      expect(plain).toHaveLength(expected)
      expect(plain).toEqual(all.filter((login) => plain.includes(login)))
      const far = await directory.searchUsers({ filter, offset: 150, limit: 20 })
      expect([far.total, logins(far.items)]).toEqual([expected, plain.slice(150, 170)])
      const sorted = await follow(directory, { filter, limit: 700, sort: order })
      expect(logins(sorted).toSorted()).toEqual(plain.toSorted())
      const times = sorted.map(({ modified }) => Number(modified))
      expect(times).toEqual(times.toSorted((a, b) => b - a))
    }
  })

  test('in the order of change, returns a user that changes meanwhile again, and misses none', async () => {
    const { directory, at } = await clocked()
    for (let i = 0; i < 30; i++) {
      at(i)
      await createUser(directory, user(`user${i}`))
    }
    const search = {
      filter: { kind: 'greater', attribute: 'meta.lastModified', value: timeValue(start) } as const,
      sort: { attribute: 'meta.lastModified', descending: false, caseExact: false },
      offset: 0,
      limit: 10,
    }
    const first = await directory.searchUsers(search)
    at(100)
    for (const login of ['user0', 'user3', 'user25']) await syncUser(directory, change(login, 'now'))
    const met = logins(first.items)
    for (let after = first.next; after !== undefined; ) {
      const page: SearchPage<User> = await directory.searchUsers({ ...search, after })
      met.push(...logins(page.items))
      after = page.next
    }
    expect(met.filter((login) => login === 'user3')).toHaveLength(2)
    expect(new Set(met).size).toBe(30)
    expect(met.slice(-3).toSorted()).toEqual(['user0', 'user25', 'user3'])
  })

  test('searches groups by their times', async () => {
    const { directory, at } = await clocked()
    for (const [i, name] of ['c', 'a', 'b'].entries()) {
      at(i)
      await createGroup(directory, name)
    }
    at(10)
    await createUser(directory, user('ada'))
    await joinGroup(directory, 'c', ['ada'])
    const order = { attribute: 'meta.lastModified', descending: false, caseExact: false }
    const { items } = await directory.searchGroups({ sort: order, offset: 0, limit: 9 })
    expect(items.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
    const filter: Filter = { kind: 'greater', attribute: 'meta.lastModified', value: timeValue(start + 2) }
    expect((await directory.searchGroups({ filter, offset: 0, limit: 9 })).items).toMatchObject([{ name: 'c' }])
  })

  test.each<[string, Filter]>([
    ['a text that is not a time', { kind: 'greater', attribute: 'meta.created', value: 'yesterday' }],
    ['a day that does not exist', { kind: 'less', attribute: 'meta.created', value: '2026-02-31T00:00:00.000Z' }],
    ['a part of a time', { kind: 'substring', attribute: 'meta.lastModified', initial: '2026', any: [] }],
  ])('%s is a bad request', async (_, filter) => {
    const { directory } = await clocked()
    await expect(directory.searchUsers({ filter, offset: 0, limit: 1 })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('rejects a position that no page in the order of times returned', async () => {
    const { directory } = await clocked()
    for (const login of ['a', 'b', 'c']) await createUser(directory, user(login))
    const search = { offset: 0, limit: 1, sort: { attribute: 'meta.created', descending: false, caseExact: false } }
    const { next = '' } = await directory.searchUsers(search)
    const [digest, entry] = JSON.parse(Buffer.from(next, 'base64url').toString())
    for (const folded of [null, '', 'x', '1e3', '-00000000000001', `${start}`, '9'.repeat(30)]) {
      const after = Buffer.from(JSON.stringify([digest, entry, folded, null, null])).toString('base64url')
      await expect(directory.searchUsers({ ...search, after })).rejects.toMatchObject({ keyword: 'invalidCursor' })
    }
  })
})
