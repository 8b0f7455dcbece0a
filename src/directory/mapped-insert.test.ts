import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { DirectoryInsert } from '#sdk/directory/directory-insert.ts'
import { MappedInsert } from './create-directory.ts'

const suffix = Dn.parse('ou=people,o=Tremolo')

/** An insert that returns one entry for any search. */
const insertOf = (attributes: Record<string, string[]>): DirectoryInsert => ({
  search: async () => ({ entries: [{ dn: suffix.child('uid', 'ada'), attributes: Attributes.from(attributes) }] }),
  isMember: async () => false,
  members: async () => [],
})

async function mapped(attributes: Record<string, string[]>, mapping: Record<string, string>) {
  const insert = new MappedInsert(insertOf(attributes), suffix, new Map(Object.entries(mapping)))
  const filter = { kind: 'present', attribute: 'objectClass' } as const
  const { entries } = await insert.search({ base: suffix, scope: 'sub', filter, limit: 10 })
  return entries[0]?.attributes.toObject()
}

test('an attribute with another one’s directory name does not add to that one', async () => {
  const found = await mapped({ role: ['admin'], employeeType: ['guest'] }, { role: 'employeeType' })
  expect(found).toEqual({ role: ['guest'] })
  expect(await mapped({ ROLE: ['admin'] }, { role: 'employeeType' })).toEqual({})
})

test('two attributes may swap their names', async () => {
  expect(await mapped({ title: ['t'], description: ['d'] }, { title: 'description', description: 'title' })).toEqual({
    title: ['d'],
    description: ['t'],
  })
})

test('a name from outside the suffix keeps its text', async () => {
  const manager = ['CN=Smith\\2C Ann, ou=Staff,dc=corp,dc=test', 'mail=bob,ou=people,o=Tremolo']
  const found = await mapped({ manager }, { email: 'mail' })
  expect(found).toEqual({ manager: ['CN=Smith\\2C Ann, ou=Staff,dc=corp,dc=test', 'email=bob,ou=people,o=Tremolo'] })
})
