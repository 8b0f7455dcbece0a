import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type AttributeSource, Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import type { User } from '#identity/user.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { user } from '#storage/conformance/user-directory.ts'

/** Values that databases and JavaScript like to disagree about. */
const values = [
  '',
  'a',
  'A',
  'ab',
  'aB',
  'abc',
  'b',
  'B',
  '%',
  '_',
  'a%b',
  'a_b',
  'a\\b',
  '\\',
  "'",
  '"',
  '*',
  ' a',
  'a ',
  'ä',
  'Ä',
  'ß',
  'SS',
  'İ',
  'i',
  'I',
  'ı',
  'Σ',
  'ς',
  'σ',
  'ΑΣ',
  'ας',
  'ασα',
  'ΑΣΑ',
  '\u{1f600}',
  '\uffff',
  '\ue000',
  '\ud7ff',
  '\u{10ffff}',
  'a\u{10ffff}',
  '1',
  '01',
  '2',
  '10',
  '-1',
  '-0',
  '0',
  '9',
  '1a',
  '999999999999999999',
  '1000000000000000000',
  'true',
  'null',
  '\n',
  'x'.repeat(199),
  'x'.repeat(200),
  'x'.repeat(201),
  'X'.repeat(202),
  `${'x'.repeat(200)}y`,
  `${'x'.repeat(201)}z`,
  `${'x'.repeat(200)}\u{1f600}`,
  `${'x'.repeat(200)}\u{1f600}tail`,
  'x'.repeat(5000),
]
const names = ['mail', 'SN', 'sn', 'Größe', 'absent', 'userID', 'id']

const anyValue = fc.constantFrom(...values)
const anyName = fc.constantFrom(...names)
const exactness = fc.constantFrom({}, {}, { caseExact: true })

const leaf: fc.Arbitrary<Filter> = fc.oneof(
  anyName.map((attribute): Filter => ({ kind: 'present', attribute })),
  fc
    .tuple(
      fc.constantFrom('equal', 'approximate', 'greaterOrEqual', 'lessOrEqual', 'greater', 'less'),
      anyName,
      anyValue,
      exactness,
    )
    .map(([kind, attribute, value, exact]): Filter => ({ kind, attribute, value, ...exact })),
  fc
    .tuple(anyName, fc.option(anyValue), fc.array(anyValue, { maxLength: 2 }), fc.option(anyValue), exactness)
    .map(([attribute, initial, any, final, exact]): Filter => {
      const ends = { ...(initial === null ? {} : { initial }), ...(final === null ? {} : { final }) }
      return { kind: 'substring', attribute, any, ...ends, ...exact }
    }),
)

/** Any filter about such users as `createOddUsers` makes. */
export const { filter } = fc.letrec<{ filter: Filter }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc.array(tie('filter'), { maxLength: 3 }).map((filters): Filter => ({ kind: 'and', filters })),
    fc.array(tie('filter'), { maxLength: 3 }).map((filters): Filter => ({ kind: 'or', filters })),
    tie('filter').map((inner): Filter => ({ kind: 'not', filter: inner })),
  ),
}))

const anyAttributes = fc
  .array(fc.tuple(fc.constantFrom('mail', 'sn', 'größe', 'other'), fc.array(anyValue, { maxLength: 3 })), {
    maxLength: 3,
  })
  .map((pairs) => Attributes.from(pairs))
/** Names of users: values of the same kind, as far as they can be one. */
const logins = values.filter((value) => value !== '' && Buffer.byteLength(value) <= 512)

/** Users whose logins and values are hard to compare, in the order of creation. */
export async function createOddUsers(directory: UserDirectory): Promise<readonly User[]> {
  const taken = new Set<string>()
  for (const [i, attributes] of fc.sample(anyAttributes, { numRuns: 60, seed: 7 }).entries()) {
    const wanted = logins[i % logins.length] ?? ''
    const userID = taken.has(wanted.toLowerCase()) ? `${i}-${wanted}` : wanted
    taken.add(userID.toLowerCase())
    if (Buffer.byteLength(userID) <= 512) await directory.create({ userID, attributes, groups: [] })
  }
  const { items } = await directory.searchUsers({ offset: 0, limit: 1000 })
  expect(items.length).toBeGreaterThan(50)
  return items
}

/** A user as filters see it. */
export const asSource = (found: User): AttributeSource => ({
  values: (name) => {
    const key = name.toLowerCase()
    if (key === 'userid') return [found.userID]
    return key === 'id' ? [found.id ?? ''] : found.attributes.values(name)
  },
})

/** The filters of a directory mean what `evaluate` says; `open` gives a directory of that name in the test's database. */
export function filterConformance(open: () => Promise<(name: string) => UserDirectory>): void {
  test('a filter finds in the database what it finds in memory', async () => {
    const directory = (await open())('people')
    const everybody = await createOddUsers(directory)
    const sources = everybody.map((found) => ({ id: found.id, source: asSource(found) }))
    await fc.assert(
      fc.asyncProperty(filter, fc.nat({ max: 5 }), async (asked, offset) => {
        const expected = sources.filter(({ source }) => matches(asked, source)).map(({ id }) => id)
        const { items, total } = await directory.searchUsers({ filter: asked, offset, limit: 7 })
        expect({ total, ids: items.map(({ id }) => id) }).toEqual({
          total: expected.length,
          ids: expected.slice(offset, offset + 7),
        })
      }),
      { numRuns: 1500 },
    )
  })

  test('values in a filter are values, whatever they look like', async () => {
    const directory = (await open())('people')
    await directory.create(user('alice', { mail: ["' or 1=1 --"] }))
    await directory.create(user('bob', { mail: ['100%'] }))
    const find = async (asked: Filter) =>
      (await directory.searchUsers({ filter: asked, offset: 0, limit: 9 })).items.map(({ userID }) => userID)
    expect(await find({ kind: 'equal', attribute: 'mail', value: "' or 1=1 --" })).toEqual(['alice'])
    expect(await find({ kind: 'equal', attribute: "mail' or '1'='1", value: 'x' })).toEqual([])
    expect(await find({ kind: 'substring', attribute: 'mail', any: ['%'] })).toEqual(['bob'])
    expect(await find({ kind: 'substring', attribute: 'mail', any: ['_'] })).toEqual([])
  })

  test('the end of a value that is longer than its key is found, and the end of the key is not', async () => {
    const directory = (await open())('people')
    await directory.create(user('long', { mail: [`${'x'.repeat(2000)}tail`] }))
    await directory.create(user('short', { mail: ['axx', 'xtail'] }))
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
    const directory = (await open())('people')
    await expect(directory.searchUsers({ filter: asked, offset: 0, limit: 1 })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
  })

  test('a filter with many clauses is answered', async () => {
    const directory = (await open())('people')
    await directory.create(user('alice', { mail: ['150'] }))
    const filters = Array.from(
      { length: 190 },
      (_, i) => ({ kind: 'equal', attribute: 'mail', value: `${i}` }) as const,
    )
    const none = filters.slice(100).map((each): Filter => ({ kind: 'not', filter: each }))
    const inverse: Filter = { kind: 'not', filter: { kind: 'and', filters: none } }
    expect((await directory.searchUsers({ filter: { kind: 'or', filters }, offset: 0, limit: 1 })).total).toBe(1)
    expect((await directory.searchUsers({ filter: inverse, offset: 0, limit: 1 })).total).toBe(1)
  })
}
