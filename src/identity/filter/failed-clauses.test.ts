import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { evaluate } from '#identity/filter/evaluate.ts'
import { failedClauses } from '#identity/filter/failed-clauses.ts'
import { parseFilter } from '#identity/filter/parse-filter.ts'

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

test('there is a failed clause exactly where the filter does not match', () => {
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
