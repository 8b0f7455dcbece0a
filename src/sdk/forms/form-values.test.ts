import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readParameters } from '#sdk/module/parameters.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { formAttributeRows, readFormAttributes, viewFormAttribute } from './form-attribute.ts'
import { checkForm, checkValue } from './form-values.ts'

const options = { namesParameter: 'attributeNames', requiredUnlessSaid: true }

function read(given: ParamValues, names: readonly string[], more: Partial<typeof options> = {}) {
  const issues = noIssues()
  const params = fakeParams(given)
  const rows = readParameters(formAttributeRows, params, issues, fakeParseContext())
  const attributes = readFormAttributes(names, rows, params, issues, { ...options, ...more })
  return { attributes, issues: issueTexts(issues.list) }
}

/** One field `a`, labelled "A", with these parameters. */
function field(given: Record<string, string | string[]> = {}, more: Partial<typeof options> = {}) {
  const named = Object.fromEntries(Object.entries(given).map(([name, value]) => [`a.${name}`, value]))
  const { attributes, issues } = read({ 'a.displayName': 'A', ...named }, ['a'], more)
  expect(issues).toEqual([])
  const [attribute] = attributes
  if (attribute === undefined) throw new Error('one field was read')
  return attribute
}

describe('the parameters of a field', () => {
  test('are read, with their defaults', () => {
    expect(viewFormAttribute(field())).toEqual({
      name: 'a',
      displayName: 'A',
      readOnly: false,
      required: true,
      unique: false,
      type: 'text',
      values: [],
      show: true,
    })
    expect(field({}, { requiredUnlessSaid: false }).required).toBe(false)
    expect(field({ required: '' }).required).toBe(true)
    expect(field({ required: 'FALSE' }).required).toBe(false)
  })

  test('all together', () => {
    const given = {
      readOnly: 'true',
      required: 'false',
      regEx: '[a-z]+',
      regExFailedMsg: 'letters only',
      minChars: '2',
      maxChars: '9',
      unique: 'true',
      type: 'list',
      values: ['One=1', 'Two = and=2'],
      show: 'false',
    }
    expect(viewFormAttribute(field(given))).toEqual({
      name: 'a',
      displayName: 'A',
      readOnly: true,
      required: false,
      regEx: '[a-z]+',
      regExFailedMsg: 'letters only',
      minChars: 2,
      maxChars: 9,
      unique: true,
      type: 'list',
      values: [
        { name: 'One', value: '1', num: 0 },
        { name: 'Two ', value: ' and=2', num: 1 },
      ],
      show: false,
    })
  })

  test.each([
    ['textarea', 'text-area'],
    ['text-button', 'text'],
    ['text-list-box', 'text-list'],
    ['chk-text-list-box', 'text-list'],
  ])('the type %s of existing YAML is %s', (written, type) => {
    expect(field({ type: written }).type).toBe(type)
  })

  test('a field is a text, a text-area, a text-list or a list, and nothing else', () => {
    for (const type of ['text', 'text-area', 'text-list']) expect(field({ type }).type).toBe(type)
    expect(field({ type: 'list', values: ['n=v'] }).type).toBe('list')
    const { issues } = read({ 'a.displayName': 'A', 'a.type': 'number' }, ['a'])
    expect(issues).toEqual([expect.stringContaining('must be one of text, text-area, text-list, list')])
  })

  test('maxChars has an alternative spelling', () => {
    expect(field({ mxnChars: '7' }).maxChars).toBe(7)
    expect(field({ mxnChars: '7', maxChars: '5' }).maxChars).toBe(5)
  })

  test('all mistakes are reported', () => {
    const { issues } = read(
      {
        'a.regEx': '(?=x)',
        'a.type': 'constructor',
        'a.minChars': '5',
        'a.maxChars': '3',
        'b.displayName': 'B',
        'b.type': 'list',
        'c.displayName': 'C',
        'c.values': ['no equals sign'],
        'c.default': 'x',
        'd.displayName': 'D',
        'd.dynamicValueSource.config': ['x=y'],
        'e.displayName': 'E',
      },
      ['a', 'b', 'c', 'd', 'A'],
    )
    expect(issues.map((issue) => issue.replace(/^error /, ''))).toEqual([
      expect.stringContaining('params.a.regEx.0: "a.regEx":'),
      expect.stringContaining('params.a.type.0: "a.type": must be one of'),
      'params.attributeNames.4: the attribute "A" appears here twice',
      'params.e.displayName: "e.displayName": "e" is not one of "attributeNames"',
      'params.a.displayName: parameter "a.displayName" is required',
      'params.a.minChars: "a.minChars" is more than the 3 of "maxChars"',
      'params.b.type: the list "b" has neither "values" nor a "dynamicValueSource"',
      'params.c.values.0: "c.values": must be "label=value", not "no equals sign"',
      'params.c.default: "c.default" is for fields that are read only or not shown',
      'params.d.dynamicValueSource.config: "d.dynamicValueSource.config" is not used without "d.dynamicValueSource.className"',
      'params.A.displayName: parameter "A.displayName" is required',
    ])
  })
})

