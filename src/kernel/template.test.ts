import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { findTemplateKey, parseTemplate } from '#kernel/template.ts'

const both = { keys: true, attributes: true }
const values = {
  key: (name: string) =>
    new Map([
      ['a', 'A'],
      ['x_y', 'XY'],
      ['tricky', '${mail} $a$'],
    ]).get(name),
  attribute: (name: string) =>
    new Map([
      ['mail', 'm@x'],
      ['urn:a:b', 'U'],
      ['evil', '$a$ ${mail}'],
    ]).get(name),
}
const render = (text: string, options = both) => parseTemplate(text, options).render(values)

describe('parseTemplate', () => {
  it.each([
    ['plain', 'plain'],
    ['', ''],
    ['$a$-${mail}', 'A-m@x'],
    ['$x_y$$a$', 'XYA'],
    ['${urn:a:b}', 'U'],
    ['<$unknown$|${unknown}>', '<|>'],
    ['$5 and $6', '$5 and $6'],
    ['lone $ sign', 'lone $ sign'],
    ['$$a$', '$A'],
    ['$a b$', '$a b$'],
    ['${open', '${open'],
    ['${a b}', '${a b}'],
    ['$', '$'],
    ['$a$b$', 'Ab$'],
  ])('%j gives %j', (text, expected) => {
    expect(render(text)).toBe(expected)
  })

  it('never parses a value', () => {
    expect(render('$tricky$')).toBe('${mail} $a$')
    expect(render('${evil}')).toBe('$a$ ${mail}')
  })

  it('keeps placeholders that the options do not name', () => {
    expect(render('$a$ ${mail}', { keys: false, attributes: true })).toBe('$a$ m@x')
    expect(render('$a$ ${mail}', { keys: true, attributes: false })).toBe('A ${mail}')
  })

  it('returns the names it reads, once each', () => {
    const template = parseTemplate('$a$ ${b} $a$ ${c}', both)
    expect(template.keys).toEqual(['a'])
    expect(template.attributes).toEqual(['b', 'c'])
  })

  it('rejects texts beyond its limits', () => {
    expect(() => parseTemplate('x'.repeat(65_537), both)).toThrow('at most 65536')
    const flood = parseTemplate('$a$'.repeat(20), both)
    expect(() => flood.render({ key: () => 'x'.repeat(100_000) })).toThrow(GatewayError)
  })

  it('keeps every text without a placeholder', () => {
    const text = fc.string({ unit: fc.constantFrom('$', '{', '}', ' ', '1') })
    fc.assert(
      fc.property(text, (sample) => {
        fc.pre(!/\$\{1+\}/.test(sample))
        expect(render(sample)).toBe(sample)
      }),
    )
  })
})

describe('findTemplateKey', () => {
  const map = new Map([
    ['a.b', 1],
    ['c_d', 2],
    ['c.d', 3],
    ['e.f_g', 4],
  ])

  it.each([
    ['a_b', 1],
    ['a.b', 1],
    ['c_d', 2],
    ['e_f_g', 4],
    ['ab', undefined],
    ['a-b', undefined],
  ])('%s is %s', (name, expected) => {
    expect(findTemplateKey(map, name)).toBe(expected)
  })
})
