import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { coreGroup, coreUser, enterpriseUser, type ScimClient } from '#testing/scim/scim-client.ts'
import { fresh, type StoryOptions, testIf } from '#testing/scim/scim-story.ts'

const newUser = (more: object = {}) => ({
  schemas: [coreUser, enterpriseUser],
  userName: fresh('user'),
  externalId: randomUUID(),
  name: { givenName: 'Sail', familyName: 'Point' },
  emails: [{ value: 'sail@example.com', type: 'work', primary: true }],
  active: true,
  ...more,
})

const createOn =
  (sailpoint: () => ScimClient) =>
  async (more: object = {}) => {
    const { status, body } = await sailpoint().post('/Users', newUser(more))
    expect(status).toBe(201)
    return body
  }

/** SailPoint's behavior, with the requests of its SCIM 2.0 connector. */
export function sailpointStory(sailpoint: () => ScimClient, options: StoryOptions = {}): void {
  const groupTest = testIf(options.groups)
  const create = createOn(sailpoint)

  test('the server describes itself before any other request', async () => {
    const config = await sailpoint().get('/ServiceProviderConfig')
    expect(config).toMatchObject({
      status: 200,
      body: {
        schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
        patch: { supported: true },
        filter: { supported: true, maxResults: expect.any(Number) },
        bulk: { supported: expect.any(Boolean), maxOperations: expect.any(Number), maxPayloadSize: expect.any(Number) },
        changePassword: { supported: expect.any(Boolean) },
        sort: { supported: expect.any(Boolean) },
        etag: { supported: expect.any(Boolean) },
      },
    })
    expect(config.body.authenticationSchemes.length).toBeGreaterThan(0)
    const types = (await sailpoint().get('/ResourceTypes')).body
    expect(types).toMatchObject({ totalResults: types.Resources.length })
    for (const [name, endpoint, schema] of [
      ['User', '/Users', coreUser],
      ['Group', '/Groups', coreGroup],
    ]) {
      const type = await sailpoint().get(`/ResourceTypes/${name}`)
      expect(type).toMatchObject({ status: 200, body: { name, endpoint, schema } })
      expect(types.Resources).toContainEqual(type.body)
      expect(await sailpoint().get(`/Schemas/${schema}`)).toMatchObject({ status: 200, body: { id: schema } })
    }
  })

  test('the described attributes are enough to write them: entitlements and roles among them', async () => {
    const { body: schema } = await sailpoint().get(`/Schemas/${coreUser}`)
    const attribute = (name: string) => schema.attributes.find((one: { name: string }) => one.name === name)
    for (const name of ['entitlements', 'roles']) {
      expect(attribute(name)).toMatchObject({ multiValued: true, type: 'complex', mutability: 'readWrite' })
    }
    expect(attribute('userName')).toMatchObject({ required: true, uniqueness: 'server', caseExact: false })
    const { body: group } = await sailpoint().get(`/Schemas/${coreGroup}`)
    const members = group.attributes.find((one: { name: string }) => one.name === 'members')
    expect(members.subAttributes.map(({ name }: { name: string }) => name)).toEqual([
      'value',
      '$ref',
      'type',
      'display',
    ])
    const user = await create({
      entitlements: [{ value: 'e1', display: 'One' }],
      roles: [{ value: 'r1', type: 'app' }],
    })
    expect(user).toMatchObject({
      entitlements: [{ value: 'e1', display: 'One' }],
      roles: [{ value: 'r1', type: 'app' }],
    })
  })

  test('an account is changed by PATCH, and by PUT if HttpPatchSupport is false', async () => {
    const user = await create()
    const patched = await sailpoint().patch(`/Users/${user.id}`, [
      { op: 'replace', path: 'name.familyName', value: 'Patched' },
      { op: 'add', path: `${enterpriseUser}:department`, value: 'Sales' },
      { op: 'add', path: 'entitlements', value: [{ value: 'e1' }] },
    ])
    expect(patched).toMatchObject({
      status: 200,
      body: {
        name: { familyName: 'Patched' },
        [enterpriseUser]: { department: 'Sales' },
        entitlements: [{ value: 'e1' }],
      },
    })
    const put = await sailpoint().put(`/Users/${user.id}`, {
      ...patched.body,
      name: { givenName: 'Sail', familyName: 'Put' },
      entitlements: [{ value: 'e2' }],
    })
    expect(put).toMatchObject({
      status: 200,
      body: { name: { familyName: 'Put' }, [enterpriseUser]: { department: 'Sales' }, entitlements: [{ value: 'e2' }] },
    })
  })

  test('an account is disabled and enabled by active, by either method', async () => {
    const user = await create()
    expect((await sailpoint().put(`/Users/${user.id}`, { ...user, active: false })).body.active).toBe(false)
    const enabled = await sailpoint().patch(`/Users/${user.id}`, [{ op: 'replace', path: 'active', value: true }])
    expect(enabled.body.active).toBe(true)
  })

  groupTest(
    'an entitlement is a group: it is requested, removed one by one, and read back from both sides',
    async () => {
      const [user, other] = [await create(), await create()]
      const { body: group } = await sailpoint().post('/Groups', { schemas: [coreGroup], displayName: fresh('group') })
      for (const { id } of [user, other]) {
        const value = [{ value: id }]
        const added = await sailpoint().patch(`/Groups/${group.id}`, [{ op: 'add', path: 'members', value }])
        expect(added.status).toBe(204)
      }
      expect(await sailpoint().members(group.id)).toEqual([user.id, other.id].sort())
      await sailpoint().patch(`/Groups/${group.id}`, [{ op: 'remove', path: `members[value eq "${user.id}"]` }])
      expect(await sailpoint().members(group.id)).toEqual([other.id])
      expect((await sailpoint().get(`/Users/${user.id}`)).body.groups ?? []).toEqual([])
      expect((await sailpoint().get(`/Users/${other.id}`)).body.groups).toMatchObject([{ value: group.id }])
    },
  )

  test('an account that exists, also an inactive one, is not created again', async () => {
    const user = newUser()
    const { body } = await sailpoint().post('/Users', user)
    await sailpoint().patch(`/Users/${body.id}`, [{ op: 'replace', path: 'active', value: false }])
    expect(await sailpoint().post('/Users', user)).toMatchObject({ status: 409, body: { scimType: 'uniqueness' } })
  })

  sailpointPagesStory(sailpoint, options)
}

