import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareEntries } from './compare.ts'
import type { ComparedEntry } from './compared-entry.ts'

const entry = (given: Partial<ComparedEntry>): ComparedEntry => ({ login: 'ada', attributes: {}, groups: [], ...given })
const nothing = { attributes: [], groups: { add: [], remove: [] } }

test('values are a set, and letter case counts in them', () => {
  const mails = (...mail: string[]) => entry({ attributes: { mail } })
  expect(compareEntries(mails('b', 'a', 'b'), mails('a', 'b'))).toEqual(nothing)
  expect(compareEntries(mails('a', 'B'), mails('a', 'b')).attributes).toEqual([
    { name: 'mail', from: ['a', 'b'], to: ['B', 'a'] },
  ])
  expect(compareEntries(entry({}), mails('a')).attributes).toEqual([{ name: 'mail', from: ['a'], to: [] }])
})

test('letter case does not count in logins and groups', () => {
  expect(compareEntries(entry({ login: 'ADA', groups: ['Staff'] }), entry({ groups: ['staff', 'STAFF'] }))).toEqual(
    nothing,
  )
  expect(compareEntries(entry({ login: 'lovelace', groups: ['a', 'b'] }), entry({ groups: ['B', 'c'] }))).toEqual({
    attributes: [{ name: 'TREMOLO_USER_ID', from: ['ada'], to: ['lovelace'] }],
    groups: { add: ['a'], remove: ['c'] },
  })
})

test('JSON is compared as JSON', () => {
  const name = (text: string) => entry({ attributes: { name: [text] } })
  expect(compareEntries(name('{"a":1,"b":[{"x":1,"y":2}]}'), name('{ "b": [{"y": 2, "x": 1}], "a": 1 }'))).toEqual(
    nothing,
  )
  expect(compareEntries(name('[1,2]'), name('[2,1]')).attributes).toHaveLength(1)
  expect(compareEntries(name('{x'), name('{ x')).attributes).toHaveLength(1)
})

test('long values and lists are cut, and still differ', () => {
  const long = (end: string) => entry({ attributes: { note: [`${'x'.repeat(10_000)}${end}`] } })
  const [shown] = compareEntries(long('a'), long('b')).attributes
  expect(shown?.from).not.toEqual(shown?.to)
  expect(shown?.to[0]).toMatch(/^x{500}… \(10001 characters, SHA-256 [0-9a-f]{16}\)$/)
  const many = Array.from({ length: 1000 }, (_, i) => `v${i}`)
  const [cut] = compareEntries(entry({ attributes: { tags: many } }), entry({})).attributes
  expect(cut?.to).toHaveLength(101)
})

test('what is compared with itself agrees, and what differs is named both ways', () => {
  const entries = fc.record({
    login: fc.string({ minLength: 1 }),
    attributes: fc.dictionary(
      fc.constantFrom('a', 'b', '__proto__'),
      fc.array(fc.string(), { minLength: 1, maxLength: 3 }),
    ),
    groups: fc.uniqueArray(fc.string(), { maxLength: 4, selector: (name) => name.toLowerCase() }),
  })
  fc.assert(
    fc.property(entries, entries, (one, other) => {
      expect(compareEntries(one, one)).toEqual(nothing)
      const there = compareEntries(one, other)
      const back = compareEntries(other, one)
      expect(there.attributes.map(({ name, from, to }) => ({ name, from: to, to: from })).sort(byName)).toEqual(
        back.attributes.toSorted(byName),
      )
      expect(there.groups.add.length).toBe(back.groups.remove.length)
    }),
  )
})

const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1)
