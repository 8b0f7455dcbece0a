import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { AttributeNames, withNames } from './ldap-names.ts'

type WholeTarget = Parameters<typeof withNames>[0]

/** A target with one user, of which only reading is asked. */
const targetOf = (attributes: Record<string, string[]>): WholeTarget =>
  ({
    lookupUserByLogin: async (userID: string) => ({ userID, attributes: Attributes.from(attributes), groups: [] }),
  }) as unknown as WholeTarget

test('an attribute of the server that has another one’s name here does not add to that', async () => {
  const names = { users: new AttributeNames([['role', 'employeeType']]), groups: new AttributeNames([]) }
  const target = withNames(targetOf({ role: ['admin'], employeeType: ['guest'] }), { ...names, leavesOutEmpty: false })
  expect((await target.lookupUserByLogin('ada'))?.attributes.toObject()).toEqual({ role: ['guest'] })
})
