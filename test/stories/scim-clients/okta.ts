import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { coreGroup, coreUser, enterpriseUser, type ScimClient } from '#testing/scim/scim-client.ts'
import { fresh, type StoryOptions, testIf } from '#testing/scim/scim-story.ts'

const newUser = (userName = `${fresh('user')}@example.com`, more: object = {}) => ({
  schemas: [coreUser],
  userName,
  name: { givenName: 'Test', familyName: 'User' },
  emails: [{ primary: true, value: userName, type: 'work' }],
  displayName: 'Test User',
  locale: 'en-US',
  externalId: `00u${randomBytes(8).toString('hex')}`,
  groups: [],
  password: '1mz050nq',
  active: true,
  ...more,
})

/** Okta's behavior, with the requests of its provisioning. */
export function oktaStory(okta: () => ScimClient, { groups }: StoryOptions = {}): void {
  const groupTest = testIf(groups)
  const create = async (more: object = {}): Promise<string> => {
    const { status, body } = await okta().post('/Users', newUser(undefined, more))
    expect(status).toBe(201)
    return body.id
  }
  const createGroup = async (members: readonly string[] = []): Promise<{ id: string; displayName: string }> => {
    const displayName = fresh('group')
    const body = { schemas: [coreGroup], displayName, members: members.map((value) => ({ value, display: 'x' })) }
    const created = await okta().post('/Groups', body)
    expect(created.status).toBe(201)
    return { id: created.body.id, displayName }
  }

  test('the connection test: a page of two, with numeric totals', async () => {
    await Promise.all([create(), create(), create()])
    const { status, body } = await okta().list('/Users', { startIndex: '1', count: '2' })
    expect(status).toBe(200)
    expect(body).toMatchObject({ startIndex: 1, itemsPerPage: 2, totalResults: expect.any(Number) })
    expect(body.Resources).toHaveLength(2)
    expect(Number.isInteger(body.totalResults)).toBe(true)
  })

  test('a user is searched before it is created', async () => {
    const user = newUser()
    const look = async () => {
      const query = { filter: `userName eq "${user.userName}"`, startIndex: '1', count: '100' }
      return (await okta().list('/Users', query)).body
    }
    expect(await look()).toMatchObject({ totalResults: 0, startIndex: 1 })
    const { body } = await okta().post('/Users', user)
    expect(await look()).toMatchObject({ totalResults: 1, itemsPerPage: 1, Resources: [{ id: body.id }] })
  })

  test('the pages contain every user once, for any page size', async () => {
    await Promise.all(Array.from({ length: 23 }, () => create()))
    const pages = async (count: number): Promise<string[]> => {
      const ids: string[] = []
      for (let startIndex = 1; ; startIndex += count) {
        const { body } = await okta().list('/Users', { startIndex: String(startIndex), count: String(count) })
        ids.push(...(body.Resources ?? []).map(({ id }: { id: string }) => id))
        if (ids.length >= body.totalResults) return ids
      }
    }
    const [byTen, byHundred] = [await pages(10), await pages(100)]
    expect(new Set(byTen).size).toBe(byTen.length)
    expect(byTen).toEqual(byHundred)
  })

  test('a new user has a password and no groups; the answer has the user and not the password', async () => {
    const user = newUser()
    const { status, body, headers } = await okta().post('/Users', user)
    expect(status).toBe(201)
    expect(headers.get('location')).toBe(`${okta().base}/Users/${encodeURIComponent(body.id)}`)
    expect(body).toMatchObject({ userName: user.userName, externalId: user.externalId, active: true })
    expect(JSON.stringify(body)).not.toContain('1mz050nq')
  })

  test('a second user with the same name is a conflict', async () => {
    const user = newUser()
    await okta().post('/Users', user)
    expect(await okta().post('/Users', { ...user, externalId: 'other' })).toMatchObject({
      status: 409,
      body: { scimType: 'uniqueness', status: '409' },
    })
  })

  test('a custom application reads the user and puts all of it', async () => {
    const id = await create({ title: 'Engineer', [enterpriseUser]: { department: 'R&D' } })
    const { body: user } = await okta().get(`/Users/${id}`)
    const changed = await okta().put(`/Users/${id}`, { ...user, name: { ...user.name, givenName: 'Another' } })
    expect(changed).toMatchObject({
      status: 200,
      body: { id, name: { givenName: 'Another', familyName: 'User' }, title: 'Engineer' },
    })
    const { title: _, ...withoutTitle } = changed.body
    const cleared = await okta().put(`/Users/${id}`, withoutTitle)
    expect(cleared.body).not.toHaveProperty('title')
    expect(cleared.body[enterpriseUser]).toEqual({ department: 'R&D' })
    const { body: off } = await okta().put(`/Users/${id}`, { ...withoutTitle, active: false })
    expect(off.active).toBe(false)
    expect((await okta().get(`/Users/${id}`)).body).toMatchObject({ active: false, userName: user.userName })
  })

  test('a network application deactivates and activates a user by PATCH without a path', async () => {
    const id = await create()
    for (const active of [false, true]) {
      expect(await okta().patch(`/Users/${id}`, [{ op: 'replace', value: { active } }])).toMatchObject({
        status: 200,
        body: { id, active },
      })
    }
  })

  test('a re-hire is a POST and reactivates the inactive user, with the same id', async () => {
    const user = newUser()
    const { body: first } = await okta().post('/Users', user)
    await okta().patch(`/Users/${first.id}`, [{ op: 'replace', value: { active: false } }])
    const again = await okta().post('/Users', { ...user, displayName: 'Back Again' })
    expect([200, 201]).toContain(again.status)
    expect(again.body).toMatchObject({ id: first.id, active: true, displayName: 'Back Again' })
    const found = await okta().filter('/Users', `userName eq "${user.userName}"`)
    expect(found.body.totalResults).toBe(1)
  })

  groupTest(
    'a group is pushed with its members, renamed with its id in the value, and answered 204 or 200',
    async () => {
      const [first, second] = [await create(), await create()]
      const group = await createGroup([first])
      expect(await okta().members(group.id)).toEqual([first])
      const displayName = fresh('renamed')
      const rename = { op: 'replace', value: { id: group.id, displayName } }
      const renamed = await okta().patch(`/Groups/${group.id}`, [rename])
      expect([200, 204]).toContain(renamed.status)
      const { body } = await okta().get(`/Groups/${group.id}`)
      expect(body).toMatchObject({ id: group.id, displayName, members: [{ value: first }] })
      const both = await okta().patch(`/Groups/${group.id}`, [
        rename,
        { op: 'remove', path: `members[value eq "${first}"]` },
        { op: 'add', path: 'members', value: [{ value: second, display: 'x' }] },
      ])
      expect([200, 204]).toContain(both.status)
      expect(await okta().members(group.id)).toEqual([second])
    },
  )

  groupTest('the whole membership is pushed, and an empty one', async () => {
    const users = [await create(), await create(), await create()]
    const { id } = await createGroup(users.slice(0, 2))
    const push = (members: readonly string[]) =>
      okta().patch(`/Groups/${id}`, [
        { op: 'replace', path: 'members', value: members.map((value) => ({ value, display: 'x' })) },
      ])
    expect([200, 204]).toContain((await push(users.slice(1))).status)
    expect(await okta().members(id)).toEqual(users.slice(1).sort())
    expect([200, 204]).toContain((await push([])).status)
    expect(await okta().members(id)).toEqual([])
  })

  groupTest('a custom application puts the whole group', async () => {
    const users = [await create(), await create()]
    const { id } = await createGroup(users.slice(0, 1))
    const displayName = fresh('put')
    const body = { schemas: [coreGroup], id, displayName, members: users.slice(1).map((value) => ({ value })) }
    expect(await okta().put(`/Groups/${id}`, body)).toMatchObject({ status: 200, body: { id, displayName } })
    expect(await okta().members(id)).toEqual(users.slice(1))
  })

  groupTest('a group is deleted when it is no longer pushed; its members stay', async () => {
    const user = await create()
    const { id } = await createGroup([user])
    expect((await okta().delete(`/Groups/${id}`)).status).toBe(204)
    expect((await okta().get(`/Groups/${id}`)).status).toBe(404)
    expect((await okta().get(`/Users/${user}`)).body.groups ?? []).toEqual([])
  })

  test('the schema import finds the core schema, and every extension that the resource type names', async () => {
    const { body: type } = await okta().get('/ResourceTypes/User')
    expect(type.schema).toBe(coreUser)
    const extensions = type.schemaExtensions.map(({ schema }: { schema: string }) => schema)
    expect(extensions).toContain(enterpriseUser)
    for (const urn of [coreUser, ...extensions]) {
      expect(await okta().get(`/Schemas/${urn}`)).toMatchObject({ status: 200, body: { id: urn } })
    }
    const { body: all } = await okta().get('/Schemas')
    expect(all.Resources.map(({ id }: { id: string }) => id)).toEqual(expect.arrayContaining([coreUser, ...extensions]))
  })
}