describe('a value', () => {
  test('has as many characters as minChars and maxChars allow, if configured', () => {
    const bounded = field({ minChars: '2', maxChars: '3' })
    expect(['a', 'ab', 'abc', 'abcd'].map((value) => checkValue(bounded, value))).toEqual([
      ['A must have at least 2 characters'],
      [],
      [],
      ['A must have at most 3 characters'],
    ])
    expect(checkValue(field(), 'x'.repeat(5_000))).toEqual([])
  })

  test.each([
    ['absent and required', {}, '', ['A is required']],
    ['spaces and required', {}, '  ', ['A is required']],
    ['absent and optional', { required: 'false', minChars: '3', regEx: 'x+', type: 'list', values: ['n=v'] }, '', []],
    ['spaces and optional', { required: 'false' }, '  ', ['A has only spaces']],
    ['too short', { minChars: '3' }, 'ab', ['A must have at least 3 characters']],
    ['too long', { maxChars: '3' }, 'abcd', ['A must have at most 3 characters']],
    ['counted in characters', { maxChars: '3', minChars: '3' }, '👍👍👍', []],
    ['far too long', {}, 'x'.repeat(10_001), ['A must have at most 10000 characters']],
    ['not matched as a whole', { regEx: '[a-z]+', regExFailedMsg: 'letters!' }, 'abc1', ['letters!']],
    ['not in the list', { type: 'list', values: ['n=v'] }, 'n', ['A has a value that is not in the list']],
    ['of the list', { type: 'list', values: ['n=v'] }, 'v', []],
    ['of two lines', {}, 'a\nb', ['A has characters that cannot be used']],
    ['of two lines in a text area', { type: 'text-area' }, 'a\nb', []],
    ['with a NUL', { type: 'text-area' }, 'a\0b', ['A has characters that cannot be used']],
    ['half a character', {}, 'a\ud800', ['A has characters that cannot be used']],
    [
      'wrong in many ways',
      { minChars: '5', regEx: '\\d+', type: 'text-list', values: ['n=v'] },
      'abc',
      ['A must have at least 5 characters', 'A has a value that is not in the list', 'A is not valid'],
    ],
  ])('D5: %s', (_, given, value, errors) => {
    expect(checkValue(field(given), value)).toEqual(errors)
  })

  test('D24: a catastrophic pattern does not run forever', () => {
    const started = performance.now()
    expect(checkValue(field({ regEx: '(a+)+$' }), `${'a'.repeat(9_000)}b`)).toEqual(['A is not valid'])
    expect(performance.now() - started).toBeLessThan(8_000)
  })
})

