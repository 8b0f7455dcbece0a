import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import {
  type Collection,
  compareSortKeys,
  cutKey,
  pageInMemory,
  readPosition,
  sortKey,
  writePosition,
} from '#identity/paging.ts'
import type { SearchQuery } from '#identity/search.ts'

interface Item {
  readonly key: string
  readonly attributes: Attributes
}

const collection: Collection<Item> = { of: 'items', source: ({ attributes }) => attributes, key: ({ key }) => key }
const item = (key: string, ...sn: string[]): Item => ({ key, attributes: Attributes.from({ sn }) })
const order = (more = {}) => ({ attribute: 'sn', descending: false, caseExact: false, ...more })
const keys = (items: readonly Item[], search: Partial<SearchQuery>) =>
  pageInMemory(items, { offset: 0, limit: 100, ...search }, collection).items.map(({ key }) => key)

const texts = fc.string({ unit: fc.constantFrom('a', 'A', 'b', 'ß', 'Σ', '\uffff', '\u{1f600}', '\0', '\ud800') })
const items = fc
  .uniqueArray(fc.tuple(fc.string({ minLength: 1, maxLength: 4 }), fc.array(texts, { maxLength: 2 })), {
    selector: ([key]) => key,
    maxLength: 20,
  })
  .map((pairs) => pairs.map(([key, sn]) => item(key, ...sn)))

test('a page continues after an entry whose key is too long for a position', () => {
  const long = ['a', 'b'].map((end) => item(`${'\0'.repeat(20_000)}${end}`))
  const seen: string[] = []
  let after: string | undefined
  do {
    const page = pageInMemory(
      [...long, item('z')],
      { offset: 0, limit: 1, ...(after === undefined ? {} : { after }) },
      collection,
    )
    seen.push(...page.items.map(({ key }) => key))
    after = page.next
  } while (after !== undefined)
  expect(seen.toSorted()).toEqual([...long.map(({ key }) => key), 'z'].toSorted())
})

describe('sort keys', () => {
  test('have one consistent order', () => {
    const any = fc.tuple(fc.option(texts, { nil: undefined }), fc.boolean())
    fc.assert(
      fc.property(fc.boolean(), fc.array(any, { minLength: 3, maxLength: 3 }), (caseExact, values) => {
        const [a, b, c] = values.map(([value]) => sortKey(value, caseExact)).sort(compareSortKeys)
        if (a === undefined || b === undefined || c === undefined) return
        expect(compareSortKeys(a, b)).toBeLessThanOrEqual(0)
        expect(compareSortKeys(b, c)).toBeLessThanOrEqual(0)
        expect(compareSortKeys(a, c)).toBeLessThanOrEqual(0)
        expect(Math.sign(compareSortKeys(c, a)) + Math.sign(compareSortKeys(a, c))).toBe(0)
      }),
    )
  })

  test('letters come before their case, and code points before UTF-16 units', () => {
    expect(keys([item('1', 'b'), item('2', 'B'), item('3', 'a')], { sort: order({ caseExact: true }) })).toEqual([
      '3',
      '2',
      '1',
    ])
    expect(keys([item('1', '\u{1f600}'), item('2', '\uffff')], { sort: order() })).toEqual(['2', '1'])
  })

  test('long values count by their beginnings, never by half a character', () => {
    expect(cutKey('x'.repeat(300))).toHaveLength(201)
    expect(cutKey(`${'x'.repeat(200)}\u{1f600}y`)).toBe(`${'x'.repeat(200)}\u{1f600}`)
    expect(sortKey('\u{1f600}'.repeat(300), true).exact).toBe('\u{1f600}'.repeat(200))
  })
})

describe('pages', () => {
  test('entries without a value are last, or first in descending order, and ties are ordered by key', () => {
    const all = [item('4'), item('1', 'b'), item('3', 'B'), item('2', 'a', 'z')]
    expect(keys(all, { sort: order() })).toEqual(['2', '1', '3', '4'])
    expect(keys(all, { sort: order({ descending: true }) })).toEqual(['4', '3', '1', '2'])
    expect(keys(all, {})).toEqual(['1', '2', '3', '4'])
  })

  test('followed by position, they return every entry once, in the order of one large page', () => {
    fc.assert(
      fc.property(
        items,
        fc.option(fc.record({ descending: fc.boolean(), caseExact: fc.boolean() }), { nil: undefined }),
        fc.integer({ min: 1, max: 7 }),
        (all, sort, limit) => {
          const search = sort === undefined ? {} : { sort: order(sort) }
          const found: string[] = []
          let after: string | undefined
          let pages = 0
          do {
            const page = pageInMemory(
              all,
              { offset: 0, limit, ...search, ...(after === undefined ? {} : { after }) },
              collection,
            )
            found.push(...page.items.map(({ key }) => key))
            expect(page.total).toBe(all.length)
            after = page.next
            pages++
          } while (after !== undefined && pages <= 20)
          expect(found).toEqual(keys(all, search))
          expect(pages).toBe(Math.max(1, Math.ceil(all.length / limit)))
        },
      ),
    )
  })
})

describe('positions', () => {
  const scope = { of: 'users', filter: undefined, sort: order() }

  test('are valid for the same search only', () => {
    const positions = fc.record({
      entry: texts,
      folded: fc.option(texts, { nil: undefined }),
      exact: fc.option(texts, { nil: undefined }),
      total: fc.option(fc.nat(), { nil: undefined }),
    })
    fc.assert(
      fc.property(positions, (position) => {
        const text = writePosition(scope, position)
        expect(text).toMatch(/^[\w-]+$/)
        expect(readPosition(scope, text)).toEqual(position)
        for (const other of [
          { ...scope, of: 'groups' },
          { ...scope, sort: undefined },
          { ...scope, filter: { kind: 'present', attribute: 'sn' } as const },
        ]) {
          expect(() => readPosition(other, text)).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
        }
      }),
    )
  })

  test('any other text is invalid', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.base64String(),
          fc.json().map((json) => Buffer.from(json).toString('base64url')),
        ),
        (text) => {
          expect(() => readPosition(scope, text)).toThrow(expect.objectContaining({ keyword: 'invalidCursor' }))
        },
      ),
    )
  })
})
