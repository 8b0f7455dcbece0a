import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
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
