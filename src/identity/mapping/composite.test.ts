import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { parseComposite } from '#identity/mapping/composite.ts'
import { JsonDocument, toTexts, userSource } from '#identity/mapping/mapped-value.ts'

const hostile = '","admin":true,"x":"'
const ann = userSource({
  userID: 'ann1',
  groups: [],
  attributes: Attributes.from({
    first: ['Ann', 'Anna'],
    last: ['Lee'],
    hostile: [hostile],
    flag: ['true'],
    age: ['42'],
    ratio: ['-1.5e2'],
    big: ['12345678901234567890'],
    zip: ['007'],
    place: ['${last}'],
  }),
})
const nobody = userSource({ userID: 'x', groups: [], attributes: new Attributes() })

const evaluate = (text: string, source = ann) => {
  const value = parseComposite(text).evaluate(source)
  return value instanceof JsonDocument ? value.value : value
}

describe('a text composite', () => {
  it.each([
    ['${first} ${last}', ['Ann Lee']],
    ['${first}', ['Ann']],
    ['${first}-${none}', ['Ann-']],
    ['${none}', []],
    ['${none} and ${nothing}', []],
    ['constant', ['constant']],
    ['$first$', ['$first$']],
    ['${place}', ['${last}']],
    ['cn=${TREMOLO_USER_ID}', ['cn=ann1']],
  ])('%s gives %j', (text, expected) => {
    expect(evaluate(text)).toEqual(expected)
  })
})

describe('a JSON composite', () => {
  it.each([
    ['{"givenName": "${first}", "familyName" : "${last}"}', { givenName: 'Ann', familyName: 'Lee' }],
    ['{"formatted": "${first} ${none}", "b": "${none}"}', { formatted: 'Ann ' }],
    ['{"a": {"b": "${none}", "c": ["${none}"]}, "d": "${last}"}', { d: 'Lee' }],
    ['{"type": "x", "a": {"k": 1, "b": "${none}"}, "d": "${last}"}', { type: 'x', a: { k: 1 }, d: 'Lee' }],
    [
      '[{"type":"work","primary":true,"value":"${first}"},{"type":"home","value":"${none}"},{"type":"fixed"}]',
      [{ type: 'work', primary: true, value: 'Ann' }, { type: 'fixed' }],
    ],
    ['[{"type":"work","value":"${none}"}]', []],
    ['{"a": "${none}", "b": 1}', []],
    [
      '{"active": ${flag}, "age": ${age}, "r": ${ratio}, "big": ${big}, "zip": ${zip}, "n": ${first}, "x": ${none}}',
      { active: true, age: 42, r: -150, big: '12345678901234567890', zip: '007', n: 'Ann' },
    ],
    ['{"active": "${flag}"}', { active: 'true' }],
    [
      '{"a": {}, "b": [], "c": null, "d": -0.5, "e": "\\u00e9\\"", "f": "${last}"}',
      { a: {}, b: [], c: null, d: -0.5, e: 'é"', f: 'Lee' },
    ],
    ['  {"constant": [1, {"x": 2}]} ', { constant: [1, { x: 2 }] }],
    ['{"p": "${place}"}', { p: '${last}' }],
  ])('%s gives %j', (text, expected) => {
    expect(evaluate(text)).toEqual(expected)
  })

  it('gives nothing if no attribute has a value', () => {
    expect(evaluate('[{"type":"work","primary":true,"value":"${mail}"}]', nobody)).toEqual([])
  })

  it("a value can't break or extend it", () => {
    expect(evaluate('{"name": "${hostile}", "bare": ${hostile}}')).toEqual({ name: hostile, bare: hostile })
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        const source = userSource({ userID: 'x', groups: [], attributes: Attributes.from({ v: [value] }) })
        expect(evaluate('{"a": "<${v}>", "b": ["${v}"]}', source)).toEqual({ a: `<${value}>`, b: [value] })
      }),
    )
  })

  it('equals JSON.parse if it has no placeholders', () => {
    const document = fc.jsonValue().filter((value) => typeof value === 'object' && value !== null)
    fc.assert(
      fc.property(document, (value) => {
        const text = JSON.stringify(value, null, 1)
        fc.pre(!text.includes('${') && !text.includes('__proto__') && !/"(constructor|prototype)"/.test(text))
        expect(evaluate(text)).toEqual(JSON.parse(text))
      }),
    )
  })

  it.each([
    ['{"a": "${first}"', 17, 'expected "," or "}"'],
    ['{"a": }', 7, 'expected a JSON value'],
    ['{"a": "x}', 7, 'expected a string'],
    ['{a: 1}', 2, 'expected a string'],
    ['{"a" 1}', 6, 'expected ":"'],
    ['{"a": tru}', 7, 'expected a JSON value'],
    ['{"a": 01}', 7, 'expected a JSON value'],
    ['[1,]', 4, 'expected a JSON value'],
    ['["a\nb"]', 2, 'expected a JSON value'],
    ['[] x', 4, 'unexpected text'],
    ['{"${first}": 1}', 2, 'only in a value'],
    ['{"__proto__": "${first}"}', 2, 'not allowed'],
    ['{"\\u005f_proto__": 1}', 2, 'not allowed'],
    ['{"a": 1, "a": 2}', 10, 'twice'],
    ['{"a": $first}', 7, 'expected a placeholder'],
  ])('rejects %j at character %i', (text, position, reason) => {
    expect(() => parseComposite(text)).toThrow(reason)
    expect(() => parseComposite(text)).toThrow(`at character ${position}`)
  })

  it('rejects templates beyond its limits', () => {
    expect(() => parseComposite('['.repeat(40))).toThrow('nested deeper than 32')
    expect(() => parseComposite(`["${'x'.repeat(70_000)}"]`)).toThrow('longer than 65536')
  })

  it('returns the attributes that it reads, once each', () => {
    expect(parseComposite('[{"a": "${x} ${y}", "b": ${z}}, "${x}"]').attributes).toEqual(['x', 'y', 'z'])
  })
})

describe('toTexts', () => {
  it('writes a document as one value', () => {
    expect(toTexts(['a', 'b'])).toEqual(['a', 'b'])
    expect(toTexts(new JsonDocument([{ a: 1 }]))).toEqual(['[{"a":1}]'])
    expect(toTexts(new JsonDocument('plain'))).toEqual(['plain'])
  })
})
