import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { JsonObject } from '#kernel/json.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { base, openGateway, People, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

/** The parameters of the specification, section 2.5, each by its effect. */

const patchOp = (...Operations: JsonObject[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations,
})
const ids = (body: JsonObject): unknown[] => (body['Resources'] as JsonObject[]).map(({ id }) => id)

const entries = [
  {
    dn: Dn.parse('uid=ann,ou=people,o=test'),
    attributes: Attributes.from({ objectClass: ['person'], uid: ['ann'], badge: ['b-1'], mail: ['ann@example.com'] }),
  },
  {
    dn: Dn.parse('uid=noah,ou=people,o=test'),
    attributes: Attributes.from({ objectClass: ['person'], uid: ['noah'] }),
  },
  {
    dn: Dn.parse('uid=out,ou=people,o=elsewhere'),
    attributes: Attributes.from({ objectClass: ['person'], uid: ['out'], badge: ['b-2'] }),
  },
  {
    dn: Dn.parse('cn=red,ou=groups,o=test'),
    attributes: Attributes.from({
      objectClass: ['groupOfNames'],
      cn: ['red'],
      entryUUID: ['g-1'],
      description: ['The red team'],
      member: ['uid=ann,ou=people,o=test'],
    }),
  },
]

const inDirectory = {
  ...tutorialParams,
  lookupFromLDAP: 'true',
  searchBase: 'o=test',
  uidAttributeName: 'uid',
  lookupAttributeName: 'uid',
  'tremolo2scim.userName.source': 'uid',
}

const openDirectory = (params: object = {}) => {
  const { directory } = fakeModuleHost({ entries })
  return openGateway(scimGateway, { params: { ...inDirectory, ...params }, host: { directory } })
}

test('lookupFromLDAP: users are looked up below searchBase of the directory, by lookupAttributeName', async () => {
  const { send, people } = await openDirectory({ lookupAttributeName: 'badge' })
  expect((await send('GET', '/Users/b-1')).body).toMatchObject({
    id: 'b-1',
    userName: 'ann',
    meta: { location: `${base}/Users/b-1` },
  })
  for (const id of ['ann', 'b-2', 'out', 'uid']) expect((await send('GET', `/Users/${id}`)).status).toBe(404)
  // The id of an entry without the attribute is its login.
  expect((await send('GET', '/Users/noah')).body).toMatchObject({ id: 'noah', userName: 'noah' })
  expect(ids((await send('GET', '/Users')).body)).toEqual(['b-1', 'noah'])
  expect(people.searches).toEqual([])
})

/** Without the lines of attributes that `tremolo2scim` does not list. */
const withoutUnused = (params: ParamValues): ParamValues =>
  Object.fromEntries(
    Object.entries(params).filter(([name]) => !/^tremolo2scim\.(?:emails|name|active|displayName)\./.test(name)),
  )

const find = (path: string, filter: string): string => `${path}?filter=${encodeURIComponent(filter)}`

