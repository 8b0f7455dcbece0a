import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { quietRequest } from '#testing/ldap/ldap-target.ts'
import { AttributeNames, withNames } from './ldap-names.ts'

type WholeTarget = Parameters<typeof withNames>[0]

/** A target with one user, for reading only. */
const targetOf = (attributes: Record<string, string[]>): WholeTarget =>
  ({
    lookupUserByLogin: async (userID: string) => ({ userID, attributes: Attributes.from(attributes), groups: [] }),
  }) as unknown as WholeTarget

test('a server attribute with the same name as one of ours does not add to it', async () => {
  const names = { users: new AttributeNames([['role', 'employeeType']]), groups: new AttributeNames([]) }
  const target = withNames(targetOf({ role: ['admin'], employeeType: ['guest'] }), { ...names, leavesOutEmpty: false })
  expect((await target.lookupUserByLogin('ada'))?.attributes.toObject()).toEqual({ role: ['guest'] })
})

test('a refused value is reported under our name of its attribute', async () => {
  const refusing = {
    createUser: async () => {
      throw new GatewayError('BAD_REQUEST', 'result 21', {
        attribute: 'telephoneNumber',
        publicText: (shown = '"telephoneNumber"') => `The value of ${shown} cannot be stored.`,
      })
    },
  } as unknown as WholeTarget
  const names = { users: new AttributeNames([['phoneNumbers', 'telephoneNumber']]), groups: new AttributeNames([]) }
  const target = withNames(refusing, { ...names, leavesOutEmpty: false })
  const user = { userID: 'ada', attributes: new Attributes(), groups: [] }
  await expect(target.createUser(user, [], quietRequest)).rejects.toMatchObject({
    code: 'BAD_REQUEST',
    attribute: 'phoneNumbers',
    publicText: 'The value of "phoneNumbers" cannot be stored.',
  })
})

test('a group that is called like an attribute of the server keeps its name', async () => {
  const publicText = 'The directory does not take a group as a member of the group "employeeType".'
  const refusing = {
    updateGroup: async () => {
      throw new GatewayError('BAD_REQUEST', 'result 65', { publicText })
    },
  } as unknown as WholeTarget
  const names = { users: new AttributeNames([]), groups: new AttributeNames([['role', 'employeeType']]) }
  const target = withNames(refusing, { ...names, leavesOutEmpty: false })
  await expect(target.updateGroup('employeeType', {}, quietRequest)).rejects.toMatchObject({ publicText })
})
