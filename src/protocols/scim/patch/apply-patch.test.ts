import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { applyPatch, changedAttributes } from '#protocols/scim/patch/apply-patch.ts'
import { maxOperations, parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { enterpriseUserSchema, groupSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { sampled } from '#testing/hostile/sample.ts'

const schema = new ResourceSchema(userSchema, [enterpriseUserSchema])
const groups = new ResourceSchema(groupSchema)
const enterprise = enterpriseUserSchema.id

const work = { value: 'work@example.com', type: 'work', primary: true }
const home = { value: 'home@example.com', type: 'home' }
const user: JsonObject = {
  schemas: [userSchema.id],
  id: 'u1',
  userName: 'bjensen',
  name: { givenName: 'Barbara', familyName: 'Jensen' },
  title: 'Guide',
  active: true,
  emails: [work, home],
  [enterprise]: { department: 'Tours' },
}

const patch = (operations: JsonValue, resource = user, of = schema): JsonObject =>
  applyPatch(of, resource, parsePatch(of, { Operations: operations }))

function refusal(operations: JsonValue, resource = user, of = schema): string | undefined {
  try {
    patch(operations, resource, of)
  } catch (error) {
    if (error instanceof GatewayError) return error.keyword
    throw error
  }
  return 'accepted'
}

const one = (op: string, path: string | undefined, value?: JsonValue): JsonValue => [
  { op, ...(path === undefined ? {} : { path }), ...(value === undefined ? {} : { value }) },
]

describe('add (RFC 7644 3.5.2.1)', () => {
  test('without a path merges, and does not repeat existing values', () => {
    const after = patch(one('add', undefined, { emails: [home, { value: 'new@example.com' }], nickName: 'Babs' }))
    expect(after['emails']).toEqual([work, home, { value: 'new@example.com' }])
    expect(after['nickName']).toBe('Babs')
    expect(after['name']).toEqual(user['name'])
  })

  test('a complex value merges its sub-attributes', () => {
    expect(patch(one('add', 'name', { middleName: 'J' }))['name']).toEqual({
      givenName: 'Barbara',
      familyName: 'Jensen',
      middleName: 'J',
    })
  })

  test('a new primary value replaces the old one as primary', () => {
    const after = patch(one('add', 'emails', [{ value: 'new@example.com', primary: true }]))
    expect(after['emails']).toEqual([{ ...work, primary: false }, home, { value: 'new@example.com', primary: true }])
  })

  test('one object for a list is a list of one', () => {
    expect(patch(one('add', 'roles', { value: 'admin' }))['roles']).toEqual([{ value: 'admin' }])
  })

  test.each(['add', 'Add', 'replace', 'Replace'])(
    "%s with a filter that matches nothing creates (Entra's form)",
    (op) => {
      const after = patch([
        { op, path: 'addresses[type eq "work"].locality', value: 'Oslo' },
        { op, path: 'addresses[type eq "work"].country', value: 'NO' },
      ])
      expect(after['addresses']).toEqual([{ type: 'work', locality: 'Oslo', country: 'NO' }])
    },
  )

  test('a filter that describes no single element cannot create one', () => {
    expect(refusal(one('add', 'emails[type eq "a" or type eq "b"].value', 'x'))).toBe('noTarget')
    expect(refusal(one('add', 'emails[type co "a"].value', 'x'))).toBe('noTarget')
  })

  test.each([
    ['emails[type eq "other"].primary', true],
    ['emails[type eq "other"].primary', false],
    ['emails[type eq "other"].type', 'third'],
    ['addresses[type eq "other"].primary', true],
  ] as const)('%s alone creates no element', (path, value) => {
    for (const op of ['add', 'replace'] as const) expect(refusal(one(op, path, value))).toBe('noTarget')
  })

  test('an element is created by all operations together, in any order', () => {
    const operations = [
      { op: 'add', path: 'emails[type eq "other"].primary', value: false },
      { op: 'replace', path: 'emails[type eq "other"].value', value: 'o@example.com' },
    ]
    const created = { type: 'other', primary: false, value: 'o@example.com' }
    for (const sent of [operations, operations.toReversed()]) {
      expect(patch(sent)['emails']).toEqual([work, home, created])
    }
  })
})

describe('replace (RFC 7644 3.5.2.3)', () => {
  test('a list is replaced as a whole, a complex value part by part', () => {
    const after = patch(one('replace', undefined, { emails: [home], name: { familyName: 'New' } }))
    expect(after['emails']).toEqual([home])
    expect(after['name']).toEqual({ givenName: 'Barbara', familyName: 'New' })
  })

  test('the elements a filter picks, and their sub-attributes', () => {
    expect(patch(one('replace', 'emails[type eq "work"].value', 'n@example.com'))['emails']).toEqual([
      { ...work, value: 'n@example.com' },
      home,
    ])
    expect(patch(one('replace', 'emails[value eq "home@example.com"]', { display: 'H' }))['emails']).toEqual([
      work,
      { ...home, display: 'H' },
    ])
  })

  test('whole elements must exist', () => {
    expect(refusal(one('replace', 'emails[type eq "other"]', { value: 'x' }))).toBe('noTarget')
  })

  test('with null removes', () => expect(patch(one('replace', 'title', null))['title']).toBeUndefined())

  test('filter values may have any character', () => {
    const resource = { ...user, roles: [{ value: 'urn:r:a.b]c' }] }
    expect(patch(one('replace', 'roles[value eq "urn:r:a.b]c"].display', 'D'), resource)['roles']).toEqual([
      { value: 'urn:r:a.b]c', display: 'D' },
    ])
  })
})

describe('remove (RFC 7644 3.5.2.2)', () => {
  test('an attribute, a part, picked elements', () => {
    expect(patch(one('Remove', 'title'))['title']).toBeUndefined()
    expect(patch(one('remove', 'name.givenName'))['name']).toEqual({ familyName: 'Jensen' })
    expect(patch(one('remove', 'emails[type eq "work"]'))['emails']).toEqual([home])
    expect(patch(one('remove', 'emails'))['emails']).toBeUndefined()
    expect(patch(one('remove', 'emails[type eq "work"].primary'))['emails']).toEqual([
      { value: work.value, type: 'work' },
      home,
    ])
  })

  test('removing an absent value succeeds', () => {
    expect(patch(one('remove', 'ims[type eq "x"]'))).toEqual(user)
    expect(patch(one('remove', 'nickName'))).toEqual(user)
  })

  test("only the given members (Entra's and OneLogin's form)", () => {
    const group = { displayName: 'G', members: [{ value: 'u1', type: 'User' }, { value: 'u2' }] }
    const operations = one('Remove', 'members', [{ $ref: null, value: 'u1' }])
    expect(patch(operations, group, groups)['members']).toEqual([{ value: 'u2' }])
  })

  test('needs a path, and keeps required attributes', () => {
    expect(refusal(one('Remove', undefined))).toBe('noTarget')
    expect(refusal(one('remove', 'userName'))).toBe('mutability')
    expect(refusal(one('replace', 'userName', ''))).toBe('mutability')
  })

  test('an emptied extension is removed', () => {
    expect(patch(one('remove', `${enterprise}:department`))[enterprise]).toBeUndefined()
    expect(patch(one('remove', enterprise))[enterprise]).toBeUndefined()
  })
})

describe('client variants', () => {
  test('string booleans by the schema, not elsewhere', () => {
    expect(patch(one('Replace', 'active', 'False'))['active']).toBe(false)
    expect(patch(one('Replace', 'title', 'False'))['title']).toBe('False')
    expect(refusal(one('Replace', 'active', 'no'))).toBe('invalidValue')
    expect(patch(one('add', 'roles', [{ value: 'a', primary: 'True' }]))['roles']).toEqual([
      { value: 'a', primary: true },
    ])
  })

  test('dotted, qualified and filtered keys without a path', () => {
    const after = patch(
      one('replace', undefined, {
        DISPLAYNAME: 'B',
        'name.givenName': 'K',
        [`${enterprise}:employeeNumber`]: '1',
        'emails[type eq "work"].value': 'w@example.com',
        [enterprise.toUpperCase()]: { costCenter: 'C' },
      }),
    )
    expect(after).toMatchObject({
      displayName: 'B',
      name: { givenName: 'K', familyName: 'Jensen' },
      [enterprise]: { department: 'Tours', employeeNumber: '1', costCenter: 'C' },
    })
    expect(after['emails']).toEqual([{ ...work, value: 'w@example.com' }, home])
    expect(Object.keys(after)).not.toContain('DISPLAYNAME')
  })

  test.each([
    ['a text', `${enterprise}:manager`, '26'],
    ['a list of one', 'manager', [{ $ref: '../Users/26', value: '26' }]],
    ['an object', `${enterprise}:manager`, { value: '26', displayName: 'ignored' }],
  ])('manager as %s', (_name, path, value) => {
    expect(patch(one('Add', path, value))[enterprise]).toMatchObject({ department: 'Tours', manager: { value: '26' } })
    expect(JSON.stringify(patch(one('Add', path, value)))).not.toContain('ignored')
  })

  test('readOnly inside a value is ignored, as a path it is rejected', () => {
    const after = patch(one('replace', undefined, { id: 'other', groups: [{ value: 'g' }], displayName: 'N' }))
    expect(after).toEqual({ ...user, displayName: 'N' })
    expect(refusal(one('replace', 'id', 'other'))).toBe('mutability')
    expect(refusal(one('add', 'groups', [{ value: 'g' }]))).toBe('mutability')
    expect(refusal(one('replace', 'manager.displayName', 'x'))).toBe('mutability')
  })

  test('unknown keys in a value are ignored, unknown paths rejected', () => {
    expect(patch(one('add', undefined, { unknown: 1, [`${enterprise}x`]: {} }))).toEqual(user)
    expect(refusal(one('add', 'unknown', 1))).toBe('invalidPath')
    expect(refusal(one('add', 'emails[type eq "work"].unknown', 1))).toBe('invalidPath')
  })
})

describe('rejected', () => {
  test.each<[string, JsonValue]>([
    ['invalidSyntax', []],
    ['invalidSyntax', 'x'],
    ['invalidSyntax', [1]],
    ['invalidSyntax', one('move', 'title', 'x')],
    ['invalidValue', one('add', 'title')],
    ['invalidValue', one('add', 'title', { a: 1 })],
    ['invalidValue', one('replace', undefined, 'x')],
    [
      'invalidValue',
      one('add', 'emails', [
        { value: 'a', primary: true },
        { value: 'b', primary: true },
      ]),
    ],
    ['invalidValue', one('add', 'title', 'half \ud800')],
    ['invalidValue', one('add', 'title', 'nul \0')],
    [
      'invalidValue',
      one(
        'add',
        'emails',
        Array.from({ length: 501 }, (_, i) => ({ value: `${i}` })),
      ),
    ],
    ['invalidPath', one('add', 'title[', 'x')],
    ['invalidPath', one('add', 'title[value eq "x"]', 'x')],
    ['invalidPath', one('add', '"title"', 'x')],
    ['invalidPath', [{ op: 'add', path: 5, value: 'x' }]],
    ['invalidFilter', one('add', 'emails[type]', 'x')],
    ['invalidFilter', one('remove', 'emails[]')],
  ])('%s: %j', (scimType, operations) => expect(refusal(operations)).toBe(scimType))

  test('more operations than allowed', () => {
    const operations = Array.from({ length: maxOperations + 1 }, () => ({ op: 'remove', path: 'title' }))
    expect(() => parsePatch(schema, { Operations: operations })).toThrow(expect.objectContaining({ status: 413 }))
  })

  test('rejects a body that is not an object, or whose schemas are not a list', () => {
    expect(() => parsePatch(schema, [])).toThrow(expect.objectContaining({ keyword: 'invalidSyntax' }))
    expect(() => parsePatch(schema, { schemas: 'x', Operations: [] })).toThrow(GatewayError)
  })

  test("a member can't be changed", () => {
    const group = { displayName: 'G', members: [{ value: 'u1' }] }
    expect(refusal(one('replace', 'members[value eq "u1"].value', 'u2'), group, groups)).toBe('mutability')
  })
})

test('names the changed attributes', () => {
  const operations = [{ op: 'replace', value: { title: 'Guide', active: false, department: 'New' } }]
  const after = applyPatch(schema, user, parsePatch(schema, { operations }))
  expect(changedAttributes(schema, user, after).map(({ attribute }) => attribute.name)).toEqual([
    'active',
    'department',
  ])
})

describe('any input', () => {
  const path = fc.constantFrom(
    ...[
      'userName',
      'title',
      'emails',
      'emails.value',
      'emails[type eq "work"]',
      'emails[type eq "work"].value',
      'name',
    ],
    ...['name.givenName', enterprise, `${enterprise}:manager`, 'manager.value', 'active', 'id', 'members', '__proto__'],
    ...['constructor.prototype', '__proto__.polluted', 'emails[__proto__ eq "x"]', 'roles[primary eq "True"].value'],
  )
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 4 }),
    fc.constantFrom<unknown>('x', 'True', [{ value: 'a', primary: true }], { value: 'b', type: 'work' }, null, []),
    fc.dictionary(path, fc.jsonValue({ maxDepth: 2 })),
    fc.constant(JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}')),
  )
  const operation = fc.record(
    { op: fc.constantFrom('add', 'Replace', 'REMOVE', 'x'), path, value },
    { requiredKeys: ['op'] },
  )

  test('the result is a resource or a SCIM error, no input changes, and no prototype is changed', () => {
    const snapshot = JSON.stringify(user)
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 5 }), (operations) => {
        try {
          const after = patch(operations as JsonValue)
          expect(after['id']).toBe('u1')
          expect(typeof after['userName']).toBe('string')
          expect(JSON.parse(JSON.stringify(after))).toEqual(after)
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError)
          expect((error as GatewayError).status).toBe(400)
          expect((error as GatewayError).keyword).toBeDefined()
        }
        expect(JSON.stringify(user)).toBe(snapshot)
        expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
      }),
      { numRuns: sampled(500, 2000) },
    )
  })

  test('applying the same replace twice equals applying it once, unless it removed what its filter matches', () => {
    fc.assert(
      fc.property(path, value, (where, what) => {
        const operations = one('replace', where, what as JsonValue)
        let once: JsonObject
        try {
          once = patch(operations)
        } catch {
          return
        }
        let twice: JsonObject | undefined
        try {
          twice = patch(operations, once)
        } catch (error) {
          expect([where, error]).toMatchObject([expect.stringContaining('['), { keyword: 'noTarget' }])
          expect((once['emails'] as JsonObject[]).some(({ type }) => type === 'work')).toBe(false)
        }
        if (twice !== undefined) expect(twice).toEqual(once)
      }),
      { numRuns: sampled(250, 1000) },
    )
  })
})
