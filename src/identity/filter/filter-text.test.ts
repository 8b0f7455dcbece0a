import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Filter } from '#identity/filter/ast.ts'
import { FilterSyntaxError, parseFilter, printFilter } from '#identity/filter/filter-text.ts'

const equal = (attribute: string, value: string): Filter => ({ kind: 'equal', attribute, value })

describe('parseFilter', () => {
  it.each<[string, Filter]>([
    ['(cn=x)', equal('cn', 'x')],
    [' ( & (cn=x)\n (sn=y) ) ', { kind: 'and', filters: [equal('cn', 'x'), equal('sn', 'y')] }],
    ['(|)', { kind: 'or', filters: [] }],
    ['(!(cn=x))', { kind: 'not', filter: equal('cn', 'x') }],
    ['(objectClass=*)', { kind: 'present', attribute: 'objectClass' }],
    ['(cn=**)', { kind: 'present', attribute: 'cn' }],
    ['(cn=)', equal('cn', '')],
    ['(cn= x )', equal('cn', ' x ')],
    ['(cn=a*b**c*)', { kind: 'substring', attribute: 'cn', initial: 'a', any: ['b', 'c'] }],
    ['(cn=*z)', { kind: 'substring', attribute: 'cn', any: [], final: 'z' }],
    ['(cn=\\2a\\28\\29\\5C)', equal('cn', '*()\\')],
    ['(cn=J\\c3\\a9)', equal('cn', 'Jé')],
    ['(cn=${x})', equal('cn', '${x}')],
    ['(age>=5)', { kind: 'greaterOrEqual', attribute: 'age', value: '5' }],
    ['(age<=5)', { kind: 'lessOrEqual', attribute: 'age', value: '5' }],
    ['(cn~=x)', { kind: 'approximate', attribute: 'cn', value: 'x' }],
    ['(emails.value;lang-de=a=b)', equal('emails.value;lang-de', 'a=b')],
    ['(cn:caseExactMatch:=X)', { kind: 'equal', attribute: 'cn', value: 'X', caseExact: true }],
    [
      '(cn:2.5.13.7:=a\\2ab)',
      { kind: 'substring', attribute: 'cn', initial: 'a', any: [], final: 'b', caseExact: true },
    ],
  ])('reads %s', (text, expected) => {
    expect(parseFilter(text)).toEqual(expected)
  })

  it.each([
    ['cn=x', 1, 'must be in parentheses'],
    ['', 1, 'must be in parentheses'],
    ['(cn=x', 6, 'expected ")"'],
    ['(cn=x))', 7, 'unexpected text'],
    ['(cn=x)(sn=y)', 7, 'unexpected text'],
    ['(cn = x)', 4, 'expected "="'],
    ['(=x)', 2, 'expected an attribute name'],
    ['(cn=a(b)', 6, 'must be escaped'],
    ['(cn=\\2)', 5, 'two hexadecimal digits'],
    ['(cn=\\ff)', 5, 'not UTF-8'],
    ['(age>=5*)', 2, 'must be escaped'],
    ['(&(cn=x)', 9, 'expected ")"'],
    ['(!(cn=x)(sn=y))', 9, 'expected ")"'],
    ['(cn:dn:=x)', 2, 'matching rule "dn" is not supported'],
    ['(memberOf:1.2.840.113556.1.4.1941:=x)', 2, 'is not supported'],
  ])('rejects %j at character %i', (text, position, reason) => {
    const attempt = () => parseFilter(text)
    expect(attempt).toThrow(FilterSyntaxError)
    expect(attempt).toThrow(reason)
    expect(attempt).toThrow(`at character ${position}`)
  })

  it('rejects text beyond its length and depth', () => {
    expect(() => parseFilter(`(cn=${'a'.repeat(9000)})`)).toThrow('longer than 8192')
    expect(() => parseFilter(`${'(!'.repeat(50)}(a=b)${')'.repeat(50)}`)).toThrow('nested deeper than 50')
    expect(() => parseFilter(`${'(!'.repeat(49)}(a=b)${')'.repeat(49)}`)).not.toThrow()
  })
})

describe('printFilter', () => {
  it('escapes values', () => {
    expect(printFilter(equal('uid', '*)(uid=*'))).toBe('(uid=\\2a\\29\\28uid=\\2a)')
    expect(printFilter(equal('uid', 'a\0\\'))).toBe('(uid=a\\00\\5c)')
  })

  it('writes strict orderings with operators of RFC 4515', () => {
    expect(printFilter({ kind: 'greater', attribute: 'a', value: 'v' })).toBe('(&(a>=v)(!(a=v)))')
    expect(printFilter({ kind: 'less', attribute: 'a', value: 'v', caseExact: true })).toBe(
      '(&(a<=v)(!(a:caseExactMatch:=v)))',
    )
  })

  const attribute = fc.constantFrom('cn', 'emails.value', 'x-1;lang-de')
  const value = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom(...'*()\\\0 2a5C$é') }))
  const fragment = value.filter((text) => text !== '')
  const exact = fc.constantFrom<{ caseExact?: true }>({}, { caseExact: true })
  const leaf: fc.Arbitrary<Filter> = fc.oneof(
    fc.record({ kind: fc.constant('present' as const), attribute }),
    fc.tuple(attribute, value, exact).map(([name, text, option]) => ({ ...equal(name, text), ...option }) as Filter),
    fc.record({
      kind: fc.constantFrom('approximate' as const, 'greaterOrEqual' as const, 'lessOrEqual' as const),
      attribute,
      value,
    }),
    fc
      .record({
        attribute,
        initial: fc.option(fragment, { nil: undefined }),
        any: fc.array(fragment, { maxLength: 2 }),
        final: fc.option(fragment, { nil: undefined }),
        exact,
      })
      .filter(({ initial, any, final }) => initial !== undefined || final !== undefined || any.length > 0)
      .map(({ attribute: name, initial, any, final, exact: option }) => ({
        kind: 'substring' as const,
        attribute: name,
        ...(initial === undefined ? {} : { initial }),
        any,
        ...(final === undefined ? {} : { final }),
        ...option,
      })),
  )
  const { filter } = fc.letrec<{ filter: Filter }>((tie) => ({
    filter: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.record({ kind: fc.constant('and' as const), filters: fc.array(tie('filter'), { maxLength: 3 }) }),
      fc.record({ kind: fc.constant('or' as const), filters: fc.array(tie('filter'), { maxLength: 3 }) }),
      fc.record({ kind: fc.constant('not' as const), filter: tie('filter') }),
    ),
  }))

  it('gives text that parses to the same filter', () => {
    fc.assert(
      fc.property(filter, (original) => {
        const text = printFilter(original)
        fc.pre(text.length <= 8192)
        expect(parseFilter(text)).toEqual(original)
      }),
    )
  })
})
