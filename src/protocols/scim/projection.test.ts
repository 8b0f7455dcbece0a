import { expect, test } from 'vitest'
import { parseProjection } from '#protocols/scim/projection.ts'
import { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { enterpriseUserSchema } from '#protocols/scim/schemas/enterprise-user.ts'
import { userSchema } from '#protocols/scim/schemas/user.ts'

const schema = new ResourceSchema(userSchema, [enterpriseUserSchema])
const enterprise = enterpriseUserSchema.id
const user = {
  schemas: [userSchema.id],
  id: 'u1',
  userName: 'b',
  name: { givenName: 'B', familyName: 'J' },
  emails: [{ value: 'a@b', type: 'work' }],
  [enterprise]: { department: 'Tours', costCenter: 'C' },
  meta: { resourceType: 'User', location: 'x' },
}
const always = { schemas: user.schemas, id: 'u1' }

test.each<[string | null, string | null, object]>([
  ['userName', null, { ...always, userName: 'b' }],
  ['USERNAME, name.givenname', null, { ...always, userName: 'b', name: { givenName: 'B' } }],
  ['emails.value', null, { ...always, emails: [{ value: 'a@b' }] }],
  [`${enterprise}:department`, null, { ...always, [enterprise]: { department: 'Tours' } }],
  [enterprise, null, { ...always, [enterprise]: user[enterprise] }],
  [`${userSchema.id}:userName`, null, { ...always, userName: 'b' }],
  ['unknown,__proto__', null, always],
  [null, `emails,name.familyName,${enterprise},meta,id`, { ...always, userName: 'b', name: { givenName: 'B' } }],
  ['userName', 'userName', { ...always, userName: 'b' }],
])('attributes=%s excludedAttributes=%s', (attributes, excluded, expected) => {
  expect(parseProjection(schema, attributes, excluded)?.apply(user)).toEqual(expected)
})

test('nothing asked is nothing done', () => {
  expect(parseProjection(schema, null, null)).toBeUndefined()
  expect(parseProjection(schema, '', null)).toBeUndefined()
})

test('says which attributes need to be read', () => {
  expect(parseProjection(schema, null, 'emails')?.wants('emails')).toBe(false)
  expect(parseProjection(schema, null, 'emails.type')?.wants('emails')).toBe(true)
  expect(parseProjection(schema, 'id', null)?.wants('emails')).toBe(false)
})

test('a password is never shown', () => {
  const shown = parseProjection(schema, 'password', null)?.apply({ ...user, password: 'secret' })
  expect(shown).toEqual(always)
})
