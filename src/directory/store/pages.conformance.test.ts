import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { cutKey } from '#identity/paging.ts'
import type { SearchPage, SortOrder } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { createGroup, createUser, deleteUser, user } from '#testing/databases/directory-writes.ts'
import { asSource, createOddUsers, filter } from '#testing/databases/odd-users.ts'
import { followPages, openDirectory } from '#testing/databases/user-directories.ts'
import { sampled } from '#testing/hostile/sample.ts'

const sorts = fc.record({
  attribute: fc.constantFrom('mail', 'SN', 'größe', 'absent', 'userID', 'id'),
  descending: fc.boolean(),
  caseExact: fc.boolean(),
})

/** The expected order, computed in another way: texts by the bytes of their UTF-8. */
function inOrder(users: readonly User[], { attribute, descending, caseExact }: SortOrder): User[] {
  const own = ['userid', 'id'].includes(attribute.toLowerCase())
  const texts = (found: User): readonly string[] => {
    const value = asSource(found).values(attribute)[0]
    if (value === undefined) return ['1']
    const folded = value.toLowerCase()
    return ['0', own ? folded : cutKey(folded), ...(caseExact ? [[...value].slice(0, 200).join('')] : [])]
  }
  const placed = users.map((found, place) => ({ found, place, texts: texts(found) }))
  placed.sort((a, b) => {
    for (const [i, text] of a.texts.entries()) {
      const order = Buffer.compare(Buffer.from(text), Buffer.from(b.texts[i] ?? ''))
      if (order !== 0) return order
    }
    return a.place - b.place
  })
  const sorted = placed.map(({ found }) => found)
  return descending ? sorted.reverse() : sorted
}

const ids = (items: readonly { id?: string | undefined }[]) => items.map(({ id }) => id)

