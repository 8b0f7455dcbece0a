import { describe, expect, it, test } from 'vitest'
import { Attributes, isDeactivated } from '#identity/attributes.ts'

describe('Attributes', () => {
  it('compares names without letter case and keeps the first spelling', () => {
    const attributes = Attributes.from({ givenName: ['Ann'] })
    attributes.add('GIVENNAME', ['Anna'])
    attributes.set('GivenName', [...attributes.values('givenname'), 'A'])
    expect([...attributes]).toEqual([['givenName', ['Ann', 'Anna', 'A']]])
    expect(attributes.first('givenname')).toBe('Ann')
  })

  it('has no attribute without values', () => {
    const attributes = Attributes.from({ a: [], b: ['1'] })
    attributes.set('b', [])
    attributes.add('c', [])
    expect(attributes.size).toBe(0)
    expect(attributes.has('b')).toBe(false)
    expect(attributes.values('b')).toEqual([])
  })

  it('adds the values of a name that repeats', () => {
    const pairs: [string, string[]][] = [
      ['a', ['1']],
      ['A', ['2']],
    ]
    expect(Attributes.from(pairs).values('a')).toEqual(['1', '2'])
  })

  it('shares nothing with its clone, its picks or the lists that it was created from', () => {
    const list = ['1']
    const original = Attributes.from({ a: list, b: ['2'] })
    const clone = original.clone()
    const picked = original.pick(['B', 'none'])
    list.push('x')
    clone.set('a', ['changed'])
    picked.delete('b')
    expect(original.toObject()).toEqual({ a: ['1'], b: ['2'] })
    expect(clone.first('a')).toBe('changed')
    expect(picked.size).toBe(0)
  })

  it('knows which values came from a token, until others are set', () => {
    const attributes = Attributes.from({ l: ['Paris'] })
    attributes.setClaim('Sub', ['a'])
    attributes.add('sub', ['b'])
    const copies = [attributes, attributes.clone(), attributes.pick(['SUB', 'l'])]
    for (const one of copies) expect([one.isClaim('SUB'), one.isClaim('l')]).toEqual([true, false])
    attributes.set('sub', ['c'])
    attributes.setClaim('none', [])
    expect([attributes.isClaim('sub'), copies[1]?.isClaim('sub'), attributes.isClaim('none')]).toEqual([
      false,
      true,
      false,
    ])
    expect(attributes.claimed().isClaim('L')).toBe(true)
  })

  it('keeps names of JavaScript itself as plain names', () => {
    const attributes = Attributes.from([['__proto__', ['x']]])
    expect(attributes.values('constructor')).toEqual([])
    expect(Object.keys(attributes.toObject())).toEqual(['__proto__'])
    expect(({} as Record<string, unknown>)['x']).toBeUndefined()
  })
})

test.each<Record<string, string[]>>([
  { active: ['false'] },
  { ACTIVE: ['False '] },
  { active: ['true', 'false'] },
  { nsAccountLock: ['TRUE'] },
  { loginDisabled: ['true'] },
  { pwdAccountLockedTime: ['000001010000Z'] },
  { userAccountControl: ['514'] },
  { userAccountControl: ['66050'] },
])('%j is deactivated', (attributes) => {
  expect(isDeactivated(Attributes.from(attributes))).toBe(true)
})

test.each<Record<string, string[]>>([
  {},
  { active: ['true'] },
  { active: [] },
  { active: ['no'] },
  { inactive: ['false'] },
  { nsAccountLock: ['false'] },
  { pwdAccountLockedTime: ['20300101120000Z'] },
  { userAccountControl: ['512'] },
  { userAccountControl: ['0x2'] },
  { userAccountControl: ['-2'] },
  { userAccountControl: ['99999999999999999999'] },
])('%j is not deactivated', (attributes) => {
  expect(isDeactivated(Attributes.from(attributes))).toBe(false)
})