/** The fields of the specification, section 2.1, that decide about a value. */
describe('by the specification', () => {
  test('required: a value must be sent; otherwise it may be absent', () => {
    const fields = (required: string) => [field({ required })]
    for (const posted of [{}, { a: '' }]) {
      expect(checkForm(fields('true'), posted).errors).toEqual(['A is required'])
      expect(checkForm(fields('false'), posted).errors).toEqual([])
    }
    expect(checkForm(fields('true'), { a: 'x' }).errors).toEqual([])
  })

  test('regEx: the whole value must match', () => {
    const letters = field({ regEx: '[a-z]+' })
    expect(['abc', 'abc1', '1abc', 'ABC'].map((value) => checkValue(letters, value).length)).toEqual([0, 1, 1, 1])
    expect(checkValue(field(), 'abc1')).toEqual([])
  })

  test('readOnly: the value of the server counts, and another one is refused', () => {
    const server = () => 'blue'
    const kept = checkForm([field({ readOnly: 'true' })], {}, server)
    expect([kept.errors, ...kept.values]).toEqual([[], ['a', 'blue']])
    expect(checkForm([field({ readOnly: 'true' })], { a: 'red' }, server).errors).toEqual(['A cannot be changed'])
    expect([...checkForm([field()], { a: 'red' }, server).values]).toEqual([['a', 'red']])
  })

  test('show: a field that is not shown takes no value from the form', () => {
    const hidden = field({ show: 'false', default: 'guest' })
    expect(checkForm([hidden], { a: 'admin' }).errors).toEqual(['A cannot be changed'])
    expect([...checkForm([hidden], {}).values]).toEqual([['a', 'guest']])
  })

  test('values: a list takes its values and no other, a text takes any', () => {
    for (const type of ['list', 'text-list']) {
      const chosen = field({ type, values: ['One=1', 'Two=2'] })
      expect(['1', '2', 'One', '3'].map((value) => checkValue(chosen, value).length)).toEqual([0, 0, 1, 1])
    }
    expect(checkValue(field(), '3')).toEqual([])
  })

  test('type: only a text-area has lines', () => {
    expect(['text', 'text-area', 'text-list'].map((type) => checkValue(field({ type }), 'a\nb').length)).toEqual([
      1, 0, 1,
    ])
  })
})

describe('a form', () => {
  const form = read(
    {
      'login.displayName': 'Login',
      'mail.displayName': 'Mail',
      'mail.required': 'false',
      'role.displayName': 'Role',
      'role.show': 'false',
      'role.default': 'guest',
      'team.displayName': 'Team',
      'team.readOnly': 'true',
      'team.required': 'false',
    },
    ['login', 'mail', 'role', 'team'],
  ).attributes

  test('D1: an attribute that is not configured is rejected', () => {
    const checked = checkForm(form, { login: 'ada', groups: 'admins', Login: 'x', 'a\nb': '' })
    expect(checked.errors).toEqual([
      'Invalid attribute groups',
      'Invalid attribute Login',
      'Invalid attribute (unnamed)',
    ])
    expect([...checked.values.keys()]).toEqual(['login', 'role'])
  })

  test('D1: fields that are hidden or read-only are set by the server', () => {
    expect(checkForm(form, { login: 'ada', role: 'admin', team: 'red' }).errors).toEqual([
      'Role cannot be changed',
      'Team cannot be changed',
    ])
    const server = ({ name }: { name: string }) => (name === 'team' ? 'blue' : undefined)
    const checked = checkForm(form, { login: 'ada', role: 'guest', team: 'blue' }, server)
    expect(checked.errors).toEqual([])
    expect([...checked.values]).toEqual([
      ['login', 'ada'],
      ['role', 'guest'],
      ['team', 'blue'],
    ])
  })

  test("any body yields only fields, and the server's values for fields that users cannot set", () => {
    const names = fc.constantFrom('login', 'mail', 'role', 'team', 'uid', '__proto__', 'constructor', 'toString', '')
    fc.assert(
      fc.property(fc.array(fc.tuple(names, fc.string())), (pairs) => {
        const posted: Record<string, string> = Object.create(null)
        for (const [name, value] of pairs) posted[name] = value
        const { values, errors } = checkForm(form, posted)
        expect([...values.keys()].every((name) => form.some((one) => one.name === name))).toBe(true)
        expect([undefined, 'guest']).toContain(values.get('role'))
        expect(values.has('team')).toBe(false)
        const isStrange = Object.keys(posted).some((name) => !form.some((one) => one.name === name))
        if (isStrange) expect(errors.length).toBeGreaterThan(0)
      }),
    )
  })
})

test('typed values are normalized; chosen values stay as in the list', () => {
  const decomposed = 'Rene\u0301'
  const typed = checkForm([field()], { a: decomposed })
  expect([...typed.values]).toEqual([['a', 'Ren\u00e9']])
  const chosen = checkForm([field({ type: 'list', values: [`R=${decomposed}`] })], { a: decomposed })
  expect([chosen.errors, ...chosen.values]).toEqual([[], ['a', decomposed]])
  const kept = checkForm([field({ readOnly: 'true' })], { a: decomposed }, () => decomposed)
  expect([kept.errors, ...kept.values]).toEqual([[], ['a', decomposed]])
})
