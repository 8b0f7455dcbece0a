import { describe, expect, test } from 'vitest'
import { parseProjection } from '#protocols/scim/projection.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema, groupSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'

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

test('without a request, everything but hidden attributes is shown', () => {
  expect(parseProjection(new ResourceSchema(groupSchema), null, null)).toBeUndefined()
  expect(parseProjection(schema, null, null)?.apply({ ...user, password: 'secret' })).toEqual(user)
  expect(parseProjection(schema, '', null)?.wants('emails')).toBe(true)
  expect(parseProjection(schema, '', null)?.wants('Password')).toBe(false)
})

describe('`returned` of an attribute or a part of it', () => {
  const custom = new ResourceSchema({
    id: 'urn:example:Badge',
    name: 'Badge',
    description: '',
    attributes: [
      attribute('color', '', { returned: 'request' }),
      attribute('pin', '', { returned: 'never' }),
      attribute('holder', '', {
        type: 'complex',
        subAttributes: [
          attribute('value', '', { returned: 'always' }),
          attribute('note', '', { returned: 'request' }),
          attribute('secret', '', { returned: 'never' }),
          attribute('display', ''),
        ],
      }),
    ],
  })
  const badge = {
    id: 'b',
    color: 'red',
    pin: '1234',
    holder: { value: 'u1', note: 'n', secret: 's', display: 'Babs' },
  }

  test.each<[string | null, string | null, object]>([
    [null, null, { id: 'b', holder: { value: 'u1', display: 'Babs' } }],
    ['color', null, { id: 'b', color: 'red' }],
    ['pin,holder.secret', null, { id: 'b', holder: { value: 'u1' } }],
    ['holder', null, { id: 'b', holder: { value: 'u1', display: 'Babs' } }],
    ['holder.note', null, { id: 'b', holder: { value: 'u1', note: 'n' } }],
    [null, 'holder.value,holder.display', { id: 'b', holder: { value: 'u1' } }],
    [null, 'color', { id: 'b', holder: { value: 'u1', display: 'Babs' } }],
  ])('attributes=%s excludedAttributes=%s', (attributes, excluded, expected) => {
    expect(parseProjection(custom, attributes, excluded)?.apply(badge)).toEqual(expected)
  })
})

test('a list that is too long is rejected, not cut', () => {
  expect(() => parseProjection(schema, 'x,'.repeat(3000), null)).toThrow(
    expect.objectContaining({ keyword: 'invalidValue' }),
  )
})

test('returns which attributes need to be read', () => {
  expect(parseProjection(schema, null, 'emails')?.wants('emails')).toBe(false)
  expect(parseProjection(schema, null, 'emails.type')?.wants('emails')).toBe(true)
  expect(parseProjection(schema, 'id', null)?.wants('emails')).toBe(false)
})

test('a password is never shown', () => {
  const shown = parseProjection(schema, 'password', null)?.apply({ ...user, password: 'secret' })
  expect(shown).toEqual(always)
})
