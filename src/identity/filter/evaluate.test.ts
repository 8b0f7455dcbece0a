import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { evaluate, failedClauses, matches } from '#identity/filter/evaluate.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'

const ann = Attributes.from({ cn: ['Ann Lee', 'Anna'], age: ['40'], objectClass: ['person'] })
const ask = (text: string) => evaluate(parseFilter(text), ann)

describe('evaluate', () => {
  it.each<[string, boolean | undefined]>([
    ['(CN=ann lee)', true],
    ['(cn=Bob)', false],
    ['(cn:caseExactMatch:=ann lee)', false],
    ['(mail=x)', undefined],
    ['(!(mail=x))', undefined],
    ['(!(cn=Bob))', true],
    ['(mail=*)', false],
    ['(!(mail=*))', true],
    ['(objectClass=*)', true],
    ['(&(cn=Anna)(mail=x))', undefined],
    ['(&(cn=Bob)(mail=x))', false],
    ['(|(cn=Anna)(mail=x))', true],
    ['(|(cn=Bob)(mail=x))', undefined],
    ['(&)', true],
    ['(|)', false],
    ['(cn=an*e)', true],
    ['(cn=ann lee*lee)', false],
    ['(cn=*n*n*a)', true],
    ['(age>=9)', true],
    ['(age<=9)', false],
    ['(cn>=anna)', true],
    ['(cn<=an)', false],
  ])('%s is %s', (text, expected) => {
    expect(ask(text)).toBe(expected)
  })

  it('takes every character of a value literally', () => {
    expect(matches({ kind: 'equal', attribute: 'cn', value: '*' }, ann)).toBe(false)
    expect(matches({ kind: 'equal', attribute: 'cn', value: 'Ann.*' }, ann)).toBe(false)
    expect(matches({ kind: 'substring', attribute: 'cn', any: ['.'] }, ann)).toBe(false)
  })

  it('does not match an attribute that is absent', () => {
    expect(matches(parseFilter('(!(mail=x))'), ann)).toBe(false)
  })

  it.each<[Extract<Filter, { value: string }>['kind'], string, string, boolean]>([
    ['greater', '10', '9', true],
    ['greater', '10', '10', false],
    ['less', '-2', '1', true],
    ['less', '10', '9x', true],
    ['greater', '\u{1f600}', '\ufffd', true],
    ['greaterOrEqual', '9999999999999999999', '1', true],
    ['greaterOrEqual', '1', '02', false],
    ['lessOrEqual', 'ABC', 'abc', true],
  ])('%s: %s against %s is %s', (kind, own, value, expected) => {
    expect(evaluate({ kind, attribute: 'x', value }, Attributes.from({ x: [own] }))).toBe(expected)
  })
})

describe('any filter', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'B', 'b'), maxLength: 4 })
  const attribute = fc.constantFrom('x', 'y', 'z')
  const kind = fc.constantFrom('equal', 'greaterOrEqual', 'lessOrEqual', 'greater', 'less')
  const leaf = fc.oneof(
    fc.record({ kind: fc.constant('present' as const), attribute }),
    fc.record({ kind, attribute, value: letters, caseExact: fc.boolean() }),
    fc.record({
      kind: fc.constant('substring' as const),
      attribute,
      initial: letters,
      any: fc.array(letters, { maxLength: 2 }),
      final: letters,
      caseExact: fc.boolean(),
    }),
  ) as fc.Arbitrary<Filter>
  const { filter } = fc.letrec<{ filter: Filter }>((tie) => ({
    filter: fc.oneof(
      { maxDepth: 3 },
      leaf,
      fc.record({ kind: fc.constant('and' as const), filters: fc.array(tie('filter'), { maxLength: 3 }) }),
      fc.record({ kind: fc.constant('or' as const), filters: fc.array(tie('filter'), { maxLength: 3 }) }),
      fc.record({ kind: fc.constant('not' as const), filter: tie('filter') }),
    ),
  }))
  const entry = fc.dictionary(attribute, fc.array(letters, { minLength: 1, maxLength: 3 }))

  it('gives the result of a plain reading of the RFC', () => {
    fc.assert(
      fc.property(filter, entry, (asked, values) => {
        const result = evaluate(asked, Attributes.from(values))
        expect(result === undefined ? 0.5 : Number(result)).toBe(truth(asked, values))
      }),
      { numRuns: 500 },
    )
  })
})