/** How it reads everything. */
export function sailpointPagesStory(sailpoint: () => ScimClient, { groups }: StoryOptions = {}): void {
  const create = createOn(sailpoint)

  testIf(groups)('all users and all groups are read page by page', async () => {
    const made = await Promise.all(Array.from({ length: 12 }, () => create()))
    const groups = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const body = { schemas: [coreGroup], displayName: fresh('group'), members: [{ value: made[0].id }] }
        return (await sailpoint().post('/Groups', body)).body.id
      }),
    )
    const all = async (collection: string): Promise<string[]> => {
      const ids: string[] = []
      for (;;) {
        const page = await sailpoint().list(collection, { startIndex: String(ids.length + 1), count: '5' })
        ids.push(...(page.body.Resources ?? []).map(({ id }: { id: string }) => id))
        if (ids.length >= page.body.totalResults) return ids
      }
    }
    for (const [collection, wanted] of [
      ['/Users', made.map(({ id }) => id)],
      ['/Groups', groups],
    ] as const) {
      const found = await all(collection)
      expect(new Set(found).size).toBe(found.length)
      expect(found).toEqual(expect.arrayContaining(wanted))
    }
    const { body } = await sailpoint().get(`/Users/${made[0].id}`)
    expect(body.groups.map(({ value }: { value: string }) => value).sort()).toEqual(groups.sort())
  })
}