test('lookupAttributeName may differ from uidAttributeName: created users are found, and ids that are shown are accepted', async () => {
  const params = { ...tutorialParams, lookupAttributeName: 'mail' }
  for (const ownIds of [false, true]) {
    const { send, workflows, people } = await openGateway(scimGateway, { params, people: new People({ ownIds }) })
    const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User']
    const ann = { schemas, userName: 'ann', emails: [{ value: 'a@x.io' }] }
    const made = await send('POST', '/Users', ann)
    expect(made).toMatchObject({ status: 201, body: { id: 'a@x.io', userName: 'ann' } })
    const address = new URL(String((made.body['meta'] as JsonObject)['location'])).pathname.slice('/api/scim'.length)
    expect((await send('GET', address)).body).toEqual(made.body)
    expect((await send('GET', '/Users/ann')).status).toBe(404)
    for (const filter of ['id eq "a@x.io"', 'userName eq "ann"', 'id sw "a@"', 'emails.value eq "a@x.io"']) {
      expect([filter, ids((await send('GET', find('/Users', filter))).body)]).toEqual([filter, ['a@x.io']])
    }
    const patched = await send('PATCH', address, patchOp({ op: 'replace', path: 'name.givenName', value: 'Ann' }))
    expect(patched).toMatchObject({ status: 200, body: { id: 'a@x.io', name: { givenName: 'Ann' } } })
    const moved = await send('PATCH', address, patchOp({ op: 'replace', path: 'emails', value: [{ value: 'b@x.io' }] }))
    expect(moved).toMatchObject({ status: 400, body: { scimType: 'mutability' } })
    // A second user with the same id could not be found, so there is none.
    const twin = await send('POST', '/Users', { ...ann, userName: 'bob' })
    expect(twin).toMatchObject({ status: 409, body: { scimType: 'uniqueness' } })
    expect((await send('POST', '/Users', { schemas, userName: 'a@x.io' })).status).toBe(409)
    // Without the attribute the id is the login.
    expect((await send('POST', '/Users', { schemas, userName: 'carl' })).body).toMatchObject({ id: 'carl' })
    expect((await send('GET', '/Users/carl')).body).toMatchObject({ userName: 'carl' })
    people.addGroup('red')
    const add = patchOp({ op: 'add', path: 'members', value: [{ value: 'a@x.io' }] })
    const red = String(((await send('GET', '/Groups')).body['Resources'] as JsonObject[])[0]?.['id'])
    expect((await send('PATCH', `/Groups/${red}`, add)).status).toBe(204)
    expect(workflows.calls.at(-1)?.user.attributes.toObject()).toEqual({ userName: ['ann'] })
    expect((await send('GET', `/Groups/${red}`)).body['members']).toMatchObject([{ value: 'a@x.io' }])
    expect((await send('DELETE', address)).status).toBe(204)
    expect((await send('GET', address)).status).toBe(404)
  }
})

test('lookupTarget: without lookupFromLDAP users are looked up in the target', async () => {
  const [people, others] = [new People(), new People()]
  people.add('ann')
  others.add('bob')
  const { targets, directory } = fakeModuleHost({ targets: { people, others }, entries })
  const found = async (lookupTarget: string) => {
    const params = { ...tutorialParams, lookupTarget }
    const { send } = await openGateway(scimGateway, { params, host: { targets, directory } })
    const statuses = ['ann', 'bob', 'out'].map(async (login) => (await send('GET', `/Users/${login}`)).status)
    return Promise.all(statuses)
  }
  expect(await found('people')).toEqual([200, 404, 404])
  expect(await found('others')).toEqual([404, 200, 404])
})

test('uidAttributeName: the login is the value of this attribute', async () => {
  const { send, workflows } = await openDirectory({ uidAttributeName: 'badge', lookupAttributeName: 'badge' })
  workflows.override = async () => {}
  expect((await send('GET', '/Users/b-1')).body).toMatchObject({ id: 'b-1', userName: 'ann' })
  await send('DELETE', '/Users/b-1')
  expect(workflows.calls.map(({ user }) => user.userID)).toEqual(['b-1'])
})

test('idAttributeName: the id is another attribute than the login', async () => {
  const { send } = await openDirectory({ idAttributeName: 'badge' })
  expect((await send('GET', '/Users/b-1')).body).toMatchObject({ id: 'b-1', userName: 'ann' })
  expect((await send('GET', '/Users/ann')).status).toBe(404)
})

test('groups are known by groupIdName, shown by groupDisplayName, with the members of groupMemberAttributeName', async () => {
  const { send } = await openDirectory({
    groupLookupAttributeName: 'cn',
    groupIdName: 'entryUUID',
    groupDisplayName: 'description',
    groupMemberAttributeName: 'member',
  })
  expect((await send('GET', '/Groups/g-1')).body).toMatchObject({
    // Users and groups of the directory may have the same id, so groups carry a prefix; both forms are found.
    id: 'group:g-1',
    displayName: 'The red team',
    members: [{ value: 'ann', type: 'User', $ref: `${base}/Users/ann` }],
    meta: { resourceType: 'Group', location: `${base}/Groups/group:g-1` },
  })
})