/** Kleene's logic as numbers: 0 false, 0.5 undefined, 1 true. */
function truth(filter: Filter, entry: Record<string, string[]>): number {
  if (filter.kind === 'and') return Math.min(1, ...filter.filters.map((inner) => truth(inner, entry)))
  if (filter.kind === 'or') return Math.max(0, ...filter.filters.map((inner) => truth(inner, entry)))
  if (filter.kind === 'not') return 1 - truth(filter.filter, entry)
  const values = entry[filter.attribute] ?? []
  if (filter.kind === 'present') return Number(values.length > 0)
  if (values.length === 0) return 0.5
  const fold = (text: string) => (filter.caseExact === true ? text : text.toLowerCase())
  const holds = (own: string): boolean => {
    if (filter.kind === 'substring') {
      const { initial = '', any, final = '' } = filter
      const pattern = [initial, ...any, final].join('.*')
      return new RegExp(`^${pattern}$`, filter.caseExact === true ? '' : 'i').test(own)
    }
    const [a, b] = [fold(own), fold(filter.value)]
    if (filter.kind === 'greaterOrEqual') return a >= b
    if (filter.kind === 'lessOrEqual') return a <= b
    if (filter.kind === 'greater') return a > b
    if (filter.kind === 'less') return a < b
    return a === b
  }
  return Number(values.some(holds))
}

it('part of a word that ends in sigma is found within the word and at its end', () => {
  const held = Attributes.from({ sn: ['ΟΔΥΣΣΕΥΣ'] })
  for (const initial of ['ΟΔΥΣ', 'οδυσ', 'οδυς', 'ΟΔΥΣΣΕΥΣ']) {
    expect(matches({ kind: 'substring', attribute: 'sn', initial, any: [] }, held)).toBe(true)
  }
  expect(matches({ kind: 'substring', attribute: 'sn', any: ['ΥΣ'], final: 'Σ' }, held)).toBe(true)
  expect(matches({ kind: 'substring', attribute: 'sn', initial: 'οδυς', any: [], caseExact: true }, held)).toBe(false)
})

const cart = Attributes.from({ namespace: ['shop'], saname: ['cart'], groups: ['a', 'b'] })

test.each([
  ['(saname=cart)', []],
  ['(&(namespace=shop)(saname=till))', ['(saname=till) does not match: saname is "cart"']],
  [
    '(&(namespace=other)(saname=till)(x=1))',
    [
      '(namespace=other) does not match: namespace is "shop"',
      '(saname=till) does not match: saname is "cart"',
      '(x=1) does not match: x is absent',
    ],
  ],
  [
    '(&(namespace=shop)(|(saname=a)(saname=b)))',
    [
      'no alternative matches: (saname=a) does not match: saname is "cart", or (saname=b) does not match: saname is "cart"',
    ],
  ],
  ['(!(saname=cart))', ['(!(saname=cart)) does not match: saname is "cart"']],
  ['(!(x=1))', ['(!(x=1)) does not match: x is absent']],
  ['(groups=c*)', ['(groups=c*) does not match: groups is "a", "b"']],
])('%s', (text, expected) => expect(failedClauses(parseFilter(text), cart)).toEqual(expected))

test('a clause fails exactly if the filter does not match', () => {
  const leaf = fc.constantFrom('(saname=cart)', '(saname=x)', '(namespace=*)', '(gone=1)', '(groups=b)', '(groups>=c)')
  const { filter } = fc.letrec<{ filter: string }>((tie) => ({
    filter: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(tie('filter'), { minLength: 1, maxLength: 3 }).map((all) => `(&${all.join('')})`),
      fc.array(tie('filter'), { minLength: 1, maxLength: 3 }).map((all) => `(|${all.join('')})`),
      tie('filter').map((one) => `(!${one})`),
    ),
  }))
  fc.assert(
    fc.property(filter, (text) => {
      const parsed = parseFilter(text)
      expect(failedClauses(parsed, cart).length === 0).toBe(evaluate(parsed, cart) === true)
    }),
  )
})
