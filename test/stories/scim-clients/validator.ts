import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { coreGroup, coreUser, enterpriseUser, type ScimClient } from '#testing/scim/scim-client.ts'
import { fresh } from '#testing/scim/scim-story.ts'

const newUser = (userName = `${fresh('user')}@example.com`) => ({
  schemas: [coreUser, enterpriseUser],
  externalId: randomUUID(),
  userName,
  active: true,
  displayName: 'XKWLCONOGMVT',
  title: 'DLKQGXOJLMYV',
  emails: [{ type: 'work', value: userName, primary: true }],
  preferredLanguage: 'ks-IN',
  name: { givenName: 'Aric', familyName: 'Nia', formatted: 'Sandy', honorificPrefix: 'Dr', honorificSuffix: 'II' },
  addresses: [
    {
      type: 'work',
      formatted: 'F',
      streetAddress: 'S',
      locality: 'L',
      region: 'R',
      postalCode: 'P',
      primary: true,
      country: 'C',
    },
  ],
  phoneNumbers: [
    { type: 'work', value: '1-1', primary: true },
    { type: 'mobile', value: '1-2' },
    { type: 'fax', value: '1-3' },
  ],
  roles: [{ primary: 'True', display: 'D', value: 'V', type: 'T' }],
  [enterpriseUser]: { employeeNumber: 'E', department: 'D', costCenter: 'C', organization: 'O', division: 'V' },
})

/** The stored user of the validator: booleans that it sends in quotes are booleans. */
const stored = (user: ReturnType<typeof newUser>) => {
  const { schemas: _, roles, ...rest } = user
  return { ...rest, roles: roles.map((role) => ({ ...role, primary: true })) }
}

const helpers = (validator: () => ScimClient) => {
  const create = async (user = newUser()) => {
    const { status, body } = await validator().post('/Users', user)
    expect(status).toBe(201)
    return body
  }
  const newGroup = () => ({ schemas: [coreGroup], externalId: randomUUID(), displayName: fresh('Group') })
  const createGroup = async (group = newGroup()) => {
    const { status, body } = await validator().post('/Groups', group)
    expect(status).toBe(201)
    return body
  }
  const patched = async (path: string, operations: { op: string; path?: string; value?: unknown }[]) => {
    const { status } = await validator().patch(path, operations)
    expect([200, 204]).toContain(status)
    return (await validator().get(path)).body
  }
  return { create, newGroup, createGroup, patched }
}

/** The mandatory tests of Microsoft's SCIM Validator by their names, and its preview tests. */
export function validatorStory(validator: () => ScimClient): void {
  validatorUsersStory(validator)
  validatorGroupsStory(validator)
}