test('groupIdName: with a target, too, the id of a group is this attribute', async () => {
  for (const ownIds of [false, true]) {
    const people = new People({ ownIds })
    people.add('ann')
    people.addGroup('red', 'ann')
    people.addGroup('blue', 'ann')
    people.groupFacts.get('red')?.attributes.set('guid', ['g-1'])
    const params = {
      ...tutorialParams,
      groupIdName: 'guid',
      tremolo2scim: ['userName', 'groups'],
      'tremolo2scim.groups.source': `groups|false,${base},people`,
      'tremolo2scim.groups.sourceType': 'custom',
    }
    const { send, workflows } = await openGateway(scimGateway, { people, params: withoutUnused(params) })
    // Groups without the attribute have the id of the target.
    const blue = `group:${ownIds ? 'gid-blue' : 'blue'}`
    expect(ids((await send('GET', '/Groups')).body).sort()).toEqual(['group:g-1', blue].sort())
    for (const [id, displayName] of [
      ['group:g-1', 'red'],
      [blue, 'blue'],
    ]) {
      expect((await send('GET', `/Groups/${id}`)).body).toMatchObject({
        id,
        displayName,
        members: [{ value: ownIds ? 'id-1' : 'ann' }],
      })
      expect(ids((await send('GET', find('/Groups', `id eq "${id}"`))).body)).toEqual([id])
    }
    for (const id of ['red', 'group:red', 'gid-red']) expect((await send('GET', `/Groups/${id}`)).status).toBe(404)
    const user = ownIds ? 'id-1' : 'ann'
    const held = (await send('GET', `/Users/${user}`)).body['groups'] as JsonObject[]
    expect(held.map(({ value }) => value).sort()).toEqual(['group:g-1', blue].sort())
    const remove = patchOp({ op: 'remove', path: 'members', value: [{ value: user }] })
    expect((await send('PATCH', '/Groups/group:g-1', remove)).status).toBe(204)
    expect(workflows.calls.at(-1)).toMatchObject({ params: { groupname: 'red', removegroup: 'true' } })
  }
})

test('a groups-generating mapper takes the flag, the URL prefix of the gateway and a target', async () => {
  const held = 'cn=red,ou=groups,o=test'
  const joined = {
    ...entries[0],
    attributes: Attributes.from({ objectClass: ['person'], uid: ['ann'], memberOf: [held] }),
  }
  const mapped = (flag: string, more: object = {}) => ({
    ...inDirectory,
    tremolo2scim: ['userName', 'groups'],
    'tremolo2scim.groups.source': `groups|${flag},https://portal.example.com/scim,people`,
    'tremolo2scim.groups.sourceType': 'custom',
    groupLookupAttributeName: 'cn',
    groupIdName: 'entryUUID',
    groupMemberAttributeName: 'member',
    ...more,
  })
  const red = { value: 'group:g-1', $ref: 'https://portal.example.com/scim/Groups/group:g-1', display: 'red' }
  // With memberOf, and in a directory without it.
  for (const known of [entries, [joined as (typeof entries)[number], ...entries.slice(1)]]) {
    const { directory } = fakeModuleHost({ entries: known })
    const { send } = await openGateway(scimGateway, { params: withoutUnused(mapped('true')), host: { directory } })
    expect((await send('GET', '/Users/ann')).body['groups']).toEqual([red])
    expect((await send('GET', '/Groups/group:g-1')).body).toMatchObject({ id: 'group:g-1' })
    expect(ids((await send('GET', find('/Users', 'groups.value eq "group:g-1"'))).body)).toEqual(['ann'])
    expect((await send('GET', '/Users/noah')).body).not.toHaveProperty('groups')
  }
  const people = new People()
  people.add('ann')
  people.addGroup('red', 'ann')
  const params = withoutUnused(mapped('false', { ...tutorialParams, tremolo2scim: ['userName', 'groups'] }))
  const { send } = await openGateway(scimGateway, { people, params })
  expect((await send('GET', '/Users/ann')).body['groups']).toEqual([
    { value: 'group:red', $ref: 'https://portal.example.com/scim/Groups/group:red', display: 'red' },
  ])
})

