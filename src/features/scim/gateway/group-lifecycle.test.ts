import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { base, openGateway, People, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

const full: ParamValues = {
  ...tutorialParams,
  groupCreateWorkflow: 'create-group',
  groupUpdateWorkflow: 'update-group',
  groupFilterScim2Ldap: 'externalId=externalId',
}

function team(options = { ownIds: true, versions: true }): People {
  const people = new People(options)
  for (const login of ['ann', 'bob', 'cyd']) people.add(login)
  people.addGroup('red', 'ann', 'bob')
  people.addGroup('blue')
  return people
}

/** Most tests check the answer to a PATCH. */
const withBody: ParamValues = { ...full, groupPatchAnswer: 'resource' }

const open = (params: ParamValues = withBody, people = team()) => openGateway(scimGateway, { people, params })
const patchOp = (...operations: JsonValue[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})
const membersIn = (body: JsonObject) => ((body['members'] ?? []) as JsonObject[]).map(({ value }) => value)
const rename = (value: string) => patchOp({ op: 'replace', path: 'displayName', value })
const core = 'urn:ietf:params:scim:schemas:core:2.0:Group'

describe('POST', () => {
  test('creates the group, then adds its members, and answers what the target stores', async () => {
    const { send, workflows } = await open()
    const { status, headers, body } = await send('POST', '/Groups', {
      schemas: [core, 'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group'],
      displayName: 'green',
      externalId: 'e-1',
      id: 'chosen by the client',
      members: [{ value: 'id-1', type: 'User' }, { value: 'id-3' }],
    })
    expect(status).toBe(201)
    expect(body).toEqual({
      schemas: [core],
      id: 'gid-green',
      displayName: 'green',
      externalId: 'e-1',
      members: [
        { value: 'id-1', $ref: `${base}/Users/id-1`, type: 'User', display: 'ann' },
        { value: 'id-3', $ref: `${base}/Users/id-3`, type: 'User', display: 'cyd' },
      ],
      meta: {
        resourceType: 'Group',
        created: '2026-01-02T03:04:05.000Z',
        location: `${base}/Groups/gid-green`,
        version: 'W/"3"',
      },
    })
    expect(headers).toMatchObject({ location: `${base}/Groups/gid-green`, etag: 'W/"3"' })
    expect(workflows.calls.map(({ head: { workflow: name }, params }) => [name, params])).toEqual([
      ['create-group', { groupname: 'green', groupversion: '' }],
      ['change-members', { groupname: 'green', removegroup: 'false' }],
      ['change-members', { groupname: 'green', removegroup: 'false' }],
    ])
    expect(workflows.calls[0]).toMatchObject({ user: { userID: 'idp' }, head: { subject: 'group green' } })
    expect(workflows.calls[0]?.user.attributes.toObject()).toEqual({ externalId: ['e-1'] })
    expect((await send('GET', `/Groups?filter=${encodeURIComponent('externalId eq "e-1"')}`)).body).toMatchObject({
      totalResults: 1,
    })
  })

  test('creates an empty group, and does not read members that are not wanted', async () => {
    const { send, people } = await open()
    expect((await send('POST', '/Groups', { displayName: 'empty', members: [] })).body['members']).toBeUndefined()
    people.memberReads = 0
    const path = '/Groups?excludedAttributes=members'
    expect((await send('POST', path, { displayName: 'x', members: [{ value: 'id-1' }] })).status).toBe(201)
    expect(people.memberReads).toBe(0)
  })

  test.each<[string, JsonValue, number, string | undefined]>([
    ['no name', { members: [] }, 400, 'invalidValue'],
    ['an empty name', { displayName: '' }, 400, 'invalidValue'],
    ['a blank name', { displayName: ' \t' }, 400, 'invalidValue'],
    ['a name that is not a text', { displayName: 5 }, 400, 'invalidValue'],
    ['a name that is taken, in another letter case', { displayName: 'RED' }, 409, 'uniqueness'],
    ['a group as a member', { displayName: 'n', members: [{ value: 'gid-red', type: 'Group' }] }, 400, 'invalidValue'],
    ['a member without a value', { displayName: 'n', members: [{ display: 'x' }] }, 400, 'invalidValue'],
    ['no object', [], 400, 'invalidSyntax'],
  ])('%s is refused before anything runs', async (_name, body, status, scimType) => {
    const { send, workflows } = await open()
    const answer = await send('POST', '/Groups', body)
    expect([answer.status, answer.body['scimType']]).toEqual([status, scimType])
    expect(workflows.calls).toEqual([])
  })

  test('names the first member that does not exist, and runs nothing', async () => {
    const { send, workflows } = await open()
    const members = ['id-1', 'ghost-a', 'ghost-b'].map((value) => ({ value }))
    const { status, body } = await send('POST', '/Groups', { displayName: 'n', members })
    expect([status, body['scimType']]).toEqual([400, 'invalidValue'])
    expect(body['detail']).toContain('"ghost-a"')
    expect(workflows.calls).toEqual([])
  })

  test('of two at once, one creates', async () => {
    const { send, people } = await open()
    const answers = await Promise.all(['New', 'new'].map((displayName) => send('POST', '/Groups', { displayName })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
    expect(people.memberships.size).toBe(3)
  })

  test('the same request continues a create that failed part way, another group does not', async () => {
    const { send, workflows, people } = await open()
    const body = { displayName: 'green', members: ['id-1', 'id-2', 'id-3'].map((value) => ({ value })) }
    workflows.failing = ({ head: { workflow: name }, user }) => name === 'change-members' && user.userID === 'bob'
    const failed = await send('POST', '/Groups', body)
    expect(failed.status).toBe(503)
    expect(failed.body['detail']).toContain('of 4 changes were made')
    workflows.failing = undefined
    const again = await send('POST', '/Groups', body)
    expect([again.status, membersIn(again.body)]).toEqual([201, ['id-1', 'id-3', 'id-2']])
    expect(workflows.calls.filter(({ head: { workflow: name } }) => name === 'create-group')).toHaveLength(1)
    expect((await send('POST', '/Groups', body)).status).toBe(409)
    expect(people.memberships.get('green')?.size).toBe(3)
  })

  test('a group that another client created meanwhile is not taken for the unfinished one', async () => {
    const { send, workflows, people } = await open()
    const body = { displayName: 'green', members: [{ value: 'id-1' }] }
    workflows.failing = ({ head: { workflow: name } }) => name === 'change-members'
    expect((await send('POST', '/Groups', body)).status).toBe(503)
    workflows.failing = undefined
    people.groupFacts.set('green', { id: 'gid-other', attributes: new Attributes(), version: 1 })
    expect((await send('POST', '/Groups', body)).status).toBe(409)
  })

  test("a create workflow that failed after the target's change runs again", async () => {
    const { send, workflows, people } = await open()
    workflows.override = async () => {
      people.addGroup('green')
      throw new GatewayError('TARGET_FAILED', 'a second target refused')
    }
    expect((await send('POST', '/Groups', { displayName: 'green' })).status).toBe(502)
    workflows.override = async () => {}
    expect((await send('POST', '/Groups', { displayName: 'green' })).status).toBe(201)
  })

  test('a value that the target cannot store is an error of the client', async () => {
    const { send, workflows } = await open()
    workflows.override = async () => {
      throw new GatewayError('BAD_REQUEST', 'too long', { publicText: 'The group name is too long.' })
    }
    const { status, body } = await send('POST', '/Groups', { displayName: 'green' })
    expect([status, body['scimType'], body['detail']]).toEqual([400, 'invalidValue', 'The group name is too long.'])
  })

  test('a workflow that leaves no group is not a success', async () => {
    const { send, workflows } = await open()
    workflows.override = async () => {}
    expect((await send('POST', '/Groups', { displayName: 'green' })).status).toBe(500)
  })

  test('without its workflow it is 501; with members, theirs is needed too', async () => {
    const { groupCreateWorkflow: _none, ...params } = full
    expect((await (await open(params)).send('POST', '/Groups', { displayName: 'n' })).status).toBe(501)
    const { groupWorkflow: _members, ...noMembers } = full
    const { send, workflows } = await open(noMembers)
    expect((await send('POST', '/Groups', { displayName: 'n', members: [{ value: 'id-1' }] })).status).toBe(501)
    expect(workflows.calls).toEqual([])
    expect((await send('POST', '/Groups', { displayName: 'n' })).status).toBe(201)
  })

  test('if names are ids, a name must be valid in a URL', async () => {
    const { send } = await open(full, team({ ownIds: false, versions: false }))
    for (const displayName of ['.', '..', '.search']) {
      expect((await send('POST', '/Groups', { displayName })).body).toMatchObject({ scimType: 'invalidValue' })
    }
    expect((await send('POST', '/Groups', { displayName: 'a/b ü' })).headers['location']).toBe(
      `${base}/Groups/group%3Aa%2Fb%20%C3%BC`,
    )
  })
})

describe('changing a group', () => {
  test('rename and members in one request: the name first, members under it', async () => {
    const { send, workflows, people } = await open()
    const { status, body } = await send(
      'PATCH',
      '/Groups/gid-red',
      patchOp(
        { op: 'add', path: 'members', value: [{ value: 'id-3' }] },
        { op: 'replace', value: { id: 'gid-red', displayName: 'crimson', externalId: 'e-2' } },
        { op: 'remove', path: 'members[value eq "id-1"]' },
      ),
    )
    expect([status, body['displayName'], body['externalId'], membersIn(body)]).toEqual([
      200,
      'crimson',
      'e-2',
      ['id-2', 'id-3'],
    ])
    expect(workflows.calls.map(({ head: { workflow: name }, params }) => [name, params])).toEqual([
      ['update-group', { groupname: 'red', newgroupname: 'crimson', groupid: 'gid-red' }],
      ['change-members', { groupname: 'crimson', removegroup: 'true' }],
      ['change-members', { groupname: 'crimson', removegroup: 'false' }],
    ])
    expect([...people.memberships.keys()]).toEqual(['blue', 'crimson'])
  })

  test('a name that another group has is rejected, in any letter case; its own in another case is accepted', async () => {
    const { send, workflows, people } = await open()
    expect((await send('PATCH', '/Groups/gid-red', rename('BLUE'))).status).toBe(409)
    expect(workflows.calls).toEqual([])
    expect((await send('PATCH', '/Groups/gid-red', rename('Red'))).body).toMatchObject({ displayName: 'Red' })
    expect([...people.memberships.keys()]).toEqual(['blue', 'Red'])
  })

  test('if two groups want one name at the same time, one gets it', async () => {
    const { send, people } = await open()
    const answers = await Promise.all([
      send('PATCH', '/Groups/gid-red', rename('one')),
      send('PATCH', '/Groups/gid-blue', rename('ONE')),
      send('POST', '/Groups', { displayName: 'One' }),
    ])
    expect(answers.map(({ status }) => status).filter((status) => status < 300)).toHaveLength(1)
    expect([...people.memberships.keys()].filter((name) => name.toLowerCase() === 'one')).toHaveLength(1)
  })

  test('everything is checked before anything runs', async () => {
    const { send, workflows } = await open()
    const bad = patchOp(
      { op: 'replace', path: 'displayName', value: 'new' },
      { op: 'add', path: 'members', value: [{ value: 'ghost' }] },
    )
    expect((await send('PATCH', '/Groups/gid-red', bad)).body).toMatchObject({ scimType: 'invalidValue' })
    const taken = patchOp(
      { op: 'add', path: 'members', value: [{ value: 'id-3' }] },
      { op: 'replace', path: 'displayName', value: 'blue' },
    )
    expect((await send('PATCH', '/Groups/gid-red', taken)).status).toBe(409)
    expect((await send('PATCH', '/Groups/gid-red', patchOp({ op: 'remove', path: 'displayName' }))).status).toBe(400)
    expect((await send('PATCH', '/Groups/gid-red', rename(' '))).body).toMatchObject({ scimType: 'invalidValue' })
    expect(workflows.calls).toEqual([])
  })

  test('without its workflow a new name is rejected and the present one accepted', async () => {
    const { groupUpdateWorkflow: _none, ...params } = full
    const { send, workflows } = await open(params)
    expect((await send('PATCH', '/Groups/gid-red', rename('new'))).body).toMatchObject({ scimType: 'mutability' })
    const put = { displayName: 'red', members: [{ value: 'id-1' }] }
    expect((await send('PUT', '/Groups/gid-red', put)).status).toBe(200)
    expect(workflows.calls.map(({ head: { workflow: name } }) => name)).toEqual(['change-members'])
  })

  test('a group whose id is its name keeps it, except for letter case', async () => {
    const { send } = await open(withBody, team({ ownIds: false, versions: true }))
    expect((await send('PATCH', '/Groups/red', rename('new'))).body).toMatchObject({ scimType: 'mutability' })
    expect((await send('PATCH', '/Groups/red', rename('RED'))).body).toMatchObject({
      id: 'group:RED',
      displayName: 'RED',
    })
  })

  test('PUT clears attributes that are left out, and the same PUT again changes nothing', async () => {
    const { send, workflows, people } = await open()
    people.groupFacts.get('red')?.attributes.set('externalId', ['old'])
    const wanted = { displayName: 'red', members: [{ value: 'id-2' }, { value: 'id-3' }] }
    const { status, body } = await send('PUT', '/Groups/gid-red', wanted)
    expect([status, body['externalId'], membersIn(body)]).toEqual([200, undefined, ['id-2', 'id-3']])
    expect(workflows.calls[0]).toMatchObject({ head: { workflow: 'update-group' }, cleared: ['externalId'] })
    workflows.calls.length = 0
    expect((await send('PUT', '/Groups/gid-red', body)).status).toBe(200)
    expect(workflows.calls).toEqual([])
    expect(membersIn((await send('PUT', '/Groups/gid-red', { displayName: 'red' })).body)).toEqual([])
  })

  test('a rename changes the attribute that is shown as the name', async () => {
    const { send, workflows } = await open({ ...withBody, groupDisplayName: 'description' })
    const { body } = await send('PATCH', '/Groups/gid-red', rename('Red people'))
    expect(body['displayName']).toBe('Red people')
    expect(workflows.calls[0]?.params).toMatchObject({ groupname: 'red', newgroupname: 'red' })
    expect((await send('PATCH', '/Groups/gid-blue', rename('red PEOPLE'))).status).toBe(409)
  })

  test('with the built-in mapping every attribute is stored', async () => {
    const { groupFilterScim2Ldap: _none, ...params } = withBody
    const { send } = await open({ ...params, mapping: 'scim' })
    await send('PATCH', '/Groups/gid-red', patchOp({ op: 'add', path: 'externalId', value: 'e-9' }))
    expect((await send('GET', '/Groups/gid-red')).body).toMatchObject({ externalId: 'e-9' })
    const { body } = await send('PATCH', '/Groups/gid-red', patchOp({ op: 'remove', path: 'externalId' }))
    expect(body['externalId']).toBeUndefined()
  })
})

describe('the schema', () => {
  const mutabilities = async (params: ParamValues) => {
    const { body } = await (await open(params)).send('GET', `/Schemas/${core}`)
    const attributes = body['attributes'] as JsonObject[]
    return Object.fromEntries(attributes.map(({ name, mutability }) => [String(name), mutability]))
  }

  test('/Schemas shows what can be changed', async () => {
    expect(await mutabilities(full)).toEqual({ displayName: 'readWrite', members: 'readWrite' })
    const { groupUpdateWorkflow: _update, ...fixed } = full
    expect(await mutabilities(fixed)).toEqual({ displayName: 'immutable', members: 'readWrite' })
    const { groupCreateWorkflow: _create, groupWorkflow: _members, ...given } = fixed
    expect(await mutabilities(given)).toEqual({ displayName: 'readOnly', members: 'readOnly' })
  })
})

describe('versions', () => {
  const add = patchOp({ op: 'add', path: 'members', value: [{ value: 'id-3' }] })

  test('a stale If-Match loses, on every method, before anything runs', async () => {
    const { send, workflows } = await open()
    for (const [method, body] of [
      ['PATCH', add],
      ['PUT', { displayName: 'other' }],
      ['DELETE', undefined],
    ] as const) {
      const { status, headers } = await send(method, '/Groups/gid-red', body, { 'if-match': 'W/"0"' })
      expect([method, status, headers['etag']]).toEqual([method, 412, 'W/"1"'])
    }
    expect(workflows.calls).toEqual([])
  })

  test('the target compares the version again, even if only members change', async () => {
    const { send, workflows } = await open()
    expect((await send('PATCH', '/Groups/gid-red', add, { 'if-match': 'W/"1"' })).status).toBe(200)
    expect(workflows.calls[0]).toMatchObject({
      head: { workflow: 'update-group' },
      params: { groupname: 'red', newgroupname: 'red', groupid: 'gid-red', groupversion: '1' },
    })
    expect(workflows.calls.map(({ head: { workflow: name } }) => name)).toEqual(['update-group', 'change-members'])
  })

  test('a change by another process in between is 412, and no member changes', async () => {
    const { send, workflows, people } = await open()
    const red = people.groupFacts.get('red')
    workflows.before = ({ head: { workflow: name } }) => {
      if (name === 'update-group' && red !== undefined) red.version++
    }
    expect((await send('PATCH', '/Groups/gid-red', add, { 'if-match': 'W/"1"' })).status).toBe(412)
    expect(people.memberships.get('red')?.size).toBe(2)
  })

  test('without a workflow for it the version is compared here', async () => {
    const { groupUpdateWorkflow: _none, ...params } = full
    const { send, workflows } = await open(params)
    const [first, second] = await Promise.all(
      ['id-3', 'id-1'].map((value) =>
        send('PATCH', '/Groups/gid-blue', patchOp({ op: 'add', path: 'members', value: [{ value }] }), {
          'if-match': 'W/"1"',
        }),
      ),
    )
    expect([first?.status, second?.status]).toEqual([204, 412])
    expect(workflows.calls).toHaveLength(1)
  })

  test('a request that changes nothing requires no new version', async () => {
    const { send, workflows } = await open()
    expect((await send('PATCH', '/Groups/gid-red', rename('red'), { 'if-match': 'W/"1"' })).status).toBe(200)
    expect(workflows.calls).toEqual([])
  })

  test('GET with the version it has is a 304, and reads no members', async () => {
    const { send, people } = await open()
    const { status } = await send('GET', '/Groups/gid-red', undefined, { 'if-none-match': 'W/"1"' })
    expect([status, people.memberReads]).toEqual([304, 0])
    expect((await send('GET', '/Groups/gid-red', undefined, { 'if-none-match': 'W/"0"' })).status).toBe(200)
  })

  test('deleting by version, then again', async () => {
    const { send, workflows } = await open()
    expect((await send('DELETE', '/Groups/gid-red', undefined, { 'if-match': 'W/"1"' })).status).toBe(204)
    expect(workflows.calls[0]).toMatchObject({
      head: { workflow: 'delete-group' },
      params: { groupname: 'red', groupid: 'gid-red', groupversion: '1' },
    })
    expect((await send('DELETE', '/Groups/gid-red')).status).toBe(404)
  })

  test('a delete workflow that does not exist is 501', async () => {
    const { send } = await open({ ...full, groupDeleteWorkflow: 'not-there' })
    expect((await send('DELETE', '/Groups/gid-red')).status).toBe(501)
  })
})

describe('answers by client', () => {
  const add = patchOp({ op: 'add', path: 'members', value: [{ value: 'id-3' }] })

  test.each([
    ['okta', '', 204],
    ['entra', '', 204],
    ['entra', '?excludedAttributes=members', 204],
    ['entra', '?attributes=members.value', 200],
    ['tolerant', '', 204],
    ['sailpoint', '', 204],
    ['slack', '', 204],
    ['github', '', 204],
    ['aws', '', 204],
    ['tolerant', '?attributes=members.value', 200],
    ['strict', '', 200],
  ])('%s %s: %i', async (client, query, status) => {
    const { send } = await open({ ...full, client })
    const answer = await send('PATCH', `/Groups/gid-red${query}`, add)
    expect(answer.status).toBe(status)
    if (status === 200) expect(membersIn(answer.body)).toEqual(['id-1', 'id-2', 'id-3'])
  })

  test('a strict client may send only attributes of the schema', async () => {
    const { send, workflows } = await open({ ...full, client: 'strict' })
    const unknown = { schemas: [core], displayName: 'n', color: 'red' }
    expect((await send('POST', '/Groups', unknown)).status).toBe(400)
    expect((await send('POST', '/Groups', { ...unknown, color: null, displayName: 5 })).status).toBe(400)
    expect(workflows.calls).toEqual([])
    expect((await send('POST', '/Groups', { schemas: [core], displayName: 'n' })).status).toBe(201)
  })

  test.each([
    ['tolerant', 'resource', 200],
    ['entra', 'resource', 200],
    ['strict', 'noContent', 204],
  ])('%s with groupPatchAnswer %s: %i', async (client, groupPatchAnswer, status) => {
    const { send } = await open({ ...full, client, groupPatchAnswer })
    expect((await send('PATCH', '/Groups/gid-red', add)).status).toBe(status)
  })

  test('the answer without a body has the new version and reads no member', async () => {
    const { send, people } = await open(full)
    const { status, headers } = await send('PATCH', '/Groups/gid-red', add)
    expect([status, headers['etag'], people.memberReads]).toEqual([204, 'W/"2"', 0])
    expect((await send('GET', '/Groups/gid-red?excludedAttributes=members')).headers['etag']).toBe('W/"2"')
    const rename = patchOp({ op: 'replace', path: 'displayName', value: 'scarlet' })
    expect((await send('PATCH', '/Groups/gid-red', rename, { 'if-match': 'W/"2"' })).headers['etag']).toBe('W/"3"')
    expect(people.memberReads).toBe(0)
  })

  test('a change of one member does not read the members if they are not wanted', async () => {
    const { send, people } = await open()
    const { status, body } = await send('PATCH', '/Groups/gid-red?excludedAttributes=members', add)
    expect([status, body['members'], people.memberReads]).toEqual([200, undefined, 0])
  })

  test.each(['entra', 'onelogin'])('%s cannot remove all members by omitting them', async (client) => {
    const { send, workflows, people } = await open({ ...full, client })
    for (const remove of [
      { op: 'Remove', path: 'members' },
      { OP: 'remove', PATH: `${core}:MEMBERS`, value: null },
    ]) {
      expect((await send('PATCH', '/Groups/gid-red', patchOp(remove))).body).toMatchObject({ scimType: 'mutability' })
    }
    expect(workflows.calls).toEqual([])
    expect((await send('PATCH', '/Groups/gid-red', patchOp({ op: 'remove', path: 'members', value: [] }))).status).toBe(
      204,
    )
    expect(people.memberships.get('red')?.size).toBe(2)
    await send('PATCH', '/Groups/gid-red', patchOp({ op: 'replace', path: 'members', value: [] }))
    expect(people.memberships.get('red')?.size).toBe(0)
  })

  test('other clients can', async () => {
    const { send, people } = await open()
    await send('PATCH', '/Groups/gid-red', patchOp({ op: 'remove', path: 'members' }))
    expect(people.memberships.get('red')?.size).toBe(0)
  })
})