function validatorUsersStory(validator: () => ScimClient): void {
  const { create, patched } = helpers(validator)

  test('01: create a new user', async () => {
    const user = newUser()
    const { status, headers, body } = await validator().post('/Users', user)
    expect(status).toBe(201)
    expect(headers.get('location')).toBe(body.meta.location)
    expect(body).toMatchObject(stored(user))
    expect((await validator().get(`/Users/${body.id}`)).body).toEqual(body)
  })

  test('02: create a duplicate user', async () => {
    const user = newUser()
    await create(user)
    expect(await validator().post('/Users', user)).toMatchObject({ status: 409, body: { scimType: 'uniqueness' } })
  })

  test('03: filter for an existing user', async () => {
    const user = newUser()
    const { id } = await create(user)
    const found = await validator().filter('/Users', `userName eq "${user.userName}"`)
    expect(found).toMatchObject({ status: 200, body: { totalResults: 1, Resources: [{ id, ...stored(user) }] } })
  })

  test('04: filter for a non-existing user', async () => {
    const { status, body } = await validator().filter('/Users', `userName eq "${randomUUID()}"`)
    expect([status, body.totalResults]).toEqual([200, 0])
  })

  test('05: filter for an existing user with different case', async () => {
    const user = newUser()
    const { id } = await create(user)
    const found = await validator().filter('/Users', `userName eq "${user.userName.toUpperCase()}"`)
    expect(found.body).toMatchObject({ totalResults: 1, Resources: [{ id }] })
  })

  test('06: patch user, replace attributes, verbose request', async () => {
    const { id } = await create()
    const user = await patched(`/Users/${id}`, [
      { op: 'replace', path: 'emails[type eq "work"].value', value: 'new@example.com' },
      { op: 'replace', path: 'emails[type eq "work"].primary', value: true },
      { op: 'replace', path: 'addresses[type eq "work"].locality', value: 'New' },
      { op: 'replace', path: 'phoneNumbers[type eq "fax"].value', value: '9-9' },
      { op: 'replace', path: 'roles[primary eq "True"].display', value: 'New' },
      {
        op: 'replace',
        value: {
          displayName: 'New',
          active: true,
          'name.familyName': 'New',
          [`${enterpriseUser}:department`]: 'New',
          'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:costCenter': 'New',
        },
      },
    ])
    expect(user).toMatchObject({
      displayName: 'New',
      name: { familyName: 'New', givenName: 'Aric' },
      emails: [{ type: 'work', value: 'new@example.com', primary: true }],
      addresses: [{ type: 'work', locality: 'New', region: 'R' }],
      phoneNumbers: [{ value: '1-1' }, { value: '1-2' }, { type: 'fax', value: '9-9' }],
      roles: [{ display: 'New', value: 'V', primary: true }],
      [enterpriseUser]: { department: 'New', costCenter: 'New', division: 'V' },
    })
  })

  test('07: patch user, update userName', async () => {
    const { id } = await create()
    const userName = `${fresh('new')}@example.com`
    expect(await patched(`/Users/${id}`, [{ op: 'replace', path: 'userName', value: userName }])).toMatchObject({
      id,
      userName,
    })
    expect((await validator().filter('/Users', `userName eq "${userName}"`)).body.totalResults).toBe(1)
  })

  test('08: patch user, disable user', async () => {
    const { id, userName } = await create()
    expect(await patched(`/Users/${id}`, [{ op: 'replace', path: 'active', value: false }])).toMatchObject({
      active: false,
    })
    const found = await validator().filter('/Users', `userName eq "${userName}"`)
    expect(found.body.Resources).toMatchObject([{ id, active: false }])
  })

  test('09: patch user, add manager', async () => {
    const [{ id }, manager] = [await create(), await create()]
    const path = `${enterpriseUser}:manager`
    const user = await patched(`/Users/${id}`, [{ op: 'add', path, value: manager.id }])
    expect(user[enterpriseUser].manager.value).toBe(manager.id)
  })

  test('10: patch user, replace manager', async () => {
    const [{ id }, first, second] = [await create(), await create(), await create()]
    const path = `${enterpriseUser}:manager`
    await patched(`/Users/${id}`, [{ op: 'add', path, value: { value: first.id } }])
    const user = await patched(`/Users/${id}`, [{ op: 'replace', path, value: { value: second.id } }])
    expect(user[enterpriseUser].manager.value).toBe(second.id)
  })

  test('11: patch user, remove manager', async () => {
    const [{ id }, manager] = [await create(), await create()]
    const path = `${enterpriseUser}:manager`
    await patched(`/Users/${id}`, [{ op: 'add', path, value: manager.id }])
    const user = await patched(`/Users/${id}`, [{ op: 'remove', path }])
    expect(user[enterpriseUser]).not.toHaveProperty('manager')
  })

  test('12: patch user, add attributes, verbose request', async () => {
    const { id } = await create({ ...newUser(), emails: [], phoneNumbers: [], addresses: [], title: '' })
    const user = await patched(`/Users/${id}`, [
      { op: 'add', path: 'emails[type eq "work"].value', value: 'added@example.com' },
      { op: 'add', path: 'phoneNumbers[type eq "mobile"].value', value: '2-2' },
      { op: 'add', path: 'addresses[type eq "work"].postalCode', value: '0123' },
      { op: 'add', path: 'title', value: 'Added' },
      { op: 'add', value: { 'name.middleName': 'Added', [`${enterpriseUser}:division`]: 'Added' } },
    ])
    expect(user).toMatchObject({
      title: 'Added',
      name: { middleName: 'Added', familyName: 'Nia' },
      emails: [{ type: 'work', value: 'added@example.com' }],
      phoneNumbers: [{ type: 'mobile', value: '2-2' }],
      addresses: [{ type: 'work', postalCode: '0123' }],
      [enterpriseUser]: { division: 'Added' },
    })
  })

  test('13: delete a user', async () => {
    const { id, userName } = await create()
    expect((await validator().delete(`/Users/${id}`)).status).toBe(204)
    expect((await validator().get(`/Users/${id}`)).status).toBe(404)
    expect((await validator().filter('/Users', `userName eq "${userName}"`)).body.totalResults).toBe(0)
  })

  test('preview 1: patch user, several operations on different attributes', async () => {
    const { id } = await create()
    const user = await patched(`/Users/${id}`, [
      { op: 'remove', path: 'title' },
      { op: 'replace', path: 'displayName', value: 'Two' },
      { op: 'add', path: 'nickName', value: 'Three' },
    ])
    expect(user).toMatchObject({ displayName: 'Two', nickName: 'Three' })
    expect(user).not.toHaveProperty('title')
  })

  test('preview 2: patch user, several operations on the same attribute: the last one counts', async () => {
    const { id } = await create()
    const user = await patched(`/Users/${id}`, [
      { op: 'remove', path: 'displayName' },
      { op: 'add', path: 'displayName', value: 'First' },
      { op: 'replace', path: 'displayName', value: 'Last' },
    ])
    expect(user.displayName).toBe('Last')
  })

  test('preview 3: delete the same user twice', async () => {
    const { id } = await create()
    expect((await validator().delete(`/Users/${id}`)).status).toBe(204)
    expect(await validator().delete(`/Users/${id}`)).toMatchObject({ status: 404, body: { status: '404' } })
  })
}