test('groupLookupAttributeName: workflows get the group by this attribute', async () => {
  const { send, workflows } = await openDirectory({
    groupLookupAttributeName: 'cn',
    groupIdName: 'entryUUID',
    groupMemberAttributeName: 'member',
  })
  workflows.override = async () => {}
  await send('PATCH', '/Groups/group:g-1', patchOp({ op: 'add', path: 'members', value: [{ value: 'ann' }] }))
  expect(workflows.calls).toMatchObject([{ params: { groupname: 'red', removegroup: 'false' } }])
})

test('userFilterScim2Ldap and groupFilterScim2Ldap name the attributes that filters are about', async () => {
  const people = new People()
  people.add('ann', { username: ['ann'], mail: ['ann@example.com'], badge: ['b-1'] })
  people.add('bob', { username: ['bob'], mail: ['bob@example.com'], badge: ['b-2'] })
  for (const [group, badge] of [
    ['red', 'g-1'],
    ['blue', 'g-2'],
  ] as const) {
    people.addGroup(group)
    people.groupFacts.get(group)?.attributes.set('badge', [badge])
  }
  const params = {
    ...tutorialParams,
    userFilterScim2Ldap: 'emails.value=mail,title=badge',
    groupFilterScim2Ldap: 'id=cn,externalId=badge',
  }
  const { send } = await openGateway(scimGateway, { people, params })
  const find = async (path: string, filter: string) =>
    (await send('GET', `${path}?filter=${encodeURIComponent(filter)}`)).body
  expect(ids(await find('/Users', 'emails.value eq "ann@example.com"'))).toEqual(['ann'])
  expect(ids(await find('/Users', 'title eq "b-2"'))).toEqual(['bob'])
  expect(await find('/Groups', 'externalId eq "g-1"')).toMatchObject({ Resources: [{ displayName: 'red' }] })
})

test('workflowName, deleteUserWorkflowName, groupWorkflow and groupDeleteWorkflow name the workflows', async () => {
  const people = new People()
  people.add('bob')
  people.addGroup('red', 'bob')
  const { send, workflows } = await openGateway(scimGateway, { people })
  const name = { givenName: 'Ann', familyName: 'Ames' }
  const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User']
  expect((await send('POST', '/Users', { schemas, userName: 'ann', name })).status).toBe(201)
  expect(
    (await send('PATCH', '/Users/ann', patchOp({ op: 'replace', path: 'name.givenName', value: 'Anna' }))).status,
  ).toBe(200)
  const add = patchOp({ op: 'add', path: 'members', value: [{ value: 'ann', type: 'User' }] })
  expect((await send('PATCH', '/Groups/red', add)).status).toBe(204)
  expect((await send('DELETE', '/Users/ann')).status).toBe(204)
  expect((await send('DELETE', '/Groups/red')).status).toBe(204)
  expect(workflows.calls.map((call) => call.head.workflow)).toEqual([
    'sync-user',
    'sync-user',
    'change-members',
    'delete-user',
    'delete-group',
  ])
  // A change of the user keeps its memberships, and a change of a group has only the key attribute.
  expect(workflows.calls[1]).toMatchObject({ keepGroups: true })
  expect(workflows.calls[2]).toMatchObject({ params: { groupname: 'red', removegroup: 'false' } })
  expect(workflows.calls[2]?.user.attributes.toObject()).toEqual({ userName: ['ann'] })
})

