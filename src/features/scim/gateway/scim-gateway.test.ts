import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { base, openGateway, People, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

function someone(options = { ownIds: false }): People {
  const people = new People(options)
  people.add('mmosley', { first: ['Matt'], last: ['Mosley'], mail: ['mm@example.com'], secretNote: ['kept'] })
  people.add('ann', { first: ['Ann'], mail: ['ann@example.com', 'ann@home.example'], enabled: ['false'] })
  people.addGroup('group1', 'mmosley')
  people.addGroup('group 2')
  return people
}

const open = (people = someone(), params = tutorialParams) => openGateway(scimGateway, { people, params })

const jjackson: JsonObject = {
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
  userName: 'jjackson',
  name: { givenName: 'Jen', familyName: 'Jackson' },
  emails: [{ value: 'jj@example.com', type: 'work', primary: true }],
  active: true,
}

const patchOp = (...operations: JsonValue[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})

const ids = (body: JsonObject): unknown[] => (body['Resources'] as JsonObject[]).map(({ id }) => id)

describe('reading a user', () => {
  test('returns the whole resource', async () => {
    const { send } = await open()
    const { status, headers, body } = await send('GET', '/Users/mmosley')
    expect(status).toBe(200)
    expect(headers['content-type']).toContain('application/scim+json')
    expect(body).toEqual({
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      id: 'mmosley',
      userName: 'mmosley',
      displayName: 'Matt Mosley',
      name: { givenName: 'Matt', familyName: 'Mosley' },
      emails: [{ type: 'work', primary: true, value: 'mm@example.com' }],
      meta: {
        resourceType: 'User',
        location: `${base}/Users/mmosley`,
        created: '2026-01-02T03:04:05.000Z',
        version: 'W/"7"',
      },
    })
  })

  test('by its own id, and by nothing else', async () => {
    const { send } = await open(someone({ ownIds: true }))
    const { body } = await send('GET', '/Users/id-1')
    expect(body).toMatchObject({ id: 'id-1', userName: 'mmosley', meta: { location: `${base}/Users/id-1` } })
    expect((await send('GET', '/Users/mmosley')).status).toBe(404)
  })

  test('by the login if it is configured as the id', async () => {
    const { send } = await open(someone({ ownIds: true }), { ...tutorialParams, idAttributeName: 'userName' })
    expect((await send('GET', '/Users/mmosley')).body).toMatchObject({ id: 'mmosley' })
  })

  test('by the attribute that idAttributeName names, in members too', async () => {
    const people = someone({ ownIds: true })
    people.add('bea', { badge: ['B-7'] })
    people.addGroup('crew', 'bea')
    const { send } = await open(people, { ...tutorialParams, idAttributeName: 'badge' })
    const location = `${base}/Users/B-7`
    expect((await send('GET', '/Users/B-7')).body).toMatchObject({ id: 'B-7', userName: 'bea', meta: { location } })
    expect((await send('GET', '/Users/id-3')).status).toBe(404)
    expect(ids((await send('GET', '/Users?filter=id%20eq%20%22B-7%22')).body)).toEqual(['B-7'])
    expect((await send('GET', '/Groups/gid-crew')).body).toMatchObject({ members: [{ value: 'B-7' }] })
    people.add('other', { badge: ['B-7'] })
    expect((await send('GET', '/Users/B-7')).status).toBe(404)
  })

  test('an unknown one is 404 with a SCIM error', async () => {
    const { send } = await open()
    const { status, headers, body } = await send('GET', '/Users/nobody')
    expect(status).toBe(404)
    expect(headers['content-type']).toContain('application/scim+json')
    expect(body).toEqual({
      schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
      status: '404',
      detail: 'There is no user with id "nobody". It may have been deleted; search for it by userName.',
    })
  })

  test('ids are percent-encoded in addresses and decoded in paths', async () => {
    const people = someone()
    people.add('a/b ?ü@x')
    const { send } = await open(people)
    const { body } = await send('GET', `/Users/${encodeURIComponent('a/b ?ü@x')}`)
    expect(body).toMatchObject({ id: 'a/b ?ü@x', meta: { location: `${base}/Users/a%2Fb%20%3F%C3%BC%40x` } })
  })

  test('returns only the requested attributes', async () => {
    const { send } = await open()
    const { body } = await send('GET', '/Users/mmosley?attributes=name.givenName')
    expect(Object.keys(body).sort()).toEqual(['id', 'name', 'schemas'])
  })

  test('a stored value of the wrong type is omitted', async () => {
    const people = someone()
    people.add('odd', { enabled: ['perhaps'] })
    expect((await (await open(people)).send('GET', '/Users/odd')).body['active']).toBeUndefined()
  })
})

describe('searching users', () => {
  const search = async (filter: string, rest = '') => {
    const gateway = await open()
    const answer = await gateway.send('GET', `/Users?filter=${encodeURIComponent(filter)}${rest}`)
    return { ...answer, ...gateway }
  }

  test("Entra's probe finds no user and is not an error", async () => {
    const { status, body } = await search('userName eq "7f3c2e9a-0000"')
    expect(status).toBe(200)
    expect(body).toMatchObject({ totalResults: 0, itemsPerPage: 0, startIndex: 1, Resources: [] })
  })

  test.each([
    ['userName eq "MMOSLEY"', ['mmosley']],
    ['id eq "ann"', ['ann']],
    ['id eq "ann" and active eq true', []],
    ['userName sw "m"', ['mmosley']],
    ['not (userName sw "m")', ['ann']],
    ['emails.value eq "ann@example.com"', ['ann']],
    ['emails.value eq "ann@home.example"', []],
    ['emails eq "MM@example.com"', ['mmosley']],
    ['emails[type eq "work"].value eq "mm@example.com"', ['mmosley']],
    ['emails[type eq "home"].value eq "mm@example.com"', []],
    ['active eq false', ['ann']],
    ['active ne false', ['mmosley']],
    ['name.familyName eq "mosley"', ['mmosley']],
    ['meta.created lt "2027-01-01T00:00:00Z"', ['mmosley', 'ann']],
  ])('%s', async (filter, expected) => {
    const { status, body } = await search(filter)
    expect(status).toBe(200)
    expect(ids(body)).toEqual(expected)
    expect(body['totalResults']).toBe(expected.length)
  })

  test('the store evaluates what it can', async () => {
    const { people } = await search('userName co "n" and not (userName eq "x")', '&startIndex=3&count=5')
    expect(people.searches).toEqual([expect.objectContaining({ offset: 2, limit: 5 })])
  })

  test.each(['externalId eq "x"', 'not (externalId eq "x")', 'externalId eq "x" or userName co "nn"'])(
    '%s is refused if no user can have the attribute',
    async (filter) => {
      const { status, body } = await search(filter)
      expect([status, body['scimType']]).toEqual([400, 'invalidFilter'])
    },
  )

  test('an attribute of ignoreUnmapped has no values', async () => {
    const { send } = await openGateway(scimGateway, {
      people: someone(),
      params: { ...tutorialParams, ignoreUnmapped: 'externalId' },
    })
    const find = async (filter: string) => ids((await send('GET', `/Users?filter=${encodeURIComponent(filter)}`)).body)
    expect(await find('externalId eq "x"')).toEqual([])
    expect(await find('not (externalId eq "x")')).toEqual(['mmosley', 'ann'])
    expect(await find('externalId eq "x" or userName co "nn"')).toEqual(['ann'])
  })

  test.each(['unknown eq "x"', 'userName eq', '('.repeat(9999)])('400 invalidFilter', async (filter) => {
    const { status, body } = await search(filter)
    expect(status).toBe(400)
    expect(body).toMatchObject({ status: '400', scimType: 'invalidFilter' })
  })

  test('too many candidates are rejected, not truncated', async () => {
    const people = new People()
    for (let i = 0; i <= 10_000; i++) people.add(`u${i}`)
    const { send } = await open(people)
    const { status, body } = await send('GET', `/Users?filter=${encodeURIComponent('name.givenName eq "x"')}`)
    expect([status, body['scimType']]).toEqual([400, 'tooMany'])
  })

  test('pages', async () => {
    const { send } = await open()
    expect((await send('GET', '/Users?count=1')).body).toMatchObject({
      totalResults: 2,
      itemsPerPage: 1,
      startIndex: 1,
    })
    expect(ids((await send('GET', '/Users?startIndex=2&count=1')).body)).toEqual(['ann'])
    expect((await send('GET', '/Users?count=0')).body).toMatchObject({ totalResults: 2, Resources: [] })
    expect((await send('GET', '/Users?startIndex=99')).body).toMatchObject({ totalResults: 2, Resources: [] })
    expect((await send('GET', '/Users?count=x')).status).toBe(400)
  })
})

describe('creating a user', () => {
  test('runs the workflow, keeps memberships, and answers what the target stores', async () => {
    const { send, workflows } = await open()
    const { status, headers, body } = await send('POST', '/Users', { ...jjackson, password: 'pw', groups: [] })
    expect(status).toBe(201)
    expect(headers['location']).toBe(`${base}/Users/jjackson`)
    expect(body).toMatchObject({ id: 'jjackson', userName: 'jjackson', name: jjackson['name'], active: true })
    expect(JSON.stringify(body)).not.toContain('pw')
    expect(workflows.calls).toHaveLength(1)
    const [call] = workflows.calls
    expect(call).toMatchObject({
      head: { workflow: 'sync-user', requester: 'idp' },
      keepGroups: true,
      password: 'pw',
      params: {},
    })
    expect(call?.user.userID).toBe('jjackson')
    expect(call?.user.attributes.toObject()).toEqual({
      username: ['jjackson'],
      mail: ['jj@example.com'],
      first: ['Jen'],
      last: ['Jackson'],
      enabled: ['true'],
    })
  })

  test('an inactive one stays inactive', async () => {
    const { send } = await open()
    expect((await send('POST', '/Users', { ...jjackson, active: 'False' })).body['active']).toBe(false)
  })

  test('a taken userName is 409 in any letter case, and runs nothing', async () => {
    const { send, workflows } = await open()
    const { status, body } = await send('POST', '/Users', { ...jjackson, userName: 'MMosley' })
    expect([status, body['scimType']]).toEqual([409, 'uniqueness'])
    expect(workflows.calls).toEqual([])
  })

  test('one of parallel requests for one userName creates', async () => {
    const { send, workflows } = await open()
    const names = ['jjackson', 'JJACKSON', 'JJackson', 'jjackson']
    const answers = await Promise.all(names.map((userName) => send('POST', '/Users', { ...jjackson, userName })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
    expect(workflows.calls).toHaveLength(1)
  })

  test("a target's own conflict is uniqueness too", async () => {
    const { send, workflows } = await open()
    workflows.override = async () => {
      throw new GatewayError('CONFLICT', 'mail taken')
    }
    const { status, body } = await send('POST', '/Users', jjackson)
    expect([status, body['scimType']]).toEqual([409, 'uniqueness'])
  })

  test('a workflow that creates no user fails the request', async () => {
    const { send, workflows } = await open()
    workflows.override = async () => {}
    const { status, body } = await send('POST', '/Users', jjackson)
    expect([status, body['status']]).toEqual([500, '500'])
  })

  test.each<[string, JsonValue | string, string]>([
    ['no userName', { schemas: [] }, 'invalidValue'],
    ['a wrong type', { ...jjackson, userName: 1 }, 'invalidValue'],
    ['no object', [], 'invalidSyntax'],
    ['no JSON', '{"userName":', 'invalidSyntax'],
    ['nothing', '', 'invalidSyntax'],
    ['a nesting bomb', '['.repeat(200_000), 'invalidSyntax'],
    ['schemas of a wrong type', { ...jjackson, schemas: 'x' }, 'invalidSyntax'],
    ['a login that clients would fold away', { ...jjackson, userName: '..' }, 'invalidValue'],
    ['a login that is another address', { ...jjackson, userName: '.search' }, 'invalidValue'],
    ['a login of spaces', { ...jjackson, userName: '  ' }, 'invalidValue'],
    ['a login too long for an address', { ...jjackson, userName: '\u65e5'.repeat(1000) }, 'invalidValue'],
  ])('400 for %s', async (_name, sent, scimType) => {
    const { send, workflows } = await open()
    const { status, body } = await send('POST', '/Users', sent)
    expect([status, body['scimType']]).toEqual([400, scimType])
    expect(workflows.calls).toEqual([])
  })
})

describe('changing a user', () => {
  test('PATCH runs the workflow with the changes and keeps values that clients cannot see', async () => {
    const { send, workflows } = await open()
    const { status, body } = await send(
      'PATCH',
      '/Users/mmosley',
      patchOp({ op: 'Replace', path: 'active', value: 'False' }, { op: 'replace', value: { 'name.givenName': 'M' } }),
    )
    expect(status).toBe(200)
    expect(body).toMatchObject({ active: false, name: { givenName: 'M', familyName: 'Mosley' } })
    expect(workflows.calls[0]).toMatchObject({ head: { workflow: 'sync-user' }, keepGroups: true })
    expect(workflows.calls[0]?.user.attributes.toObject()).toMatchObject({
      first: ['M'],
      last: ['Mosley'],
      enabled: ['false'],
      mail: ['mm@example.com'],
      secretNote: ['kept'],
    })
  })

  test('a change elsewhere keeps values that are shown only in part', async () => {
    const { send, workflows } = await open()
    await send('PATCH', '/Users/ann', patchOp({ op: 'replace', path: 'active', value: true }))
    expect(workflows.calls[0]?.user.attributes.values('mail')).toEqual(['ann@example.com', 'ann@home.example'])
  })

  test('removing clears the value', async () => {
    const { send, people } = await open()
    expect(
      (await send('PATCH', '/Users/mmosley', patchOp({ op: 'remove', path: 'emails' }))).body['emails'],
    ).toBeUndefined()
    expect(people.people.get('mmosley')?.attributes.has('mail')).toBe(false)
  })

  test('a change to the present value runs nothing', async () => {
    const { send, workflows } = await open()
    const same = patchOp(
      { op: 'replace', path: 'name.givenName', value: 'Matt' },
      { op: 'replace', path: 'name.familyName', value: 'Mosley' },
    )
    expect((await send('PATCH', '/Users/mmosley', same)).status).toBe(200)
    expect(workflows.calls).toEqual([])
  })

  test('a new password alone reaches the workflow', async () => {
    const { send, workflows } = await open()
    const { body } = await send('PATCH', '/Users/mmosley', patchOp({ op: 'replace', path: 'password', value: 'new' }))
    expect(workflows.calls[0]).toMatchObject({ password: 'new' })
    expect(JSON.stringify(body)).not.toContain('new')
  })

  test('applies all operations or none', async () => {
    const { send, workflows } = await open()
    const mixed = patchOp({ op: 'replace', path: 'active', value: false }, { op: 'replace', path: 'id', value: 'x' })
    const { status, body } = await send('PATCH', '/Users/mmosley', mixed)
    expect([status, body['scimType']]).toEqual([400, 'mutability'])
    expect(workflows.calls).toEqual([])
  })

  test('a rename is refused, another letter case is not', async () => {
    const { send } = await open()
    const rename = (value: string) =>
      send('PATCH', '/Users/mmosley', patchOp({ op: 'replace', path: 'userName', value }))
    expect((await rename('other')).body).toMatchObject({ status: '400', scimType: 'mutability' })
    expect((await rename('MMosley')).status).toBe(200)
  })

  test('PUT clears omitted attributes, keeps values that clients cannot see, and takes the id from the address', async () => {
    const { send, people } = await open()
    const { status, body } = await send('PUT', '/Users/mmosley', {
      userName: 'mmosley',
      id: 'ann',
      name: { givenName: 'M' },
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({ id: 'mmosley', name: { givenName: 'M' } })
    expect(body['emails']).toBeUndefined()
    expect(people.people.get('mmosley')?.attributes.toObject()).toEqual({
      username: ['mmosley'],
      first: ['M'],
      secretNote: ['kept'],
    })
    expect((await send('PUT', '/Users/mmosley', {})).body['scimType']).toBe('invalidValue')
  })

  test('parallel changes of one user do not undo each other', async () => {
    const { send } = await open()
    await Promise.all([
      send('PATCH', '/Users/mmosley', patchOp({ op: 'replace', path: 'name.givenName', value: 'A' })),
      send('PATCH', '/Users/mmosley', patchOp({ op: 'replace', path: 'name.familyName', value: 'B' })),
      send('PATCH', '/Users/mmosley', patchOp({ op: 'replace', path: 'active', value: false })),
    ])
    expect((await send('GET', '/Users/mmosley')).body).toMatchObject({
      name: { givenName: 'A', familyName: 'B' },
      active: false,
    })
  })

  test('DELETE is 204, then 404', async () => {
    const { send, workflows } = await open()
    expect((await send('DELETE', '/Users/mmosley')).status).toBe(204)
    expect((await send('DELETE', '/Users/mmosley')).status).toBe(404)
    expect(workflows.calls.map(({ head: { workflow: name } }) => name)).toEqual(['delete-user'])
  })

  test.each(['PATCH', 'PUT', 'DELETE'])('%s of an unknown user is 404', async (method) => {
    const { send } = await open()
    const body = method === 'PATCH' ? patchOp({ op: 'remove', path: 'title' }) : method === 'PUT' ? jjackson : undefined
    expect((await send(method, '/Users/nobody', body)).status).toBe(404)
  })

  test('a change without a configured workflow is 501', async () => {
    const { deleteUserWorkflowName: _, groupWorkflow: __, ...params } = tutorialParams
    const { send } = await open(someone(), params)
    expect((await send('DELETE', '/Users/mmosley')).status).toBe(501)
    const add = patchOp({ op: 'add', path: 'members', value: [{ value: 'ann' }] })
    expect((await send('PATCH', '/Groups/group1', add)).status).toBe(501)
  })

  test('a target that is down is reported', async () => {
    const { send, workflows } = await open()
    workflows.override = async () => {
      throw new GatewayError('TARGET_UNREACHABLE', 'connection refused by 10.0.0.1')
    }
    const { status, body } = await send('POST', '/Users', jjackson)
    expect(status).toBe(503)
    expect(JSON.stringify(body)).not.toContain('10.0.0.1')
  })
})