/** Those of groups. */
export function validatorGroupsStory(validator: () => ScimClient): void {
  const { create, newGroup, createGroup, patched } = helpers(validator)

  test('14: create a new group', async () => {
    const group = newGroup()
    const { externalId, displayName } = group
    const { id } = await createGroup(group)
    expect((await validator().get(`/Groups/${id}`)).body).toMatchObject({ id, externalId, displayName })
  })

  test('15: create a duplicate group', async () => {
    const group = newGroup()
    await createGroup(group)
    expect(await validator().post('/Groups', group)).toMatchObject({ status: 409, body: { scimType: 'uniqueness' } })
  })

  test('16: get group by id excluding members', async () => {
    const { id, displayName } = await createGroup()
    const { status, body } = await validator().get(`/Groups/${id}?excludedAttributes=members`)
    expect([status, body.displayName, 'members' in body]).toEqual([200, displayName, false])
  })

  test('17: filter for an existing group', async () => {
    const { id, displayName } = await createGroup()
    const { body } = await validator().filter('/Groups', `displayName eq "${displayName}"`)
    expect(body).toMatchObject({ totalResults: 1, Resources: [{ id, displayName }] })
  })

  test('18: filter for an existing group with different case, without its members', async () => {
    const { id, displayName } = await createGroup()
    const filter = `displayName eq "${displayName.toUpperCase()}"`
    const { body } = await validator().list('/Groups', { excludedAttributes: 'members', filter })
    expect(body).toMatchObject({ totalResults: 1, Resources: [{ id }] })
  })

  test('19: filter for a non-existing group', async () => {
    const { status, body } = await validator().filter('/Groups', `displayName eq "${randomUUID()}"`)
    expect([status, body.totalResults]).toEqual([200, 0])
  })

  test('20: patch group, replace displayName', async () => {
    const { id } = await createGroup()
    const displayName = fresh('Renamed')
    const group = await patched(`/Groups/${id}`, [{ op: 'replace', path: 'displayName', value: displayName }])
    expect(group).toMatchObject({ id, displayName })
  })

  test('21: patch group, add member', async () => {
    const [{ id }, member] = [await createGroup(), await create()]
    const group = await patched(`/Groups/${id}`, [{ op: 'add', path: 'members', value: [{ value: member.id }] }])
    expect(group.members).toMatchObject([{ value: member.id }])
  })

  test('22: patch group, remove member', async () => {
    const [{ id }, first, second] = [await createGroup(), await create(), await create()]
    const members = [{ value: first.id }, { value: second.id }]
    await patched(`/Groups/${id}`, [{ op: 'add', path: 'members', value: members }])
    const group = await patched(`/Groups/${id}`, [{ op: 'remove', path: 'members', value: [{ value: first.id }] }])
    expect(group.members).toMatchObject([{ value: second.id }])
    expect(group.members).toHaveLength(1)
  })

  test('23: delete a group', async () => {
    const { id, displayName } = await createGroup()
    expect((await validator().delete(`/Groups/${id}`)).status).toBe(204)
    expect((await validator().get(`/Groups/${id}`)).status).toBe(404)
    expect((await validator().filter('/Groups', `displayName eq "${displayName}"`)).body.totalResults).toBe(0)
  })

  test('preview 4: delete the same group twice', async () => {
    const { id } = await createGroup()
    expect((await validator().delete(`/Groups/${id}`)).status).toBe(204)
    expect(await validator().delete(`/Groups/${id}`)).toMatchObject({ status: 404, body: { status: '404' } })
  })

  test('preview 5: patch group, replace externalId', async () => {
    const { id } = await createGroup()
    const externalId = randomUUID()
    const group = await patched(`/Groups/${id}`, [{ op: 'replace', path: 'externalId', value: externalId }])
    expect(group.externalId).toBe(externalId)
    expect((await validator().filter('/Groups', `externalId eq "${externalId}"`)).body.totalResults).toBe(1)
  })

  test('preview 6: patch group, several operations on different attributes', async () => {
    const [{ id }, member] = [await createGroup(), await create()]
    const [displayName, externalId] = [fresh('Renamed'), randomUUID()]
    const group = await patched(`/Groups/${id}`, [
      { op: 'replace', path: 'displayName', value: displayName },
      { op: 'replace', path: 'externalId', value: externalId },
      { op: 'add', path: 'members', value: [{ value: member.id }] },
    ])
    expect(group).toMatchObject({ displayName, externalId, members: [{ value: member.id }] })
  })

  test('preview 7: patch group, several operations on members', async () => {
    const [{ id }, first, second, third] = [await createGroup(), await create(), await create(), await create()]
    const group = await patched(`/Groups/${id}`, [
      { op: 'add', path: 'members', value: [{ value: first.id }, { value: second.id }] },
      { op: 'remove', path: `members[value eq "${first.id}"]` },
      { op: 'add', path: 'members', value: [{ value: third.id }] },
    ])
    expect(group.members.map(({ value }: { value: string }) => value).sort()).toEqual([second.id, third.id].sort())
  })
}
