import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { applyEdits, ResourceMapping } from './resource-mapping.ts'

const enterprise = enterpriseUserSchema.id
const schema = new ResourceSchema(userSchema, [
  enterpriseUserSchema,
  {
    id: 'urn:x:Badge',
    name: 'Badge',
    description: '',
    attributes: [
      attribute('badge', '', { type: 'integer' }),
      attribute('doors', '', { multiValued: true }),
      attribute('since', '', { type: 'dateTime' }),
    ],
  },
])
const own = new Set(['schemas', 'id', 'meta', 'userName', 'password', 'groups'])
const mapping = new ResourceMapping(schema, own, ['username'])

const written = (values: Record<string, readonly string[]>, held = {}, addOnly = false) =>
  applyEdits(
    structuredClone(held),
    mapping.edits(held, Attributes.from(values), { attributes: Object.keys(values), addOnly }),
  )

describe('attributes as a resource', () => {
  test('parts, lists, extensions and types', () => {
    const resource = written({
      displayName: ['Ada'],
      'name.givenName': ['Ada'],
      'emails.value': ['a@x.test', 'b@x.test'],
      active: ['false'],
      [`${enterprise}:department`]: ['Engines'],
      [`${enterprise}:manager.value`]: ['26'],
      'urn:x:Badge:badge': ['7'],
      'urn:x:Badge:doors': ['north', 'south'],
      'urn:x:Badge:since': ['2026-01-02T03:04:05Z'],
    })
    expect(resource).toEqual({
      displayName: 'Ada',
      name: { givenName: 'Ada' },
      emails: [{ value: 'a@x.test' }, { value: 'b@x.test' }],
      active: false,
      [enterprise]: { department: 'Engines', manager: { value: '26' } },
      'urn:x:Badge': { badge: 7, doors: ['north', 'south'], since: '2026-01-02T03:04:05Z' },
    })
  })

  test('parts of a value that stays are kept', () => {
    const held = { emails: [{ value: 'a@x.test', type: 'work', primary: true }, { value: 'b@x.test' }] }
    expect(written({ 'emails.value': ['c@x.test', 'a@x.test'] }, held)).toEqual({
      emails: [{ value: 'c@x.test' }, { value: 'a@x.test', type: 'work', primary: true }],
    })
  })

  test('a whole list takes precedence over a list of values', () => {
    const whole = '{"value":"a@x.test","type":"home"}'
    expect(written({ emails: [whole], 'emails.value': ['z@x.test'] })).toEqual({
      emails: [{ value: 'a@x.test', type: 'home' }],
    })
    expect(written({ emails: [], 'emails.value': ['z@x.test'] })).toEqual({ emails: [{ value: 'z@x.test' }] })
    expect(written({ emails: [], 'emails.value': [] }, { emails: [{ value: 'a@x.test' }] })).toEqual({})
  })

  test('adding removes nothing, and keeps an existing single value', () => {
    const held = { title: 'Dr', emails: [{ value: 'a@x.test', type: 'work' }] }
    const values = { title: ['Prof'], 'emails.value': ['b@x.test'], nickName: ['Ad'] }
    expect(written(values, held, true)).toEqual({
      title: 'Dr',
      nickName: 'Ad',
      emails: [{ value: 'a@x.test', type: 'work' }, { value: 'b@x.test' }],
    })
  })

  test('nothing is written if only the order differs', () => {
    const held = { emails: [{ value: 'a@x.test' }, { value: 'b@x.test' }], title: 'Dr' }
    const wanted = Attributes.from({ 'emails.value': ['b@x.test', 'a@x.test'], title: ['Dr'] })
    expect(mapping.edits(held, wanted, { attributes: ['emails.value', 'TITLE'], addOnly: false })).toEqual([])
  })

  test.each([
    ['shoeSize', ['42'], /no such attribute/],
    ['password', ['secret'], /no such attribute/],
    ['__proto__', ['x'], /no such attribute/],
    ['title', ['a', 'b'], /one value/],
    ['title', ['a\0b'], /NUL/],
    ['title', ['\ud83c'], /surrogate/],
    ['active', ['perhaps'], /type/],
    ['urn:x:Badge:badge', ['seven'], /type/],
    ['urn:x:Badge:since', ['yesterday'], /type/],
    ['emails.value', [''], /empty/],
    ['addresses', ['nonsense'], /type/],
  ])('%s %j is rejected by name', (name, values, reason) => {
    const wanted = new Attributes()
    wanted.set(name, values)
    const edits = () => mapping.edits({}, wanted, { attributes: [name], addOnly: false })
    expect(edits).toThrow(reason)
    expect(edits).toThrow(
      expect.objectContaining({
        code: 'BAD_REQUEST',
        message: expect.stringContaining(`"${name}"`),
      }),
    )
  })

  test('clearing an attribute that is absent or set by the server writes nothing', () => {
    const wanted = Attributes.from({ [`${enterprise}:manager.displayName`]: ['Charles'] })
    const attributes = ['shoeSize', `${enterprise}:manager.displayName`]
    expect(mapping.edits({}, wanted, { attributes, addOnly: false })).toEqual([])
  })
})

test("all texts come back unchanged, also in a server's spelling", () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 20 }).filter((one) => one.isWellFormed() && !one.includes('\0'))
  const values = fc.record({
    title: fc.array(text, { maxLength: 1 }),
    'name.familyName': fc.array(text, { maxLength: 1 }),
    'emails.value': fc.uniqueArray(
      text.filter((one) => one !== ''),
      { maxLength: 4 },
    ),
    'urn:x:Badge:doors': fc.uniqueArray(text, { maxLength: 4 }),
  })
  fc.assert(
    fc.property(values, (wanted) => {
      const sent = written(wanted)
      const shouted = Object.fromEntries(Object.entries(sent).map(([name, value]) => [name.toUpperCase(), value]))
      const back = mapping.attributes(mapping.normalize(JSON.parse(JSON.stringify(shouted)), () => {}))
      for (const [name, list] of Object.entries(wanted)) expect(back.values(name)).toEqual(list)
    }),
  )
})

test('a server value of a wrong type hides nothing else', () => {
  const reported: string[] = []
  const raw = { title: 7, displayName: 'Ada', emails: 'a@x.test', active: 'maybe', meta: [], x: { y: 1 } }
  const resource = mapping.normalize(raw, (name) => void reported.push(name))
  expect(mapping.attributes(resource).toObject()).toMatchObject({ displayName: ['Ada'], 'emails.value': ['a@x.test'] })
  expect(reported.sort()).toEqual(['active', 'meta', 'title'])
})

test('the primary value is the first', () => {
  const raw = { emails: [{ value: 'a' }, { value: '' }, { value: 'b', primary: true }] }
  expect(mapping.attributes(mapping.normalize(raw, () => {})).values('emails.value')).toEqual(['b', 'a'])
})
