import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Difference } from '#features/reconciliation/plan/difference.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { LookupTarget } from '#sdk/target/target.ts'
import {
  addUser,
  comparedSystems,
  compareWhole,
  idOf,
  memoryTarget,
  quietRequest,
} from '#testing/reconciliation/compared-systems.ts'
import { compare } from './compare.ts'
import { canMerge } from './merge.ts'
import type { ComparedSystems } from './systems.ts'

const spec = `attributes: [{ name: mail, source: mail, sourceType: user }]
missing: create
different: change
extra: delete
`

/** Pages of two users. */
const inSmallPages = <T extends LookupTarget>(target: T): T => ({
  ...target,
  searchUsers: (query) => target.searchUsers({ ...query, limit: Math.min(query.limit, 2) }),
})

/** The same systems, which can't be read in order. */
const unsorted = (systems: ComparedSystems): ComparedSystems => ({
  ...systems,
  target: { ...systems.target, sortsLogins: false },
})

const byKey = (differences: readonly Difference[]): readonly Difference[] =>
  differences.toSorted((one, other) => (one.key < other.key ? -1 : 1))

test('ranges of logins give the same plan as whole sides, from wherever they are resumed', async () => {
  const source = memoryTarget()
  const target = memoryTarget()
  const logins = ['ada', 'Ben', 'carl', 'DORA', 'eve', 'ſam', 'zoë', '😀', 'x'.repeat(250), `${'x'.repeat(250)}y`]
  const side = fc
    .subarray(logins)
    .chain((list) =>
      fc.tuple(
        ...list.map((login) =>
          fc.record({ login: fc.constant(login), mail: fc.constantFrom('a@x', 'b@x'), robot: fc.boolean() }),
        ),
      ),
    )
  const links = fc.uniqueArray(
    fc.record({
      source: fc.constantFrom(...logins),
      target: fc.option(fc.constantFrom(...logins, 'gone'), { nil: undefined }),
    }),
    { selector: (link) => link.source, maxLength: 3 },
  )
  const refill = async (
    users: LookupTarget & ReturnType<typeof memoryTarget>,
    given: readonly { login: string; mail: string; robot: boolean }[],
  ) => {
    for (const user of (await users.searchUsers({ offset: 0, limit: 100 })).items)
      await users.deleteUser(user, quietRequest)
    for (const { login, mail, robot } of given)
      await addUser(users, login, { mail: [mail], ...(robot ? { type: ['robot'] } : {}) })
  }
  await fc.assert(
    fc.asyncProperty(side, side, links, fc.boolean(), async (people, accounts, given, isScoped) => {
      await refill(source, people)
      await refill(target, accounts)
      const stored = await Promise.all(
        given.map(async (link) => ({
          source: await idOf(source, link.source),
          ...(link.target === undefined ? {} : { target: await idOf(target, link.target) }),
        })),
      )
      const systems = await comparedSystems({
        source: inSmallPages(source),
        target: inSmallPages(target),
        spec: isScoped ? `${spec}scope: { filter: (!(mail=b@x)) }\n` : spec,
        from: isScoped ? '{ target: people, filter: (|(!(type=*))(!(type=robot))) }' : '{ target: people }',
        links: stored,
      })
      expect([canMerge(systems), canMerge(unsorted(systems))]).toEqual([true, false])
      const whole = await compareWhole(unsorted(systems))
      const merged = await compareWhole(systems)
      expect(byKey(merged.differences)).toEqual(byKey(whole.differences))
      expect(merged.counts).toEqual(whole.counts)
      // Killed after every part.
      const found: Difference[] = []
      let resumeAt: string | undefined
      for (;;) {
        const parts = compare(systems, resumeAt)
        const { value: part } = await parts.next()
        await parts.return(undefined)
        if (part === undefined) break
        found.push(...part.differences)
        resumeAt = part.resumeAt
      }
      expect(byKey(found)).toEqual(byKey(whole.differences))
    }),
    { numRuns: 60, endOnFailure: true },
  )
})

describe('a side that cannot be believed', () => {
  const people = 1200
  test.each<[string, (source: LookupTarget) => Partial<LookupTarget>, object]>([
    [
      'ends early',
      (source) => ({
        searchUsers: async (query) => {
          const { next: _, ...page } = await source.searchUsers(query)
          return page
        },
      }),
      { code: 'TARGET_FAILED', message: expect.stringContaining('ended after 500 users, but says that it has 1200') },
    ],
    ['is empty', () => ({ searchUsers: async () => ({ items: [], total: people }) }), { code: 'TARGET_FAILED' }],
    [
      'lies about its total',
      (source) => ({ searchUsers: async (query) => ({ ...(await source.searchUsers(query)), total: 5000 }) }),
      { code: 'TARGET_FAILED', message: expect.stringContaining('ended after 1200 users, but says that it has 5000') },
    ],
    [
      'is in another order',
      (source) => ({
        searchUsers: async (query) => {
          const page = await source.searchUsers(query)
          return { ...page, items: page.items.toReversed() }
        },
      }),
      { code: 'TARGET_FAILED', message: expect.stringContaining('is not in the order of logins') },
    ],
    [
      'repeats a page',
      (source) => {
        let pages = 0
        return {
          searchUsers: (query) => source.searchUsers({ ...query, ...(++pages === 3 ? { after: undefined } : {}) }),
        }
      },
      { code: 'TARGET_FAILED', message: expect.stringContaining('is not in the order of logins') },
    ],
    [
      'fails in the middle',
      (source) => ({
        searchUsers: async (query) => {
          if (query.after !== undefined) throw new GatewayError('TARGET_UNREACHABLE', 'down')
          return source.searchUsers(query)
        },
      }),
      { code: 'TARGET_UNREACHABLE' },
    ],
  ])('%s: no account counts as extra', async (_, change, error) => {
    const source = memoryTarget()
    const target = memoryTarget()
    for (let i = 0; i < people; i++) {
      await addUser(source, `user${i}`)
      await addUser(target, `user${i}`)
    }
    const systems = await comparedSystems({ source: { ...source, ...change(source) }, target, spec })
    const found: Difference[] = []
    const end = (async () => {
      for await (const { differences } of compare(systems)) found.push(...differences)
    })()
    await expect(end).rejects.toMatchObject(error)
    expect(found).toEqual([])
  })
})

test('a dense side does not make the other one wait in memory', async () => {
  const source = memoryTarget()
  const target = memoryTarget()
  for (let i = 0; i < 60; i++) await addUser(source, `a${String(i).padStart(3, '0')}`)
  for (let i = 0; i < 60; i++) await addUser(target, `b${String(i).padStart(3, '0')}`)
  let ahead = 0
  let most = 0
  const counted = (users: ReturnType<typeof memoryTarget>, step: number) => ({
    ...inSmallPages(users),
    searchUsers: async (query: Parameters<LookupTarget['searchUsers']>[0]) => {
      ahead += step
      most = Math.max(most, ahead)
      return users.searchUsers({ ...query, limit: Math.min(query.limit, 2) })
    },
  })
  const systems = await comparedSystems({ source: counted(source, -1), target: counted(target, 1), spec })
  const { counts, differences } = await compareWhole(systems)
  expect([counts.source, counts.target, differences.length]).toEqual([60, 60, 120])
  expect(most).toBeLessThan(3)
})
