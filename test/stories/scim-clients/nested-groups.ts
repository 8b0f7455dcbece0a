import { expect, test } from 'vitest'
import { coreGroup, coreUser, type ScimClient } from '#testing/scim/scim-client.ts'
import type { ScimLookups } from '#testing/scim/scim-lookups.ts'
import { fresh } from '#testing/scim/scim-story.ts'
import { siegeRaces } from '#testing/stories/siege.ts'

const sharedNames = '/scim/shared-names'

/** examples/scim, with a gateway that lets groups share names. */
export const withSharedNames: ScimLookups = {
  name: 'with shared names',
  keepsVersions: true,
  open: async () => ({
    files: {
      'shared-names.yaml': `
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: {name: shared-names}
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig: {cookiesEnabled: false}
  urls:
    - hosts: ["127.0.0.1"]
      uri: ${sharedNames}
      authChain: api
      azRules: [{scope: dn, constraint: "sub=idp,ou=api,o=Tremolo"}]
      filterChain:
        - className: filters.ScimGateway
          params:
            mapping: scim
            client: entra
            groupNames: shared
            groupDisplayName: displayName
            lookupTarget: people
            workflowName: sync-person
            deleteUserWorkflowName: delete-person
            groupWorkflow: change-membership
            groupCreateWorkflow: create-group
            groupUpdateWorkflow: update-group
            groupDeleteWorkflow: delete-group
`,
    },
  }),
}

/** Groups in groups. Clients take turns in every case; with two of them, through two processes on one database. */
export function nestedGroupsStory(clients: (path: string) => readonly ScimClient[]): void {
  const nth = (n: number, path = '/scim/v2'): ScimClient => {
    const all = clients(path)
    const client = all[n % all.length]
    if (client === undefined) throw new Error('no client')
    return client
  }
  const user = async (n: number): Promise<string> =>
    (await nth(n).post('/Users', { schemas: [coreUser], userName: fresh('user') })).body.id
  const group = async (n: number, ...members: string[]): Promise<string> => {
    const body = { schemas: [coreGroup], displayName: fresh('group'), members: members.map((value) => ({ value })) }
    const created = await nth(n).post('/Groups', body)
    expect(created.status).toBe(201)
    return created.body.id
  }
  const added = (...members: string[]) => [{ op: 'add', path: 'members', value: members.map((value) => ({ value })) }]

  test('a user is in the groups that contain its group, until the group in between is deleted', async () => {
    const ann = await user(0)
    const team = await group(1, ann)
    const department = await group(0, team)
    const company = await group(1, department)
    const groups = async (n: number) =>
      ((await nth(n).get(`/Users/${ann}`)).body.groups as { value: string; type: string }[]).map(
        ({ value, type }) => `${type} ${value}`,
      )
    for (const n of [0, 1]) {
      expect((await groups(n)).toSorted()).toEqual(
        [`direct ${team}`, `indirect ${department}`, `indirect ${company}`].toSorted(),
      )
    }
    const refused = await nth(0).patch(`/Groups/${team}`, added(company))
    expect([refused.status, refused.body.scimType]).toEqual([400, 'invalidValue'])
    expect((await nth(1).delete(`/Groups/${department}`)).status).toBe(204)
    expect(await groups(0)).toEqual([`direct ${team}`])
    expect(await nth(0).members(company)).toEqual([])
  })

  const changes = siegeRaces > 0 ? 100 : 50
  test(`of ${changes} concurrent changes of members, half of them groups, none is lost`, async () => {
    const whole = await group(0)
    const members = await Promise.all(Array.from({ length: changes }, (_, n) => (n % 2 === 0 ? user(n) : group(n))))
    const answers = await Promise.all(
      members.map((id, n) => nth(Math.floor(n / 2)).patch(`/Groups/${whole}`, added(id))),
    )
    expect(answers.map(({ status }) => status).filter((status) => status >= 300)).toEqual([])
    for (const n of [0, 1]) expect(await nth(n).members(whole)).toEqual(members.toSorted())
  })

  test('one of two that close a cycle at the same time wins', async () => {
    for (let round = 0; round < 5; round++) {
      const [a, b] = [await group(0), await group(1)]
      const answers = await Promise.all([
        nth(0).patch(`/Groups/${a}`, added(b)),
        nth(1).patch(`/Groups/${b}`, added(a)),
      ])
      expect(answers.filter(({ status }) => status === 400)).toHaveLength(1)
      expect([...(await nth(0).members(a)), ...(await nth(1).members(b))]).toHaveLength(1)
    }
  })

  test('one of 20 identical concurrent groups is created', async () => {
    const body = { schemas: [coreGroup], displayName: fresh('same') }
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => nth(n).post('/Groups', body)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array(19).fill(409)])
  })

  test('if names are shared, two groups have one name and their own members', async () => {
    const displayName = fresh('Sales')
    const people = [await user(0), await user(1)]
    const answers = await Promise.all(
      people.map((value, n) =>
        nth(n, sharedNames).post('/Groups', {
          schemas: [coreGroup],
          displayName,
          externalId: `${n}`,
          members: [{ value }],
        }),
      ),
    )
    expect(answers.map(({ status, body }) => [status, body.displayName])).toEqual(Array(2).fill([201, displayName]))
    const found = await nth(0, sharedNames).filter('/Groups', `displayName eq "${displayName}"`)
    expect(found.body.totalResults).toBe(2)
    for (const [n, { body }] of answers.entries()) {
      expect(await nth(n + 1, sharedNames).members(body.id)).toEqual([people[n]])
    }
  })
}