onEachDatabase('pages of a directory', (freshUrl) => {
  const one = async () => openDirectory(await freshUrl())

  test('returns any order like memory, by offset and by position', async () => {
    const directory = await one()
    const everyone = await createOddUsers(directory)
    await fc.assert(
      fc.asyncProperty(
        fc.option(filter, { nil: undefined }),
        fc.option(sorts, { nil: undefined, freq: 10 }),
        fc.integer({ min: 1, max: 25 }),
        fc.nat({ max: 60 }),
        async (asked, sort, limit, offset) => {
          const search = { ...(asked === undefined ? {} : { filter: asked }), ...(sort === undefined ? {} : { sort }) }
          const matching = everyone.filter((found) => asked === undefined || matches(asked, asSource(found)))
          const expected = ids(sort === undefined ? matching : inOrder(matching, sort))
          const { items, total, next } = await directory.searchUsers({ ...search, offset, limit })
          expect({ total, ids: ids(items) }).toEqual({
            total: expected.length,
            ids: expected.slice(offset, offset + limit),
          })
          expect(next !== undefined).toBe(offset + limit < expected.length)
          const pages = await followPages(directory, { ...search, limit })
          expect(ids(pages.flatMap((page) => page.items))).toEqual(expected)
          expect(pages.every((page) => page.total === expected.length)).toBe(true)
          expect(pages).toHaveLength(Math.max(1, Math.ceil(expected.length / limit)))
          const uncounted = await followPages(directory, { ...search, limit, uncounted: true })
          expect(uncounted.map((page) => ids(page.items))).toEqual(pages.map((page) => ids(page.items)))
        },
      ),
      { numRuns: sampled(60, 400) },
    )
  })

  test.each<SortOrder | undefined>([
    undefined,
    { attribute: 'userID', descending: false, caseExact: false },
    { attribute: 'sn', descending: false, caseExact: false },
    { attribute: 'sn', descending: true, caseExact: true },
  ])('returns a user once while others are created and deleted: %j', async (sort) => {
    const directory = await one()
    const name = (i: number) => `user${(i * 37) % 100}`
    for (let i = 0; i < 60; i++) await createUser(directory, user(name(i), i % 3 === 0 ? {} : { sn: [`S${i % 7}`] }))
    const stays = Array.from({ length: 60 }, (_, i) => i).filter((i) => i % 2 === 0)
    const met: string[] = []
    let after: string | undefined
    let round = 0
    do {
      const page: SearchPage<User> = await directory.searchUsers({
        offset: 0,
        limit: 7,
        ...(sort === undefined ? {} : { sort }),
        ...(after === undefined ? {} : { after }),
      })
      met.push(...page.items.map(({ userID }) => userID))
      after = page.next
      // Delete the last user of the page too: its position must work without it.
      const last = page.items.at(-1)?.userID
      for (const login of [last, name(round * 4 + 1), name(round * 4 + 3)]) {
        if (login !== undefined && !stays.some((i) => name(i) === login)) await deleteUser(directory, login)
      }
      for (const sn of ['S0', 'S9', undefined]) {
        await createUser(directory, user(`new${round}${sn ?? ''}`, sn === undefined ? {} : { sn: [sn] }))
      }
      round++
    } while (after !== undefined && round < 200)
    for (const i of stays) expect(met.filter((login) => login === name(i))).toHaveLength(1)
    expect(new Set(met).size).toBe(met.length)
  })

  test('finds many users without a value, beyond one window of the search', async () => {
    const directory = await one()
    const logins = Array.from({ length: 2300 }, (_, i) => `user${String(i).padStart(4, '0')}`)
    const hasValue = (i: number) => i >= 50 && i < 2250
    for (let i = 0; i < logins.length; i += 100) {
      const batch = logins.slice(i, i + 100).map((login, j) => user(login, hasValue(i + j) ? { sn: ['x'] } : {}))
      await Promise.all(batch.map((each) => createUser(directory, each)))
    }
    const without = new Set(logins.filter((_, i) => !hasValue(i)))
    for (const descending of [false, true]) {
      const sort = { attribute: 'sn', descending, caseExact: false }
      const pages = await followPages(directory, { sort, limit: 1000 })
      const found = pages.flatMap(({ items }) => items.map(({ userID }) => userID))
      expect(found.toSorted()).toEqual(logins)
      expect(new Set(descending ? found.slice(0, 100) : found.slice(-100))).toEqual(without)
      const far = await directory.searchUsers({ sort, offset: descending ? 90 : 2290, limit: 15 })
      expect(far.items.map(({ userID }) => userID)).toEqual(found.slice(descending ? 90 : 2290).slice(0, 15))
      expect(far.total).toBe(2300)
      expect((await directory.searchUsers({ sort, offset: 2300, limit: 5 })).items).toEqual([])
    }
    // Frequent matches, which are near the start of a page, and rare ones, which are far from it.
    for (const initial of ['user', 'user00', 'user1', 'user229', 'user0']) {
      const filter: Filter = { kind: 'substring', attribute: 'userID', initial, any: [] }
      const pages = await followPages(directory, { filter, limit: 20, uncounted: true })
      const expected = logins.filter((login) => login.startsWith(initial))
      expect(pages.flatMap(({ items }) => items.map(({ userID }) => userID)).toSorted()).toEqual(expected)
      for (const { total, items, next } of pages) expect(total).toBe(items.length + (next === undefined ? 0 : 1))
    }
  })

  test('sorts and continues groups in the same way', async () => {
    const directory = await one()
    for (const name of ['beta', 'Alpha', 'gamma', 'delta']) await createGroup(directory, name)
    const sort = { attribute: 'name', descending: true, caseExact: false }
    const first = await directory.searchGroups({ sort, offset: 0, limit: 3 })
    const second = await directory.searchGroups({ sort, offset: 0, limit: 3, after: first.next ?? '' })
    expect([...first.items, ...second.items].map(({ name }) => name)).toEqual(['gamma', 'delta', 'beta', 'Alpha'])
    expect(second.next).toBeUndefined()
  })

  test('rejects the position of another search', async () => {
    const directory = await one()
    for (const login of ['a', 'b', 'c']) await createUser(directory, user(login, { sn: ['x'] }))
    await createGroup(directory, 'g')
    const sort = { attribute: 'sn', descending: false, caseExact: false }
    const asked: Filter = { kind: 'present', attribute: 'sn' }
    const search = { offset: 0, limit: 1, sort, filter: asked }
    const { next = '' } = await directory.searchUsers(search)
    expect((await directory.searchUsers({ ...search, after: next })).items).toMatchObject([{ userID: 'b' }])
    expect((await directory.searchUsers({ ...search, sort: { ...sort, attribute: 'SN' }, after: next })).total).toBe(3)
    const plain = { offset: 0, limit: 1, after: next }
    const [digest, ...rest] = JSON.parse(Buffer.from(next, 'base64url').toString())
    const forged = (...parts: unknown[]) => Buffer.from(JSON.stringify([digest, ...parts])).toString('base64url')
    for (const wrong of [
      plain,
      { ...search, sort: { ...sort, descending: true }, after: next },
      { ...search, filter: { kind: 'present', attribute: 'mail' } as const, after: next },
      ...[
        '',
        'x',
        '%',
        next.slice(1),
        next.slice(0, -3),
        `${next}A`.repeat(300),
        'e30',
        'W10',
        'bnVsbA',
        forged(...rest.slice(1)),
        forged(1, ...rest.slice(1)),
        forged('-1', ...rest.slice(1)),
        forged('1e3', ...rest.slice(1)),
        forged('9'.repeat(30), ...rest.slice(1)),
        forged(rest[0], 'a\0', null, null),
        forged(rest[0], '\ud800', null, null),
        forged(rest[0], {}, null, null),
        forged(rest[0], null, [], null),
        forged(rest[0], null, null, -1),
        forged(rest[0], null, null, 'x'),
      ].map((after) => ({ ...search, after })),
    ]) {
      await expect(directory.searchUsers(wrong), JSON.stringify(wrong)).rejects.toMatchObject({
        code: 'BAD_REQUEST',
        keyword: 'invalidCursor',
      })
    }
    await expect(directory.searchGroups(plain)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    const unsorted = await directory.searchUsers({ offset: 0, limit: 1 })
    await expect(directory.searchGroups({ offset: 0, limit: 1, after: unsorted.next ?? '' })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
    await expect(
      directory.searchUsers({ offset: 0, limit: 1, sort: { ...sort, attribute: 'a\0' } }),
    ).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })
})