test('groupDeleteWorkflow: without it, DELETE of a group is 501, and the group stays', async () => {
  const { groupDeleteWorkflow: _, ...without } = tutorialParams
  const people = new People()
  people.addGroup('red')
  const { send, workflows } = await openGateway(scimGateway, { people, params: without })
  expect((await send('DELETE', '/Groups/red')).status).toBe(501)
  expect((await send('GET', '/Groups/red')).status).toBe(200)
  expect(workflows.calls).toEqual([])
  const withIt = await openGateway(scimGateway, { people })
  expect((await withIt.send('DELETE', '/Groups/red')).status).toBe(204)
})

test('scim2tremolo and tremolo2scim map by attribute, by mapper and by template', async () => {
  const params = {
    ...tutorialParams,
    scim2tremolo: ['username', 'first', 'label'],
    'scim2tremolo.username.source': 'userName',
    'scim2tremolo.username.sourceType': 'user',
    'scim2tremolo.first.source': 'part|name,givenName',
    'scim2tremolo.first.sourceType': 'custom',
    'scim2tremolo.label.source': '${userName}!',
    'scim2tremolo.label.sourceType': 'composite',
    tremolo2scim: ['userName', 'name'],
    'tremolo2scim.userName.source': 'username',
    'tremolo2scim.userName.sourceType': 'user',
    'tremolo2scim.name.source': '{"givenName":"${first}"}',
    'tremolo2scim.name.sourceType': 'composite',
  }
  const unused = ['mail', 'last', 'enabled', 'secretNote'].map((one) => `scim2tremolo.${one}.`)
  const kept = Object.entries(params).filter(
    ([name]) =>
      ![...unused, 'tremolo2scim.emails', 'tremolo2scim.active', 'tremolo2scim.displayName'].some((start) =>
        name.startsWith(start),
      ),
  )
  const { send, workflows } = await openGateway(scimGateway, { params: Object.fromEntries(kept) })
  const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User']
  const emails = [{ value: 'ann@example.com' }]
  const made = await send('POST', '/Users', { schemas, userName: 'ann', name: { givenName: 'Ann' }, emails })
  // What no list names is neither stored nor shown.
  expect(workflows.calls[0]?.user.attributes.toObject()).toEqual({
    username: ['ann'],
    first: ['Ann'],
    label: ['ann!'],
  })
  const { id, meta, schemas: _, ...shown } = made.body
  expect([id, meta]).toEqual(['ann', expect.objectContaining({ resourceType: 'User' })])
  expect(shown).toEqual({ userName: 'ann', name: { givenName: 'Ann' } })
})

test.each(['scim2tremolo.username', 'tremolo2scim.userName'])(
  '%s.sourceType is user, custom or composite',
  async (line) => {
    const params = { ...tutorialParams, [`${line}.sourceType`]: 'constant' }
    const wrong = /sourceType.*: must be one of user, static, composite, custom,/
    await expect(openGateway(scimGateway, { params })).rejects.toThrow(wrong)
  },
)

test('a strict client sends the URN of PatchOp; others may leave it out', async () => {
  const { schemas: _, ...without } = patchOp({ op: 'replace', path: 'active', value: false })
  const statusOf = async (client: string, body: JsonObject) => {
    const people = new People()
    people.add('ann')
    const { send } = await openGateway(scimGateway, { people, params: { ...tutorialParams, client } })
    return (await send('PATCH', '/Users/ann', body)).status
  }
  expect(await statusOf('strict', { ...without, schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'] })).toBe(400)
  expect(await statusOf('strict', without)).toBe(400)
  expect(await statusOf('strict', patchOp({ op: 'replace', path: 'active', value: false }))).toBe(200)
  expect(await statusOf('tolerant', without)).toBe(200)
})
