import fc from 'fast-check'
import { expect } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { AttributeSource } from '#identity/filter/attribute-source.ts'
import type { User } from '#identity/user.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { createUser } from '#testing/databases/directory-writes.ts'

/** Values that databases and JavaScript often treat differently. */
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

/** Any filter about users of `createOddUsers`. */
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
/** Names of users: values of the same kind that are valid logins. */
const logins = values.filter((value) => value !== '' && Buffer.byteLength(value) <= 512)

/** Users whose logins and values are hard to compare, in the order of creation. */
export async function createOddUsers(directory: UserDirectory): Promise<readonly User[]> {
  const taken = new Set<string>()
  for (const [i, attributes] of fc.sample(anyAttributes, { numRuns: 60, seed: 7 }).entries()) {
    const wanted = logins[i % logins.length] ?? ''
    const userID = taken.has(wanted.toLowerCase()) ? `${i}-${wanted}` : wanted
    taken.add(userID.toLowerCase())
    if (Buffer.byteLength(userID) <= 512) await createUser(directory, { userID, attributes, groups: [] })
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
