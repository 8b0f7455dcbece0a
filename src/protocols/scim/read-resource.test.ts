import fc from 'fast-check'
import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import { readResource, requireAttributes } from '#protocols/scim/read-resource.ts'
import { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { enterpriseUserSchema } from '#protocols/scim/schemas/enterprise-user.ts'
import { userSchema } from '#protocols/scim/schemas/user.ts'

const schema = new ResourceSchema(userSchema, [enterpriseUserSchema])
const enterprise = enterpriseUserSchema.id

test('takes what clients send', () => {
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
])('refuses with %s: %j', (keyword, body) => {
  expect(() => readResource(schema, body)).toThrow(expect.objectContaining({ keyword }))
})

test('requires what the schema requires', () => {
  expect(() => requireAttributes(schema, {})).toThrow(expect.objectContaining({ keyword: 'invalidValue' }))
  expect(() => requireAttributes(schema, { userName: '' })).toThrow(GatewayError)
  expect(() => requireAttributes(schema, { userName: 'x' })).not.toThrow()
})

test('a name of JavaScript itself is no attribute', () => {
  const body = JSON.parse(
    '{"userName":"x","__proto__":{"polluted":1},"name":{"__proto__":{"polluted":1},"givenName":"A"}}',
  )
  const resource = readResource(schema, body)
  expect(resource).toEqual({ userName: 'x', name: { givenName: 'A' } })
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
})

test('any JSON is read or refused, however deep', () => {
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
