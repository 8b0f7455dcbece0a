import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import { clientValues, readResource } from '#protocols/scim/read-resource.ts'
import { requireAttributes } from '#protocols/scim/resource-rules.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'

const schema = new ResourceSchema(userSchema, [enterpriseUserSchema])
const enterprise = enterpriseUserSchema.id

test('accepts variants of clients', () => {
  expect(
    readResource(schema, {
      schemas: ['urn:scim:schemas:core:1.0', 'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/User'],
      id: 'chosen by the client',
      USERNAME: 'jjackson',
      addresses: null,
      title: null,
      active: 'True',
      groups: [],
      emails: { value: 'j@example.com', primary: 'true', Unknown: 1 },
      'urn:ietf:params:scim:schemas:extension:enterprise:2.0User': { department: 'mistyped' },
      [enterprise.toLowerCase()]: { Department: 'Tours', manager: '26', other: 1 },
      unknown: { deep: [1] },
      meta: { location: 'x' },
    }),
  ).toEqual({
    userName: 'jjackson',
    active: true,
    emails: [{ value: 'j@example.com', primary: true }],
    [enterprise]: { department: 'Tours', manager: { value: '26' } },
  })
})

test.each<[string, JsonValue]>([
  ['invalidSyntax', []],
  ['invalidSyntax', null],
  ['invalidSyntax', { schemas: [1], userName: 'x' }],
  ['invalidValue', { userName: 5 }],
  ['invalidValue', { userName: ['x'] }],
  ['invalidValue', { name: 'x' }],
  ['invalidValue', { emails: [[{ value: 'x' }]] }],
  ['invalidValue', { active: 'maybe' }],
  ['invalidValue', { [enterprise]: 'x' }],
  [
    'invalidValue',
    {
      emails: [
        { primary: true, value: 'a' },
        { primary: 'true', value: 'b' },
      ],
    },
  ],
])('rejects with %s: %j', (keyword, body) => {
  expect(() => readResource(schema, body)).toThrow(expect.objectContaining({ keyword }))
})

test('throws if a required attribute is missing', () => {
  expect(() => requireAttributes(schema, {})).toThrow(expect.objectContaining({ keyword: 'invalidValue' }))
  expect(() => requireAttributes(schema, { userName: '' })).toThrow(GatewayError)
  expect(() => requireAttributes(schema, { userName: 'x' })).not.toThrow()
})

test('a name of the JavaScript prototype is not an attribute', () => {
  const body = JSON.parse(
    '{"userName":"x","__proto__":{"polluted":1},"name":{"__proto__":{"polluted":1},"givenName":"A"}}',
  )
  const resource = readResource(schema, body)
  expect(resource).toEqual({ userName: 'x', name: { givenName: 'A' } })
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
})

test('any JSON is read or rejected, at any depth', () => {
  const deep = JSON.parse(`${'{"name":'.repeat(5000)}1${'}'.repeat(5000)}`)
  expect(readResource(schema, { userName: 'x', unknown: deep })).toEqual({ userName: 'x' })
  fc.assert(
    fc.property(fc.jsonValue(), (body) => {
      try {
        readResource(schema, body as JsonValue)
      } catch (error) {
        expect(error).toBeInstanceOf(GatewayError)
      }
    }),
  )
})

test("Entra's documented POST: nulls, a mistyped URN, string booleans, JSON in a text, an extension that schemas do not name", () => {
  expect(
    readResource(schema, {
      schemas: [userSchema.id],
      userName: 'jyoung',
      externalId: 'jyoung',
      addresses: null,
      title: null,
      manager: null,
      roles: [{ primary: 'True', value: '{"id":"1","value":"Admin","displayName":"Admin"}' }],
      'urn:ietf:params:scim:schemas:extension:enterprise:2.0User': {
        department: 'bob',
        manager: [{ $ref: null, value: '26' }],
      },
    }),
  ).toEqual({
    userName: 'jyoung',
    externalId: 'jyoung',
    roles: [{ primary: true, value: 'Admin' }],
    [enterprise]: { department: 'bob', manager: { value: '26' } },
  })
})

