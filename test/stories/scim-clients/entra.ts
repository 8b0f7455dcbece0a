import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { coreGroup, coreUser, enterpriseUser, patchOp, type ScimClient } from '#testing/scim/scim-client.ts'
import { fresh, type StoryOptions, testIf } from '#testing/scim/scim-story.ts'

const adGroup = 'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group'
/** Makes Entra send the forms of the RFC; the gateway understands both. */
const flag = 'aadOptscim062020'

const newUser = (userName = fresh('user'), more: object = {}) => ({
  schemas: [coreUser, enterpriseUser],
  externalId: randomUUID(),
  userName,
  active: true,
  displayName: 'Lennay',
  emails: [{ primary: true, type: 'work', value: `${userName}@example.com` }],
  meta: { resourceType: 'User' },
  name: { formatted: 'Adrienne Mason', familyName: 'Mason', givenName: 'Adrienne' },
  roles: [],
  ...more,
})

/** Each case is a numbered behavior of Entra ID, with the requests of its provisioning service. */
export function entraStory(entra: () => ScimClient, { groups, renames }: StoryOptions = {}): void {
  const groupTest = testIf(groups)
  const renameTest = testIf(renames)
  const create = async (more: object = {}): Promise<string> => {
    const { status, body } = await entra().post('/Users', newUser(fresh('user'), more))
    expect(status).toBe(201)
    return body.id
  }
  const createGroup = async (displayName = fresh('group')): Promise<string> => {
    const body = {
      schemas: [coreGroup, adGroup],
      externalId: randomUUID(),
      displayName,
      meta: { resourceType: 'Group' },
    }
    const created = await entra().post('/Groups', body)
    expect(created.status).toBe(201)
    return created.body.id
  }
  const read = async (id: string) => (await entra().get(`/Users/${id}`)).body
  const total = async (collection: string, filter: string): Promise<number> => {
    const { status, body } = await entra().filter(collection, filter)
    expect(status).toBe(200)
    return body.totalResults
  }

  test('1: the connection test is answered 200 with an empty list', async () => {
    const answer = await entra().filter('/Users', `userName eq "${randomUUID()}"`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toContain('application/scim+json')
    expect(answer.body).toMatchObject({
      schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
      totalResults: 0,
    })
    expect(answer.body.Resources ?? []).toEqual([])
  })

  test('1: a user is found by userName, externalId, displayName and work address, also joined by and', async () => {
    const user = newUser(fresh('user'), { displayName: fresh('Research and Development') })
    const { body } = await entra().post('/Users', user)
    for (const filter of [
      `userName eq "${user.userName}"`,
      `userName eq "${user.userName.toUpperCase()}"`,
      `externalId eq "${user.externalId}"`,
      `displayName eq "${user.displayName}"`,
      `emails[type eq "work"].value eq "${user.userName}@example.com"`,
      `emails[type eq "work" and value eq "${user.userName}@example.com"]`,
      `externalId eq "${user.externalId}" and userName eq "${user.userName}"`,
    ]) {
      const found = await entra().filter('/Users', filter)
      expect({ filter, ids: found.body.Resources?.map(({ id }: { id: string }) => id) }).toEqual({
        filter,
        ids: [body.id],
      })
    }
    expect(await total('/Users', `emails[type eq "home"].value eq "${user.userName}@example.com"`)).toBe(0)
    expect(await total('/Users', `externalId eq "${user.externalId.toUpperCase()}"`)).toBe(0)
  })

  test('1: a value without quotes, as in an old example, is treated as a text', async () => {
    const id = await create({ externalId: 'jyoung' })
    expect((await entra().filter('/Users', 'externalId eq jyoung')).body).toMatchObject({
      totalResults: 1,
      Resources: [{ id }],
    })
  })

  groupTest('2: groups are looked up and read without their members', async () => {
    const displayName = fresh('Marketing and Sales')
    const [id, member] = [await createGroup(displayName), await create()]
    await entra().patch(`/Groups/${id}`, [{ op: 'Add', path: 'members', value: [{ $ref: null, value: member }] }])
    const found = await entra().list('/Groups', {
      excludedAttributes: 'members',
      filter: `displayName eq "${displayName}"`,
    })
    expect(found.body).toMatchObject({ totalResults: 1, Resources: [{ id, displayName }] })
    expect(found.body.Resources[0]).not.toHaveProperty('members')
    const single = await entra().get(`/Groups/${id}?excludedAttributes=members`)
    expect(single).toMatchObject({ status: 200, body: { id, displayName } })
    expect(single.body).not.toHaveProperty('members')
    expect(await entra().members(id)).toEqual([member])
  })

  groupTest('2: references are probed before an update, of a manager and of a member', async () => {
    const [boss, worker, other] = [await create(), await create(), await create()]
    await entra().patch(`/Users/${worker}`, [{ op: 'Add', path: `${enterpriseUser}:manager`, value: boss }])
    const probe = (manager: string) =>
      entra().list('/Users', { attributes: 'id', filter: `id eq "${worker}" and manager eq "${manager}"` })
    const hit = await probe(boss)
    expect(hit.body).toMatchObject({ totalResults: 1, Resources: [{ id: worker }] })
    expect(hit.body.Resources[0]).not.toHaveProperty('userName')
    expect((await probe(other)).body.totalResults).toBe(0)

    const group = await createGroup()
    await entra().patch(`/Groups/${group}`, [{ op: 'Add', path: 'members', value: [{ value: worker }] }])
    expect(await total('/Groups', `id eq "${group}" and members eq "${worker}"`)).toBe(1)
    expect(await total('/Groups', `id eq "${group}" and members eq "${other}"`)).toBe(0)
  })

  test.each([
    ['in quotes and capitals, as is its default', '', { op: 'Replace', path: 'active', value: 'False' }],
    ['as a boolean, with the flag', `?${flag}`, { op: 'replace', path: 'active', value: false }],
    ['without a path', '', { op: 'Replace', value: { active: 'False' } }],
  ])('3: active is turned off %s', async (_, query, operation) => {
    const id = await create()
    const { status } = await entra().patch(`/Users/${id}${query}`, [operation])
    expect(status).toBe(200)
    expect((await read(id)).active).toBe(false)
    expect(await total('/Users', `id eq "${id}" and active eq false`)).toBe(1)
    await entra().patch(`/Users/${id}`, [{ op: 'Replace', path: 'active', value: 'True' }])
    expect((await read(id)).active).toBe(true)
  })

  test.each(['Add', 'Replace'])('4: %s to a missing element creates it', async (op) => {
    const id = await create({ emails: [] })
    const { status } = await entra().patch(`/Users/${id}`, [
      { op, path: 'emails[type eq "work"].value', value: 'a@example.com' },
      { op, path: 'addresses[type eq "work"].streetAddress', value: '1 Main St' },
      { op, path: 'addresses[type eq "work"].locality', value: 'Oslo' },
      { op, path: 'addresses[type eq "work"].country', value: 'NO' },
      { op, path: 'phoneNumbers[type eq "mobile"].value', value: '+47 1' },
    ])
    expect(status).toBe(200)
    expect(await read(id)).toMatchObject({
      emails: [{ type: 'work', value: 'a@example.com' }],
      addresses: [{ type: 'work', streetAddress: '1 Main St', locality: 'Oslo', country: 'NO' }],
      phoneNumbers: [{ type: 'mobile', value: '+47 1' }],
    })
  })

  groupTest('5: a member is removed in both forms, and no other member', async () => {
    const users = [await create(), await create(), await create()]
    const [first = '', second = '', third = ''] = users
    const group = await createGroup()
    await entra().patch(`/Groups/${group}`, [{ op: 'Add', path: 'members', value: users.map((value) => ({ value })) }])
    const byValue = [{ op: 'Remove', path: 'members', value: [{ $ref: null, value: first }] }]
    expect((await entra().patch(`/Groups/${group}`, byValue)).status).toBe(204)
    expect(await entra().members(group)).toEqual([second, third].sort())
    const byPath = [{ op: 'remove', path: `members[value eq "${second}"]` }]
    expect((await entra().patch(`/Groups/${group}?${flag}`, byPath)).status).toBe(204)
    expect(await entra().members(group)).toEqual([third])
  })

  groupTest('5: a removal without a member is rejected, since it would empty the group', async () => {
    const [user, group] = [await create(), await createGroup()]
    await entra().patch(`/Groups/${group}`, [{ op: 'Add', path: 'members', value: [{ value: user }] }])
    const answer = await entra().patch(`/Groups/${group}`, [{ op: 'Remove', path: 'members' }])
    expect(answer.status).toBe(400)
    expect(await entra().members(group)).toEqual([user])
  })

  groupTest('6: members are added in batches, and by concurrent requests', async () => {
    const users = await Promise.all(Array.from({ length: 12 }, () => create()))
    const group = await createGroup()
    const batches = [users.slice(0, 4), users.slice(4, 8), users.slice(8)]
    const answers = await Promise.all(
      batches.map((batch) =>
        entra().patch(`/Groups/${group}`, [
          { op: 'Add', path: 'members', value: batch.map((value) => ({ $ref: null, value })) },
        ]),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual([204, 204, 204])
    expect(await entra().members(group)).toEqual([...users].sort())
  })

  test('7: one value without a path has dotted and qualified names', async () => {
    const id = await create()
    const { status } = await entra().patch(`/Users/${id}`, [
      {
        op: 'replace',
        value: { displayName: 'Bjfe', 'name.givenName': 'Kim', [`${enterpriseUser}:employeeNumber`]: '7' },
      },
    ])
    expect(status).toBe(200)
    expect(await read(id)).toMatchObject({
      displayName: 'Bjfe',
      name: { givenName: 'Kim', familyName: 'Mason' },
      [enterpriseUser]: { employeeNumber: '7' },
    })
  })

  test('8: a manager is added as a text, replaced, and removed', async () => {
    const [id, first, second] = [await create(), await create(), await create()]
    const path = `${enterpriseUser}:manager`
    const managerAfter = async (operation: { op: string; path: string; value?: unknown }) => {
      expect((await entra().patch(`/Users/${id}`, [operation])).status).toBe(200)
      return (await read(id))[enterpriseUser]?.manager?.value
    }
    expect(await managerAfter({ op: 'Add', path, value: first })).toBe(first)
    expect(await managerAfter({ op: 'Replace', path, value: second })).toBe(second)
    expect(await managerAfter({ op: 'Remove', path })).toBeUndefined()
    const list = [{ $ref: `../Users/${first}`, value: first }]
    expect(await managerAfter({ op: 'Add', path: 'manager', value: list })).toBe(first)
  })

  test('8: a new user comes with explicit nulls and a mistyped schema', async () => {
    const { status, body } = await entra().post('/Users', {
      ...newUser(),
      schemas: [coreUser, 'urn:ietf:params:scim:schemas:extension:enterprise:2.0User'],
      addresses: null,
      phoneNumbers: null,
      title: null,
      manager: null,
      'urn:ietf:params:scim:schemas:extension:enterprise:2.0User': { department: null, manager: null },
    })
    expect(status).toBe(201)
    for (const name of ['addresses', 'phoneNumbers', 'title', enterpriseUser]) expect(body).not.toHaveProperty([name])
  })

  test('9: roles come as JSON in a text, and with primary in quotes', async () => {
    const id = await create()
    const role = JSON.stringify({ id: randomUUID(), value: 'Admin', displayName: 'Administrator' })
    const added = await entra().patch(`/Users/${id}`, [{ op: 'Add', path: 'roles', value: [{ value: role }] }])
    expect(added.status).toBe(200)
    expect((await read(id)).roles).toMatchObject([{ value: 'Admin' }])

    const other = await create({ roles: [{ primary: 'True', type: 'work', value: 'Reader', display: 'Reader' }] })
    expect((await read(other)).roles).toEqual([{ primary: true, type: 'work', value: 'Reader', display: 'Reader' }])
    const path = 'roles[primary eq "True"].value'
    expect((await entra().patch(`/Users/${other}`, [{ op: 'Replace', path, value: 'Writer' }])).status).toBe(200)
    expect((await read(other)).roles).toEqual([{ primary: true, type: 'work', value: 'Writer', display: 'Reader' }])
  })

  groupTest('10: a group has its own schema, an extension lacks its schema', async () => {
    const group = await entra().get(`/Groups/${await createGroup()}`)
    expect(group.body.schemas).toEqual([coreGroup])
    const { status, body } = await entra().post('/Users', {
      ...newUser(),
      schemas: [coreUser],
      [enterpriseUser]: { department: 'Dep' },
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({ schemas: [coreUser, enterpriseUser], [enterpriseUser]: { department: 'Dep' } })
  })

  groupTest('11: a change of a group is answered 204, without a body', async () => {
    const id = await createGroup()
    const renamed = fresh('renamed')
    const answer = await entra().patch(`/Groups/${id}`, [{ op: 'Replace', path: 'displayName', value: renamed }])
    expect([answer.status, answer.body]).toEqual([204, undefined])
    expect((await entra().get(`/Groups/${id}`)).body.displayName).toBe(renamed)
    expect(await total('/Groups', `displayName eq "${renamed}"`)).toBe(1)
  })

  test('11: the stored data equals the sent data', async () => {
    const user = newUser(fresh('user'), {
      emails: [
        { type: 'work', value: 'W@Example.com', primary: true },
        { type: 'home', value: 'h@example.com' },
      ],
      phoneNumbers: [
        { type: 'work', value: '1' },
        { type: 'mobile', value: '2' },
      ],
      preferredLanguage: 'nb-NO',
      title: '  Ærlig "Sjef" \\ 1 ',
    })
    const { body } = await entra().post('/Users', user)
    const { externalId, userName, emails, phoneNumbers, preferredLanguage, title } = user as typeof user &
      Record<string, unknown>
    expect(await read(body.id)).toMatchObject({ externalId, userName, emails, phoneNumbers, preferredLanguage, title })
  })

  groupTest('11: a leaver stays readable, keeps the memberships, and returns with them', async () => {
    const [user, group] = [await create(), await createGroup()]
    await entra().patch(`/Groups/${group}`, [{ op: 'Add', path: 'members', value: [{ value: user }] }])
    await entra().patch(`/Users/${user}`, [{ op: 'Replace', path: 'active', value: 'False' }])
    expect(await read(user)).toMatchObject({ active: false })
    expect(await entra().members(group)).toEqual([user])
    await entra().patch(`/Users/${user}`, [{ op: 'Replace', path: 'active', value: 'True' }])
    expect(await read(user)).toMatchObject({ active: true, groups: [{ value: group }] })
  })

  groupTest('11: thirty days later the user is deleted, only once', async () => {
    const [user, group] = [await create(), await createGroup()]
    await entra().patch(`/Groups/${group}`, [{ op: 'Add', path: 'members', value: [{ value: user }] }])
    expect((await entra().delete(`/Users/${user}`)).status).toBe(204)
    expect((await entra().delete(`/Users/${user}`)).status).toBe(404)
    expect(await entra().members(group)).toEqual([])
  })

  test('11: a request without User-Agent is accepted', async () => {
    expect(await entra().statusWithoutUserAgent('/ServiceProviderConfig')).toBe(200)
  })

  test('12: the older flag, and none, make no difference', async () => {
    const id = await create()
    for (const [query, value] of [
      ['?AzureAdScimPatch2017', 'False'],
      ['', 'True'],
      [`?${flag}`, false],
    ] as const) {
      const { status, body } = await entra().patch(`/Users/${id}${query}`, [{ op: 'Replace', path: 'active', value }])
      expect([status, String(body.active)]).toEqual([200, String(value).toLowerCase()])
    }
  })

  test('a second user with the same name is a conflict, in any letter case and state of the first', async () => {
    const first = newUser()
    const { body } = await entra().post('/Users', first)
    const again = () => entra().post('/Users', newUser(first.userName.toUpperCase()))
    expect(await again()).toMatchObject({ status: 409, body: { scimType: 'uniqueness' } })
    await entra().patch(`/Users/${body.id}`, [{ op: 'Replace', path: 'active', value: 'False' }])
    expect(await again()).toMatchObject({ status: 409, body: { scimType: 'uniqueness' } })
  })

  renameTest('a name changes, and the id and the memberships stay', async () => {
    const [user, group] = [await create(), await createGroup()]
    await entra().patch(`/Groups/${group}`, [{ op: 'Add', path: 'members', value: [{ value: user }] }])
    const userName = fresh('married')
    expect((await entra().patch(`/Users/${user}`, [{ op: 'Replace', path: 'userName', value: userName }])).status).toBe(
      200,
    )
    expect(await read(user)).toMatchObject({ id: user, userName, groups: [{ value: group }] })
    expect(await total('/Users', `userName eq "${userName}"`)).toBe(1)
    expect(await entra().members(group)).toEqual([user])
  })

  test('operations apply all together or not at all', async () => {
    const id = await create()
    const before = await read(id)
    const answer = await entra().call('PATCH', `/Users/${id}`, {
      schemas: [patchOp],
      Operations: [
        { op: 'Replace', path: 'displayName', value: 'Changed' },
        { op: 'Replace', path: 'active', value: 'perhaps' },
      ],
    })
    expect(answer).toMatchObject({ status: 400, body: { scimType: 'invalidValue' } })
    expect(await read(id)).toEqual(before)
  })
}
