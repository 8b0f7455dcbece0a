import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { parseFilterTemplate } from '#identity/filter/filter-template.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'

const claims = Attributes.from({
  sub: ['ann'],
  mail: ['a@x', 'b@x'],
  group: ['g1', 'g2'],
  empty: [''],
  hostile: ['*)(uid=*'],
})
const bind = (text: string) => parseFilterTemplate(text).bind((name) => claims.values(name))

describe('parseFilterTemplate', () => {
  it.each([
    ['(uid=${sub})', '(uid=ann)'],
    ['(&(uid=${sub})(cn=*${sub}*))', '(&(uid=ann)(cn=*ann*))'],
    ['(uid=cn-${sub}-\\24{sub})', '(uid=cn-ann-\\24{sub})'],
    ['(!(mail=${mail}))', '(!(|(mail=a@x)(mail=b@x)))'],
    ['(x=${sub}:${mail})', '(|(x=ann:a@x)(x=ann:b@x))'],
    ['(uid:caseExactMatch:=${sub})', '(uid:caseExactMatch:=ann)'],
    ['(objectClass=*)', '(objectClass=*)'],
  ])('%s becomes %s', (template, expected) => {
    expect(bind(template)).toEqual(parseFilter(expected))
  })

  it.each([
    ['(uid=${missing})', 'a claim is absent'],
    ['(|(uid=${sub})(uid=${missing}))', 'a claim is absent in one branch'],
    ['(!(uid=${missing}))', 'a claim is absent below a negation'],
    ['(cn=*${empty}*)', 'a claim is empty'],
    ['(cn=${mail}*)', 'a substring has several values'],
    ['(age>=${mail})', 'an ordering has several values'],
    ['(x=${mail}${group})', 'two placeholders have several values'],
  ])('%s binds to nothing where %s', (template) => {
    expect(bind(template)).toBeUndefined()
  })

  it('binds to nothing rather than to an unbounded filter', () => {
    expect(parseFilterTemplate('(a=${x})').bind(() => Array(101).fill('v'))).toBeUndefined()
  })

  it.each([
    '(${sub}=x)',
    '(u${sub}=x)',
    '(uid=${sub)',
    '(uid=${})',
    '(uid=${a(b})',
    '${sub}',
    '(&${sub})',
    '(a:${sub}:=x)',
    '(cn:caseExactSubstringsMatch:=${sub}\\2a)',
  ])('rejects %s', (template) => {
    expect(() => parseFilterTemplate(template)).toThrow(/at character \d+/)
  })

  it('returns the names it reads', () => {
    expect([...parseFilterTemplate('(&(a=${x})(b=*${y}*${x}))').placeholders]).toEqual(['x', 'y'])
  })

  it('D8: keeps a hostile value a value', () => {
    expect(bind('(uid=${hostile})')).toEqual({ kind: 'equal', attribute: 'uid', value: '*)(uid=*' })
    const found = bind('(uid=*${hostile})')
    expect(found && matches(found, Attributes.from({ uid: ['admin'] }))).toBe(false)
  })

  it('matches exactly the entry with the value, for any value', () => {
    const template = parseFilterTemplate('(uid=${v})')
    const value = fc.string({ unit: fc.constantFrom(...'*()\\&|!=a${}'), minLength: 1 })
    fc.assert(
      fc.property(value, value, (given, stored) => {
        const filter = template.bind(() => [given])
        expect(filter && matches(filter, Attributes.from({ uid: [stored] }))).toBe(given === stored)
      }),
    )
  })
})