test("Okta's POST: a password and no groups", () => {
  expect(readResource(schema, { userName: 'o', password: 'p', groups: [], active: true })).toEqual({
    userName: 'o',
    password: 'p',
    active: true,
  })
})

test('a repeated value is stored once', () => {
  const emails = [{ value: 'a', type: 'work' }, { value: 'A', type: 'Work', display: 'D' }, { value: 'a' }]
  expect(readResource(schema, { emails })).toEqual({
    emails: [{ value: 'a', type: 'work', display: 'D' }, { value: 'a' }],
  })
})

test('of a repeated name the last value counts', () => {
  expect(readResource(schema, JSON.parse('{"userName":"first","userName":"last"}'))).toEqual({ userName: 'last' })
  expect(readResource(schema, { userName: 'first', USERNAME: 'last' })).toEqual({ userName: 'last' })
})

describe('strict mode', () => {
  const strict = { ...clientValues, strict: true }
  const both = [userSchema.id, enterprise]

  test('reads what the RFCs define, and still ignores readOnly', () => {
    const body = { schemas: both, id: 'x', userName: 'b', active: true, emails: [{ value: 'a' }], meta: {} }
    expect(readResource(schema, { ...body, [enterprise]: { department: 'T' } }, strict)).toEqual({
      userName: 'b',
      active: true,
      emails: [{ value: 'a' }],
      [enterprise]: { department: 'T' },
    })
  })

  test.each<[string, JsonValue]>([
    ['invalidSyntax', { userName: 'b' }],
    ['invalidSyntax', { schemas: null, userName: 'b' }],
    ['invalidSyntax', { schemas: [], userName: 'b' }],
    ['invalidSyntax', { schemas: [enterprise], userName: 'b' }],
    ['invalidSyntax', { schemas: both, userName: 'b', color: 'red' }],
    ['invalidSyntax', { schemas: both, userName: 'b', name: { color: 'red' } }],
    ['invalidSyntax', { schemas: both, userName: 'b', [enterprise]: { color: 'red' } }],
    ['invalidSyntax', { schemas: both, userName: 'b', department: 'T' }],
    ['invalidSyntax', { schemas: both, userName: 'b', 'urn:unknown': {} }],
    ['invalidValue', { schemas: [...both, 'urn:unknown'], userName: 'b' }],
    ['invalidValue', { schemas: [userSchema.id], userName: 'b', [enterprise]: { department: 'T' } }],
    ['invalidValue', { schemas: both, userName: 'b', active: 'true' }],
    ['invalidValue', { schemas: both, userName: 'b', [enterprise]: { manager: '26' } }],
  ])('rejects with %s: %j', (keyword, body) => {
    expect(() => readResource(schema, body, strict)).toThrow(expect.objectContaining({ keyword, status: 400 }))
  })
})

test('a number that is too large is rejected', () => {
  const attributes = [attribute('n', 'A number.', { type: 'decimal' })]
  const numbers = new ResourceSchema(userSchema, [{ id: 'urn:example:N', name: 'N', description: '', attributes }])
  const read = (text: string) => readResource(numbers, JSON.parse(`{"urn:example:N":{"n":${text}}}`))
  expect(read('1e300')).toEqual({ 'urn:example:N': { n: 1e300 } })
  for (const text of ['1e400', '-1e400']) {
    expect(() => read(text)).toThrow(expect.objectContaining({ keyword: 'invalidValue' }))
  }
})

test('clients need not send what only the service sets', () => {
  const attributes = [attribute('serial', 'A number.', { required: true, mutability: 'readOnly' })]
  const extended = new ResourceSchema(userSchema, [{ id: 'urn:example:S', name: 'S', description: '', attributes }])
  const sent = readResource(extended, { userName: 'ada', 'urn:example:S': { serial: '7' } })
  expect(sent).toEqual({ userName: 'ada' })
  expect(() => requireAttributes(extended, { ...sent, 'urn:example:S': {} })).not.toThrow()
})
