import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { createUser, user } from '#testing/databases/directory-writes.ts'
import { asSource, createOddUsers, filter } from '#testing/databases/odd-users.ts'
import { openDirectory } from '#testing/databases/user-directories.ts'
import { sampled } from '#testing/hostile/sample.ts'

onEachDatabase('filters of a directory', (freshUrl) => {
  const open = async () => openDirectory(await freshUrl())

  test('a filter finds the same users in the database as in memory', async () => {
    const directory = await open()
    const everyone = await createOddUsers(directory)
    const sources = everyone.map((found) => ({ id: found.id, source: asSource(found) }))
    await fc.assert(
      fc.asyncProperty(filter, fc.nat({ max: 5 }), async (asked, offset) => {
        const expected = sources.filter(({ source }) => matches(asked, source)).map(({ id }) => id)
        const { items, total } = await directory.searchUsers({ filter: asked, offset, limit: 7 })
        expect({ total, ids: items.map(({ id }) => id) }).toEqual({
          total: expected.length,
          ids: expected.slice(offset, offset + 7),
        })
      }),
      { numRuns: sampled(250, 1500) },
    )
  })

  test('never treats a value in a filter as SQL', async () => {
    const directory = await open()
    await createUser(directory, user('alice', { mail: ["' or 1=1 --"] }))
    await createUser(directory, user('bob', { mail: ['100%'] }))
    const find = async (asked: Filter) =>
      (await directory.searchUsers({ filter: asked, offset: 0, limit: 9 })).items.map(({ userID }) => userID)
    expect(await find({ kind: 'equal', attribute: 'mail', value: "' or 1=1 --" })).toEqual(['alice'])
    expect(await find({ kind: 'equal', attribute: "mail' or '1'='1", value: 'x' })).toEqual([])
    expect(await find({ kind: 'substring', attribute: 'mail', any: ['%'] })).toEqual(['bob'])
    expect(await find({ kind: 'substring', attribute: 'mail', any: ['_'] })).toEqual([])
  })

  test('finds the end of a value that is longer than its index key, not the end of the key', async () => {
    const directory = await open()
    await createUser(directory, user('long', { mail: [`${'x'.repeat(2000)}tail`] }))
    await createUser(directory, user('short', { mail: ['axx', 'xtail'] }))
    const endingWith = async (final: string) =>
      (
        await directory.searchUsers({
          filter: { kind: 'substring', attribute: 'mail', any: [], final },
          offset: 0,
          limit: 9,
        })
      ).items.map(({ userID }) => userID)
    expect(await endingWith('xx')).toEqual(['short'])
    expect(await endingWith('xtail')).toEqual(['long', 'short'])
  })

  test.each<[string, Filter]>([
    ['a NUL character', { kind: 'equal', attribute: 'mail', value: 'a\0b' }],
    ['a NUL character in a name', { kind: 'present', attribute: 'a\0b' }],
    ['half a surrogate pair', { kind: 'less', attribute: 'mail', value: '\ud800' }],
    ['half a surrogate pair in a substring', { kind: 'substring', attribute: 'mail', any: ['\ud800'] }],
    ['a substring that is too long', { kind: 'substring', attribute: 'mail', any: ['x'.repeat(50_000)] }],
    [
      'too many clauses',
      { kind: 'or', filters: Array.from({ length: 300 }, () => ({ kind: 'present', attribute: 'a' }) as const) },
    ],
  ])('%s in a filter is a bad request', async (_, asked) => {
    const directory = await open()
    await expect(directory.searchUsers({ filter: asked, offset: 0, limit: 1 })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
  })

  test('evaluates a filter with many clauses', async () => {
    const directory = await open()
    await createUser(directory, user('alice', { mail: ['150'] }))
    const filters = Array.from(
      { length: 190 },
      (_, i) => ({ kind: 'equal', attribute: 'mail', value: `${i}` }) as const,
    )
    const none = filters.slice(100).map((each): Filter => ({ kind: 'not', filter: each }))
    const inverse: Filter = { kind: 'not', filter: { kind: 'and', filters: none } }
    expect((await directory.searchUsers({ filter: { kind: 'or', filters }, offset: 0, limit: 1 })).total).toBe(1)
    expect((await directory.searchUsers({ filter: inverse, offset: 0, limit: 1 })).total).toBe(1)
  })
})
