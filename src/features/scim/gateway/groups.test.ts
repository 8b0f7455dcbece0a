import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { base, openGateway, People, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

function team(options = { ownIds: false }): People {
  const people = new People(options)
  for (const login of ['ann', 'bob', 'cyd']) people.add(login)
  people.addGroup('red', 'ann', 'bob')
  people.addGroup('blue team')
  return people
}

const okta = { ...tutorialParams, client: 'okta' }
const open = (people = team(), params: ParamValues = okta) => openGateway(scimGateway, { people, params })
const patchOp = (...operations: JsonValue[]): JsonObject => ({ Operations: operations })
/** Without the prefix of groups. */
const ids = (body: JsonObject): unknown[] =>
  (body['Resources'] as JsonObject[]).map(({ id }) => String(id).replace(/^group:/, ''))
const find = (filter: string): string => `/Groups?filter=${encodeURIComponent(filter)}`

describe('reading groups', () => {
  test('returns members with their addresses', async () => {
    const { send } = await open()
    expect((await send('GET', '/Groups/red')).body).toEqual({
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'],
      id: 'group:red',
      displayName: 'red',
      members: [
        { value: 'ann', $ref: `${base}/Users/ann`, type: 'User', display: 'ann' },
        { value: 'bob', $ref: `${base}/Users/bob`, type: 'User', display: 'bob' },
      ],
      meta: { resourceType: 'Group', location: `${base}/Groups/group:red` },
    })
    expect((await send('GET', '/Groups/group:red')).status).toBe(200)
    expect((await send('GET', '/Groups/none')).status).toBe(404)
  })

  test('members have the ids of their users', async () => {
    const { send } = await open(team({ ownIds: true }))
    const { body } = await send('GET', '/Groups/gid-red')
    expect(body).toMatchObject({ id: 'gid-red', displayName: 'red', members: [{ value: 'id-1' }, { value: 'id-2' }] })
  })

  test.each(['/Groups/red?excludedAttributes=members', '/Groups?excludedAttributes=members', '/Groups?attributes=id'])(
    '%s does not read members',
    async (path) => {
      const { send, people } = await open()
      const { status, body } = await send('GET', path)
      expect(status).toBe(200)
      expect(JSON.stringify(body)).not.toContain('ann')
      expect(people.memberReads).toBe(0)
    },
  )

  test.each([
    ['displayName eq "blue team"', ['blue team']],
    ['displayName eq "RED"', ['red']],
    ['id eq "red"', ['red']],
    ['id eq "group:red"', ['red']],
    ['id eq "red" and members eq "ann"', ['red']],
    ['id eq "red" and members eq "cyd"', []],
    ['members.value eq "bob"', ['red']],
    ['members[value eq "bob"]', ['red']],
    ['members eq "nobody"', []],
    ['members eq "ann" and members eq "bob"', ['red']],
    ['members eq "ann" and members eq "cyd"', []],
    ['members eq "ann" or displayName sw "b"', ['red', 'blue team']],
    ['not (members eq "ann")', ['blue team']],
    ['members[value eq "bob" and type eq "User"]', ['red']],
    ['members[value eq "bob" and type eq "Group"]', []],
    ['members[value eq "cyd" or value eq "bob"]', ['red']],
    ['displayName co "e"', ['red', 'blue team']],
    ['not (displayName sw "b")', ['red']],
  ])('%s', async (filter, expected) => {
    const { send, people } = await open()
    const { status, body } = await send('GET', `${find(filter)}&attributes=id`)
    expect([status, ids(body)]).toEqual([200, expected])
    expect(people.memberReads).toBe(0)
    expect(ids((await send('GET', find(filter))).body)).toEqual(expected)
    expect(people.memberReads).toBe(expected.length)
  })

  test.each([
    'members.value sw "a"',
    'members pr',
    'members.display eq "ann"',
    'not (members ne "ann")',
    'members[type eq "User"]',
  ])('a filter that would read all members is refused: %s', async (filter) => {
    const { send, people } = await open()
    expect((await send('GET', find(filter))).body).toMatchObject({ scimType: 'invalidFilter' })
    expect(people.memberReads).toBe(0)
  })

  test('a filter by an attribute that no group can have is refused', async () => {
    const { body } = await (await open()).send('GET', find('externalId eq "x"'))
    expect(body).toMatchObject({ scimType: 'invalidFilter', detail: expect.stringContaining('"externalId"') })
  })
})

describe('ids', () => {
  test('a reference to a group never adds the user with the same id', async () => {
    const people = team()
    people.add('red')
    const { send, workflows } = await open(people)
    for (const member of [
      { value: 'red', $ref: '../Groups/red' },
      { value: 'red', type: 'Group' },
      { value: 'group:red' },
    ]) {
      const { status, body } = await send(
        'PATCH',
        '/Groups/blue%20team',
        patchOp({ op: 'add', path: 'members', value: [member] }),
      )
      expect([status, body['scimType']]).toEqual([400, 'invalidValue'])
      expect(body['detail']).toMatch(/group, and only users can be members, since the target/)
    }
    expect(workflows.calls).toEqual([])
    const asUser = patchOp({ op: 'add', path: 'members', value: [{ value: 'red' }] })
    expect((await send('PATCH', '/Groups/blue%20team', asUser)).status).toBe(204)
    expect([...(people.memberships.get('blue team') ?? [])]).toEqual(['red'])
  })

  test('users and groups never share an id', async () => {
    const people = team()
    for (const login of ['red', 'group:red', 'user:red']) people.add(login)
    people.addGroup('group:red')
    const { send } = await open(people)
    const shown = (body: JsonObject) => (body['Resources'] as JsonObject[]).map(({ id }) => String(id))
    const users = shown((await send('GET', '/Users')).body)
    const groups = shown((await send('GET', '/Groups')).body)
    expect(new Set([...users, ...groups]).size).toBe(users.length + groups.length)
    for (const id of users) expect((await send('GET', `/Users/${encodeURIComponent(id)}`)).body['id']).toBe(id)
    for (const id of groups) expect((await send('GET', `/Groups/${encodeURIComponent(id)}`)).body['id']).toBe(id)
  })
})

describe('the groups of a user', () => {
  /** Without mapping lines, on a target whose groups have ids of their own. */
  function openWithGroups(count: number) {
    const people = new People({ ownIds: true })
    people.add('ann')
    for (let i = 0; i < count; i++) people.addGroup(`g${i}`, 'ann')
    const params = { mapping: 'scim', lookupTarget: 'people', workflowName: 'sync-user' }
    return open(people, params)
  }
  const shown = (body: JsonObject): unknown[] => (body['groups'] as JsonObject[]).map(({ value }) => value)

  test('are looked up a few at a time, without their members, and those that are gone are not shown', async () => {
    const { send, people } = await openWithGroups(30)
    const lookUp = people.lookupGroupByName.bind(people)
    let running = 0
    let most = 0
    people.lookupGroupByName = async (name, options) => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running--
      return name === 'g7' ? undefined : lookUp(name, options)
    }
    const expected = Array.from({ length: 30 }, (_, i) => `gid-g${i}`).filter((id) => id !== 'gid-g7')
    expect(shown((await send('GET', '/Users/id-1')).body)).toEqual(expected)
    expect([most, people.memberReads]).toEqual([8, 0])
  })

  test('are not looked up if their ids were read along with the user', async () => {
    const { send, people } = await openWithGroups(2)
    const lookUp = people.lookupUserById.bind(people)
    people.lookupUserById = async (id) => {
      const user = await lookUp(id)
      return user && { ...user, groupIds: user.groups.map((name) => `gid-${name}`) }
    }
    people.lookupGroupByName = () => Promise.reject(new Error('must not be called'))
    expect(shown((await send('GET', '/Users/id-1')).body)).toEqual(['gid-g0', 'gid-g1'])
  })

  test('fail the request if the target fails', async () => {
    const { send, people } = await openWithGroups(2)
    people.lookupGroupByName = () => Promise.reject(new GatewayError('TARGET_UNREACHABLE', 'down'))
    expect((await send('GET', '/Users/id-1')).status).toBe(503)
  })
})

