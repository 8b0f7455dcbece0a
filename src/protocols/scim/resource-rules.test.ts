import { expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { readResource } from '#protocols/scim/read-resource.ts'
import { replaceResource } from '#protocols/scim/resource-rules.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'

const enterprise = enterpriseUserSchema.id
const site = 'urn:example:Site'
const schema = new ResourceSchema(userSchema, [
  enterpriseUserSchema,
  { id: site, name: 'Site', description: '', attributes: [attribute('badge', '', { mutability: 'immutable' })] },
])
const before: JsonObject = {
  id: 'u1',
  userName: 'b',
  title: 'Guide',
  emails: [{ value: 'a@b' }],
  groups: [{ value: 'g1' }],
  meta: { resourceType: 'User' },
  [enterprise]: { department: 'Tours', manager: { value: '26', displayName: 'John' } },
  [site]: { badge: 'B-1' },
}
const put = (body: JsonValue): JsonObject => replaceResource(schema, before, readResource(schema, body))
const service = { id: 'u1', groups: before['groups'], meta: before['meta'], [site]: { badge: 'B-1' } }

test('clears attributes that are left out, except readOnly and immutable ones', () => {
  expect(put({ id: 'other', userName: 'b', displayName: 'N', groups: [], meta: {} })).toEqual({
    ...service,
    userName: 'b',
    displayName: 'N',
  })
})

test("the service's part of a value stays and is removed with the value", () => {
  expect(put({ userName: 'b', manager: { value: '26', displayName: 'x' } })[enterprise]).toEqual({
    manager: { value: '26', displayName: 'John' },
  })
  expect(put({ userName: 'b', manager: '9' })[enterprise]).toEqual({ manager: { value: '9' } })
})

test('an immutable value must not change', () => {
  expect(put({ userName: 'b', [site]: { badge: 'B-1' } })).toEqual({ ...service, userName: 'b' })
  expect(() => put({ userName: 'b', [site]: { badge: 'B-2' } })).toThrow(
    expect.objectContaining({ keyword: 'mutability' }),
  )
})

test('no input changes', () => {
  const snapshot = JSON.stringify(before)
  put({ userName: 'c', manager: '26' })
  expect(JSON.stringify(before)).toBe(snapshot)
})
