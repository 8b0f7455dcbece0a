import { describe, expect, test } from 'vitest'
import { coreGroup, coreUser, enterpriseUser, type ScimClient } from '#testing/scim/scim-client.ts'
import { fresh } from '#testing/scim/scim-story.ts'

const newUser = (more: object = {}) => ({ schemas: [coreUser], userName: fresh('user'), active: true, ...more })

/** Clients with fewer habits, and paths with a tenant. */
export function otherClientsStory(client: (path: string) => ScimClient): void {
  describe('JumpCloud', () => {
    const jumpcloud = () => client('/scim/jumpcloud')

    test('activation creates a test user and a test group, and deletes both', async () => {
      const { status, body: user } = await jumpcloud().post('/Users', newUser())
      const { body: group } = await jumpcloud().post('/Groups', {
        schemas: [coreGroup],
        displayName: fresh('test group'),
      })
      expect(status).toBe(201)
      expect((await jumpcloud().patch(`/Users/${user.id}`, [{ op: 'replace', value: { active: false } }])).status).toBe(
        200,
      )
      expect((await jumpcloud().delete(`/Users/${user.id}`)).status).toBe(204)
      expect((await jumpcloud().delete(`/Groups/${group.id}`)).status).toBe(204)
      expect((await jumpcloud().get(`/Groups/${group.id}`)).status).toBe(404)
    })

    test('members join and leave as lists of values', async () => {
      const users = [
        (await jumpcloud().post('/Users', newUser())).body.id,
        (await jumpcloud().post('/Users', newUser())).body.id,
      ]
      const { body: group } = await jumpcloud().post('/Groups', { schemas: [coreGroup], displayName: fresh('group') })
      const change = (op: string, ids: string[]) =>
        jumpcloud().patch(`/Groups/${group.id}`, [{ op, path: 'members', value: ids.map((value) => ({ value })) }])
      expect((await change('add', users)).status).toBe(204)
      expect((await change('remove', users.slice(0, 1))).status).toBe(204)
      expect(await jumpcloud().members(group.id)).toEqual(users.slice(1))
    })
  })

  describe('Google Workspace', () => {
    const google = () => client('/scim/google')

    test('the probe requests one user', async () => {
      await google().post('/Users', newUser())
      expect(await google().list('/Users', { count: '1' })).toMatchObject({ status: 200, body: { itemsPerPage: 1 } })
    })

    test('a suspended user is created inactive, and stays so until a PUT changes it', async () => {
      const user = newUser({ active: false, [enterpriseUser]: { organization: 'Org' } })
      const { status, body } = await google().post('/Users', user)
      expect(status).toBe(201)
      expect(body.active).toBe(false)
      expect((await google().get(`/Users/${body.id}`)).body.active).toBe(false)
      expect((await google().put(`/Users/${body.id}`, { ...user, active: true })).body.active).toBe(true)
      expect((await google().put(`/Users/${body.id}`, user)).body.active).toBe(false)
    })
  })

  describe('A strict client', () => {
    const strict = () => client('/scim/strict')

    test('requests that other clients may send are errors here', async () => {
      const { body } = await strict().post('/Users', newUser())
      expect(
        (await strict().patch(`/Users/${body.id}`, [{ op: 'Replace', path: 'active', value: 'False' }])).status,
      ).toBe(400)
      expect((await strict().get(`/Users/${body.id}`)).body.active).toBe(true)
      expect((await strict().post('/Users', newUser({ schemas: ['urn:scim:schemas:core:1.0'] }))).status).toBe(400)
      expect((await strict().post('/Users', newUser({ shoeSize: 44 }))).status).toBe(400)
    })
  })

  describe('Any client', () => {
    const any = () => client('/scim/v2')

    test("authentik's group PATCH: an id inside the value is ignored, even a wrong one", async () => {
      const { body: group } = await any().post('/Groups', { schemas: [coreGroup], displayName: fresh('group') })
      const displayName = fresh('renamed')
      const answer = await any().patch(`/Groups/${group.id}`, [{ op: 'replace', value: { id: 'other', displayName } }])
      expect(answer.status).toBe(204)
      expect((await any().get(`/Groups/${group.id}`)).body).toMatchObject({ id: group.id, displayName })
    })

    test('emptying a group, which the default allows', async () => {
      const { body: user } = await any().post('/Users', newUser())
      const members = [{ value: user.id }]
      const { body: group } = await any().post('/Groups', {
        schemas: [coreGroup],
        displayName: fresh('group'),
        members,
      })
      expect(await any().members(group.id)).toEqual([user.id])
      expect((await any().patch(`/Groups/${group.id}`, [{ op: 'remove', path: 'members' }])).status).toBe(204)
      expect(await any().members(group.id)).toEqual([])
    })

    test('a missing member is rejected, and nothing changes', async () => {
      const { body: user } = await any().post('/Users', newUser())
      const { body: group } = await any().post('/Groups', { schemas: [coreGroup], displayName: fresh('group') })
      const value = [{ value: user.id }, { value: 'nobody' }]
      const answer = await any().patch(`/Groups/${group.id}`, [{ op: 'add', path: 'members', value }])
      expect(answer).toMatchObject({ status: 400, body: { scimType: 'invalidValue' } })
      expect(await any().members(group.id)).toEqual([])
      const displayName = fresh('group')
      expect((await any().post('/Groups', { schemas: [coreGroup], displayName, members: value })).status).toBe(400)
      expect((await any().filter('/Groups', `displayName eq "${displayName}"`)).body.totalResults).toBe(0)
    })
  })

  describe('one Application for many tenants, with the tenant in its path', () => {
    const tenants = () => client('/tenants')

    const at = (tenant: string, path: string) => `/${tenant}/scim${path}`

    test('every location has the tenant of the request', async () => {
      const created = await tenants().post(at('acme', '/Users'), newUser())
      const location = `${tenants().base}/acme/scim/Users/${created.body.id}`
      expect(created).toMatchObject({ status: 201, body: { meta: { location } } })
      expect(created.headers.get('location')).toBe(location)
      const members = [{ value: created.body.id }]
      const body = { schemas: [coreGroup], displayName: fresh('group'), members }
      const { body: group } = await tenants().post(at('zenith', '/Groups'), body)
      expect(group).toMatchObject({
        meta: { location: `${tenants().base}/zenith/scim/Groups/${group.id}` },
        members: [{ value: created.body.id, $ref: `${tenants().base}/zenith/scim/Users/${created.body.id}` }],
      })
      const { body: user } = await tenants().get(at('zenith', `/Users/${created.body.id}`))
      expect(user.groups).toMatchObject([{ $ref: `${tenants().base}/zenith/scim/Groups/${group.id}` }])
      const { body: types } = await tenants().get(at('acme', '/ResourceTypes/User'))
      expect(types.meta.location).toBe(`${tenants().base}/acme/scim/ResourceTypes/User`)
    })

    test('an unknown tenant has no gateway', async () => {
      for (const path of ['/ACME/scim/Users', '/acme/other/Users', '/a/b/scim/Users', '/acme/scimitar/Users']) {
        expect((await tenants().get(path)).status).toBe(404)
      }
    })
  })
}
