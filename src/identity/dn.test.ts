import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Dn, DnSyntaxError } from '#identity/dn.ts'

const parts = (text: string) => Dn.parse(text).rdns.map((rdn) => rdn.map(({ type, value }) => `${type}|${value}`))

describe('Dn.parse', () => {
  it.each([
    ['cn=a,ou=b,o=c', [['cn|a'], ['ou|b'], ['o|c']]],
    ['  cn = a , o = c  ', [['cn|a'], ['o|c']]],
    ['cn=a+uid=7,o=c', [['cn|a', 'uid|7'], ['o|c']]],
    ['cn=Doe\\, John,o=c', [['cn|Doe, John'], ['o|c']]],
    ['cn="Doe, \\"J\\"; +" ,o=c', [['cn|Doe, "J"; +'], ['o|c']]],
    ['cn=J\\c3\\a9r\\C3\\B4me', [['cn|Jérôme']]],
    ['cn=\\ a b\\ ', [['cn| a b ']]],
    ['cn=\\#1', [['cn|#1']]],
    ['cn=a=b', [['cn|a=b']]],
    ['cn=', [['cn|']]],
    ['1.3.6.1=#04024869', [['1.3.6.1|Hi']]],
    ['preferred_username=x', [['preferred_username|x']]],
    ['', []],
  ])('reads %j', (text, expected) => {
    expect(parts(text)).toEqual(expected)
  })

  it.each([
    ['cn', 3],
    ['=x', 1],
    ['c n=x', 1],
    ['cn=a,', 6],
    ['cn=a,,o=c', 6],
    ['cn=a;o=c', 5],
    ['cn=a"b', 5],
    ['cn=a\\', 5],
    ['cn=a\\z', 5],
    ['cn=\\ff', 4],
    ['cn="a', 4],
    ['cn="a"b,o=c', 7],
    ['cn=#0', 4],
    ['cn=#0402486', 4],
    ['cn=#020101', 4],
  ])('rejects %j at character %i', (text, position) => {
    expect(() => Dn.parse(text)).toThrow(DnSyntaxError)
    expect(() => Dn.parse(text)).toThrow(new RegExp(`at character ${position}$`))
  })

  it('rejects names beyond its limits', () => {
    expect(() => Dn.parse(`cn=${'a'.repeat(9000)}`)).toThrow('longer than 8192')
    expect(() => Dn.parse(Array(200).fill('o=a').join(','))).toThrow('more than 100 parts')
  })
})

describe('comparison', () => {
  const users = Dn.parse('ou=users,o=Tremolo')

  it('disregards letter case, white space and the order within an RDN', () => {
    expect(Dn.parse('OU=Users , O=tremolo').equals(users)).toBe(true)
    expect(Dn.parse('cn=Ann  Lee+uid=1,o=x').equals(Dn.parse('UID=1+CN=ann lee,o=X'))).toBe(true)
    expect(Dn.parse('cn=a\\,b').equals(Dn.parse('cn=a,cn=b'))).toBe(false)
  })

  it('is within its ancestor, RDN by RDN', () => {
    expect(users.isWithin(users)).toBe(true)
    expect(Dn.parse('uid=a,ou=users,o=tremolo').isWithin(users)).toBe(true)
    expect(Dn.parse('uid=a').isWithin(Dn.parse(''))).toBe(true)
    expect(Dn.parse('o=Tremolo').isWithin(users)).toBe(false)
    expect(Dn.parse('uid=a,ou=otherusers,o=tremolo').isWithin(users)).toBe(false)
  })

  it('keeps a hostile value in its own RDN', () => {
    const hostile = Dn.parse('ou=guests,o=Tremolo').child('uid', 'x,ou=users,o=Tremolo')
    expect(hostile.isWithin(users)).toBe(false)
    expect(hostile.rdns).toHaveLength(3)
    expect(Dn.parse(hostile.toString()).isWithin(users)).toBe(false)
    expect(Dn.of(['uid', 'x,ou=users,o=Tremolo']).isWithin(users)).toBe(false)
  })

  it('rejects an attribute type that is not one', () => {
    expect(() => users.child('uid=a,cn', 'x')).toThrow(RangeError)
  })

  it('knows its parent', () => {
    expect(users.child('uid', 'a').parent?.equals(users)).toBe(true)
    expect(Dn.parse('').parent).toBeUndefined()
  })
})

describe('any name', () => {
  const type = fc.constantFrom('cn', 'OU', 'x-y', '2.5.4.3')
  const value = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom(...' ,+"\\#;<>=\0aé\n') }))
  const rdn = fc.array(fc.record({ type, value }), { minLength: 1, maxLength: 3 })
  const dn = fc.array(rdn, { maxLength: 5 }).map((rdns) => new Dn(rdns))

  it('survives printing and parsing', () => {
    fc.assert(
      fc.property(dn, (name) => {
        expect(Dn.parse(name.toString()).rdns).toEqual(name.rdns)
      }),
    )
  })

  it('has the same key as its normal form', () => {
    fc.assert(
      fc.property(dn, (name) => {
        expect(Dn.parse(name.key).key).toBe(name.key)
      }),
    )
  })
})