describe('changing members', () => {
  test('runs one workflow for each member that changes, and reads no member list', async () => {
    const known = team()
    known.add('bob', { first: ['Bob'], mail: ['bob@example.com'] })
    const { send, workflows, people } = await open(known)
    const { status } = await send(
      'PATCH',
      '/Groups/red',
      patchOp(
        { op: 'add', path: 'members', value: [{ value: 'cyd', type: 'User' }, { value: 'ann' }] },
        { op: 'Remove', path: 'members', value: [{ $ref: null, value: 'bob' }] },
      ),
    )
    expect(status).toBe(204)
    expect([...(people.memberships.get('red') ?? [])]).toEqual(['ann', 'cyd'])
    expect(people.memberReads).toBe(0)
    expect(workflows.calls.map(({ user, params }) => [user.userID, params])).toEqual([
      ['bob', { groupname: 'red', removegroup: 'true' }],
      ['cyd', { groupname: 'red', removegroup: 'false' }],
    ])
    const [call] = workflows.calls
    expect(call).toMatchObject({ head: { workflow: 'change-members', requester: 'idp' }, keepGroups: true })
    expect(call?.user.attributes.toObject()).toEqual({ userName: ['bob'] })
  })

  test('works with separate ids', async () => {
    const { send, people } = await open(team({ ownIds: true }))
    const swap = patchOp({ op: 'replace', path: 'members', value: [{ value: 'id-2' }, { value: 'id-3' }] })
    expect((await send('PATCH', '/Groups/gid-red', swap)).status).toBe(204)
    expect([...(people.memberships.get('red') ?? [])].sort()).toEqual(['bob', 'cyd'])
  })

  test('returns a body if attributes were requested', async () => {
    const { send } = await open()
    const add = patchOp({ op: 'add', path: 'members', value: [{ value: 'cyd' }] })
    const { status, body } = await send('PATCH', '/Groups/red?attributes=members.value', add)
    expect(status).toBe(200)
    expect(body['members']).toEqual([{ value: 'ann' }, { value: 'bob' }, { value: 'cyd' }])
  })

  test('a member that does not exist stops the request before any run', async () => {
    const { send, workflows } = await open()
    const add = patchOp({ op: 'add', path: 'members', value: [{ value: 'cyd' }, { value: 'nobody' }] })
    const { status, body } = await send('PATCH', '/Groups/red', add)
    expect([status, body['scimType']]).toEqual([400, 'invalidValue'])
    expect(workflows.calls).toEqual([])
  })

  test('removing a member that does not exist succeeds', async () => {
    const { send, workflows } = await open()
    const remove = patchOp(
      { op: 'remove', path: 'members[value eq "nobody"]' },
      { op: 'remove', path: 'members[value eq "cyd"]' },
    )
    expect((await send('PATCH', '/Groups/red', remove)).status).toBe(204)
    expect(workflows.calls).toEqual([])
  })

  test("Okta's push: own id and name, then members", async () => {
    const { send, people } = await open()
    const push = patchOp(
      { op: 'replace', value: { id: 'red', displayName: 'red' } },
      { op: 'replace', path: 'members', value: [] },
    )
    expect((await send('PATCH', '/Groups/red', push)).status).toBe(204)
    expect(people.memberships.get('red')?.size).toBe(0)
  })

  test('a rename is refused before any member changes', async () => {
    const { send, workflows } = await open()
    const rename = patchOp({ op: 'replace', path: 'displayName', value: 'new' }, { op: 'remove', path: 'members' })
    expect((await send('PATCH', '/Groups/red', rename)).body).toMatchObject({ scimType: 'mutability' })
    expect(workflows.calls).toEqual([])
  })

  test('PUT replaces the members', async () => {
    const { send, people } = await open()
    const { status, body } = await send('PUT', '/Groups/red', { displayName: 'red', members: [{ value: 'cyd' }] })
    expect([status, (body['members'] as JsonObject[]).map(({ value }) => value)]).toEqual([200, ['cyd']])
    expect((await send('PUT', '/Groups/red', { displayName: 'red' })).status).toBe(200)
    expect(people.memberships.get('red')?.size).toBe(0)
  })

  test('PUT without the required name changes nothing', async () => {
    const { send, workflows } = await open()
    expect((await send('PUT', '/Groups/red', {})).body).toMatchObject({ status: '400', scimType: 'invalidValue' })
    expect(workflows.calls).toEqual([])
  })

  test('a user that is being deleted is not re-created by joining or leaving a group', async () => {
    const { send, workflows, people } = await open()
    const join = patchOp({ op: 'add', path: 'members', value: [{ value: 'cyd' }] })
    const leave = patchOp({ op: 'remove', path: 'members[value eq "ann"]' })
    const [deletedCyd, joined] = await Promise.all([send('DELETE', '/Users/cyd'), send('PATCH', '/Groups/red', join)])
    const [deletedAnn, left] = await Promise.all([send('DELETE', '/Users/ann'), send('PATCH', '/Groups/red', leave)])
    expect([deletedCyd.status, deletedAnn.status]).toEqual([204, 204])
    expect([joined.status, left.status]).toEqual([400, 204])
    expect(workflows.calls.map(({ head: { workflow: name } }) => name)).toEqual(['delete-user', 'delete-user'])
    expect([...people.people.keys()]).toEqual(['bob'])
  })
})

