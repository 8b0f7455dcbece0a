import { expect, test } from 'vitest'
import { coreGroup, coreUser, type ScimServer } from '#testing/scim/scim-client.ts'
import { fresh } from '#testing/scim/scim-story.ts'
import { inLdap, throughLdapDirectory } from './scim-on-ldap.ts'
import { describeSystem, firstOf, pagesAndGroups } from './suites.ts'

for (const lookups of [inLdap, throughLdapDirectory]) {
  const groupsInGroups = (servers: () => readonly ScimServer[]): void => {
    test('groups in groups join, are shown with their type, contain users indirectly, close no cycle, and leave', async () => {
      const client = firstOf(servers).client('/scim/v2')
      const created = async (path: string, body: object): Promise<string> => {
        const { status, body: resource } = await client.post(path, body)
        expect(status).toBe(201)
        return resource.id
      }
      const ann = await created('/Users', { schemas: [coreUser], userName: fresh('ann') })
      const group = (...members: object[]) =>
        created('/Groups', { schemas: [coreGroup], displayName: fresh('group'), members })
      const team = await group({ value: ann, type: 'User' })
      const department = await group({ value: team, type: 'Group' })
      const company = await group()
      const change = (op: string, path: string, value?: object) => [{ op, path, ...(value && { value }) }]
      const add = change('add', 'members', [{ value: department, type: 'Group' }, { value: ann }])
      expect((await client.patch(`/Groups/${company}`, add)).status).toBeLessThan(300)
      const members = async (id: string) =>
        ((await client.get(`/Groups/${id}`)).body.members ?? [])
          .map(({ type, value }: { type: string; value: string }) => `${type} ${value}`)
          .toSorted()
      expect(await members(company)).toEqual([`Group ${department}`, `User ${ann}`])
      expect(await members(department)).toEqual([`Group ${team}`])
      // The directory shows the groups of a user if the server has `memberOf`, which this one does not.
      if (lookups === inLdap) {
        const { groups } = (await client.get(`/Users/${ann}`)).body
        const shown = groups.map(({ type, value }: { type: string; value: string }) => `${type} ${value}`)
        const wanted = [`direct ${company}`, `direct ${team}`, `indirect ${department}`]
        expect(shown.toSorted()).toEqual(wanted.toSorted())
      }

      const circle = await client.patch(
        `/Groups/${team}`,
        change('add', 'members', [{ value: company, type: 'Group' }]),
      )
      expect([circle.status, circle.body.scimType]).toEqual([400, 'invalidValue'])
      expect(await members(team)).toEqual([`User ${ann}`])

      const remove = change('remove', `members[value eq "${department}"]`)
      expect((await client.patch(`/Groups/${company}`, remove)).status).toBeLessThan(300)
      expect(await members(company)).toEqual([`User ${ann}`])
      expect((await client.patch(`/Groups/${company}`, add)).status).toBeLessThan(300)
      expect((await client.delete(`/Groups/${department}`)).status).toBe(204)
      expect(await members(company)).toEqual([`User ${ann}`])
    })
  }
  describeSystem(lookups, { more: groupsInGroups, ...(lookups === inLdap ? { suites: pagesAndGroups } : {}) })
}