describe('from the virtual directory', () => {
  const person = (uid: string, attributes = {}) => ({
    dn: Dn.parse(`uid=${uid},ou=people,o=test`),
    attributes: Attributes.from({ objectClass: ['person'], uid: [uid], ...attributes }),
  })
  const group = {
    dn: Dn.parse('cn=red,ou=groups,o=test'),
    attributes: Attributes.from({
      objectClass: ['groupOfUniqueNames'],
      cn: ['red'],
      uniqueMember: ['uid=ann,ou=people,o=test', 'uid=gone,ou=people,o=test', 'uid=out,o=elsewhere'],
    }),
  }
  const entries = [person('ann', { mail: ['ann@example.com'] }), person('bob'), group]
  const params = {
    ...okta,
    lookupFromLDAP: 'true',
    searchBase: 'o=test',
    uidAttributeName: 'uid',
    lookupAttributeName: 'uid',
    groupLookupAttributeName: 'cn',
    groupIdName: 'cn',
    'scim2tremolo.username.source': 'userName',
    'tremolo2scim.userName.source': 'uid',
  }

  async function openDirectory() {
    const host = fakeModuleHost({ entries })
    const logins = ['ann']
    const directory = {
      ...host.directory,
      isMember: async (of: Dn, member: Dn) =>
        of.equals(group.dn) && logins.some((login) => member.toString().startsWith(`uid=${login}`)),
    }
    return { ...(await openGateway(scimGateway, { params, host: { directory } })), host, logins }
  }

  test('users are read and searched', async () => {
    const { send } = await openDirectory()
    expect((await send('GET', '/Users/ann')).body).toMatchObject({ id: 'ann', emails: [{ value: 'ann@example.com' }] })
    expect((await send('GET', '/Users/red')).status).toBe(404)
    expect(ids((await send('GET', '/Users')).body)).toEqual(['ann', 'bob'])
    expect(ids((await send('GET', `/Users?filter=${encodeURIComponent('userName ew "b"')}`)).body)).toEqual(['bob'])
  })

  test('an id is a value, never a part of a filter', async () => {
    const { send, host } = await openDirectory()
    expect((await send('GET', `/Users/${encodeURIComponent('*)(uid=*')}`)).status).toBe(404)
    expect(JSON.stringify(host.searches[0]?.filter)).toContain('"value":"*)(uid=*"')
  })

  test('groups have only members that are users here', async () => {
    const { send } = await openDirectory()
    expect((await send('GET', '/Groups/red')).body['members']).toEqual([
      { value: 'ann', $ref: `${base}/Users/ann`, type: 'User', display: 'ann' },
    ])
    expect(ids((await send('GET', find('members eq "ann"'))).body)).toEqual(['red'])
  })

  test('members change by workflow', async () => {
    const { send, workflows, logins } = await openDirectory()
    workflows.override = async ({ user }) => void logins.push(user.userID)
    const add = patchOp({ op: 'add', path: 'members', value: [{ value: 'ann' }, { value: 'bob' }] })
    expect((await send('PATCH', '/Groups/red', add)).status).toBe(204)
    expect(workflows.calls.map(({ user }) => user.userID)).toEqual(['bob'])
  })
})
