import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { WorkflowWrites } from '#sdk/flow/flow.ts'
import type { StorableAttributes } from '#sdk/target/target.ts'
import { unknownWrites } from '#sdk/workflow/workflow-writes.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { openGateway, People, prepareGateway, type Send, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams, openStack } from '#testing/scim/scim-stack.ts'
import scimGateway from './scim-gateway.ts'

const core = 'urn:ietf:params:scim:schemas:core:2.0:User'
const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'

const patchOp = (...operations: JsonValue[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})
const replace = (path: string, value: JsonValue): JsonObject => patchOp({ op: 'replace', path, value })

/** The first configuration of docs/guides/scim-gateway.md before it mapped `active`. */
const threeLines: ParamValues = {
  lookupTarget: 'people',
  uidAttributeName: 'uid',
  workflowName: 'sync-three',
  scim2tremolo: ['uid', 'givenName', 'sn'],
  'scim2tremolo.uid.source': 'userName',
  'scim2tremolo.givenName.source': 'name.givenName',
  'scim2tremolo.sn.source': 'name.familyName',
  tremolo2scim: ['userName', 'name'],
  'tremolo2scim.userName.source': 'uid',
  'tremolo2scim.name.source': '{"givenName": "${givenName}", "familyName": "${sn}"}',
  'tremolo2scim.name.sourceType': 'composite',
}

let stack: Awaited<ReturnType<typeof openStack>>
beforeAll(async () => {
  const provision = (more: object) => [{ taskType: 'provision', target: 'people', sync: true, ...more }]
  stack = await openStack(scimGateway, {
    params: threeLines,
    workflows: {
      'sync-three': provision({ attributes: ['uid', 'givenName', 'sn'] }),
      'with-password': provision({ setPassword: true }),
      'create-group': [{ taskType: 'customTask', className: 'tasks.CreateGroup', params: { target: 'people' } }],
      'update-group': [{ taskType: 'customTask', className: 'tasks.UpdateGroup', params: { target: 'people' } }],
      'rename-group': [
        {
          taskType: 'customTask',
          className: 'tasks.UpdateGroup',
          params: { target: 'people', attributes: ['description'] },
        },
      ],
    },
  })
})
afterAll(() => stack.close())

let next = 1
async function created(send: Send, more: JsonObject = {}): Promise<string> {
  const { status, body } = await send('POST', '/Users', { schemas: [core], userName: `loss${next++}`, ...more })
  expect([status, body['detail']]).toEqual([201, undefined])
  return `/Users/${String(body['id'])}`
}

async function attributesOf(send: Send, urn = core): Promise<ReadonlyMap<string, JsonObject>> {
  const { body } = await send('GET', `/Schemas/${urn}`)
  return new Map((body['attributes'] as JsonObject[]).map((one) => [String(one['name']), one]))
}

describe('an `active` that no line maps', () => {
  test('is not announced, accepted while it is true, and otherwise rejected with the remedy', async () => {
    const { send } = stack
    expect((await attributesOf(send)).has('active')).toBe(false)
    const address = await created(send, { active: true })
    for (const same of [replace('active', true), patchOp({ op: 'remove', path: 'active' })]) {
      expect((await send('PATCH', address, same)).status).toBe(200)
    }
    for (const [method, body, scimType] of [
      ['PATCH', replace('active', false), 'invalidPath'],
      ['PATCH', patchOp({ op: 'Replace', value: { active: 'False' } }), 'invalidPath'],
      ['PUT', { userName: `loss${next - 1}`, active: false }, 'invalidValue'],
    ] as const) {
      const refused = await send(method, address, body)
      expect([refused.status, refused.body['scimType']]).toEqual([400, scimType])
      expect(refused.body['detail']).toMatch(/"active" is not mapped.*scim2tremolo.*ignoreUnmapped/)
    }
    const inactive = await send('POST', '/Users', { userName: 'never', active: false })
    expect([inactive.status, inactive.body['scimType']]).toEqual([400, 'invalidValue'])
    expect((await send('GET', '/Users?filter=userName%20eq%20%22never%22')).body['totalResults']).toBe(0)
  })

  test('is ignored if configured', async () => {
    const { send } = await stack.gateway({ ...threeLines, ignoreUnmapped: ['active', 'externalId'] })
    const address = await created(send, { active: false })
    expect((await send('PATCH', address, replace('active', false))).status).toBe(200)
    expect((await send('PATCH', address, replace('externalId', 'x'))).status).toBe(200)
    expect((await send('PATCH', address, replace('title', 'x'))).status).toBe(400)
  })
})

describe('other attributes that are not stored', () => {
  test('change nothing in a create, and are rejected in PATCH and PUT as a whole', async () => {
    const { send } = stack
    const address = await created(send, { title: 'x', name: { givenName: 'Ann', formatted: 'Ann B' } })
    const patched = await send('PATCH', address, {
      ...patchOp(
        { op: 'replace', path: 'name.givenName', value: 'Bea' },
        { op: 'replace', path: 'name.formatted', value: 'Bea' },
      ),
    })
    expect([patched.status, patched.body['scimType']]).toEqual([400, 'invalidPath'])
    expect(patched.body['detail']).toContain('name.formatted')
    const put = await send('PUT', address, { userName: `loss${next - 1}`, title: 'y' })
    expect([put.status, put.body['scimType']]).toEqual([400, 'invalidValue'])
    expect((await send('GET', address)).body).toMatchObject({ name: { givenName: 'Ann' } })
    const kept = await send('PUT', address, { userName: `loss${next - 1}`, name: { givenName: 'Cleo' } })
    expect(kept.status).toBe(200)
  })

  test('an attribute that the workflow does not write is shown as read-only, and a change of it is refused', async () => {
    const { send } = await stack.gateway({ ...builtInParams, workflowName: 'sync-three' })
    expect((await attributesOf(send)).get('title')).toMatchObject({ mutability: 'readOnly' })
    const address = await created(send)
    const { status, body } = await send('PATCH', address, replace('title', 'x'))
    expect([status, body['scimType']]).toEqual([400, 'invalidPath'])
    expect(body['detail']).toMatch(/workflow "sync-three" does not write "title"/)
  })
})

describe('parts that mapping lines do not store', () => {
  const lines: ParamValues = {
    lookupTarget: 'people',
    uidAttributeName: 'uid',
    workflowName: 'sync-user',
    scim2tremolo: ['uid', 'givenName', 'sn', 'mail'],
    'scim2tremolo.uid.source': 'userName',
    'scim2tremolo.givenName.source': 'part|name,givenName',
    'scim2tremolo.givenName.sourceType': 'custom',
    'scim2tremolo.sn.source': 'part|name,familyName',
    'scim2tremolo.sn.sourceType': 'custom',
    'scim2tremolo.mail.source': 'list|emails,value',
    'scim2tremolo.mail.sourceType': 'custom',
    tremolo2scim: ['userName', 'name', 'emails'],
    'tremolo2scim.userName.source': 'uid',
    'tremolo2scim.name.source': '{"givenName": "${givenName}", "familyName": "${sn}"}',
    'tremolo2scim.name.sourceType': 'composite',
    'tremolo2scim.emails.source': '[{"type": "work", "primary": true, "value": "${mail}"}]',
    'tremolo2scim.emails.sourceType': 'composite',
  }
  const name = { givenName: 'Ann', familyName: 'Bee' }
  const emails = [{ type: 'work', primary: true, value: 'a@example.com' }]

  test('are not announced', async () => {
    const { send } = await stack.gateway(lines)
    const attributes = await attributesOf(send)
    const parts = (of: string) =>
      ((attributes.get(of)?.['subAttributes'] ?? []) as JsonObject[]).map(
        (one) => `${one['name']} ${one['mutability']}`,
      )
    expect(parts('name')).toEqual(['familyName readWrite', 'givenName readWrite'])
    expect(parts('emails')).toEqual(['value readWrite', 'type readOnly', 'primary readOnly'])
  })

  test('are refused in PATCH and PUT, and dropped if ignored', async () => {
    const { send } = await stack.gateway(lines)
    const address = await created(send, { name, emails })
    const userName = `loss${next - 1}`
    for (const [method, body, scimType, lost] of [
      ['PATCH', replace('name', { givenName: 'Zoe', middleName: 'Lost' }), 'invalidPath', 'name.middleName'],
      ['PUT', { userName, name: { ...name, middleName: 'Lost' }, emails }, 'invalidValue', 'name.middleName'],
      ['PATCH', replace('emails', [{ value: 'b@example.com', display: 'B' }]), 'invalidPath', 'emails.display'],
      ['PUT', { userName, name, emails: [{ value: 'b@example.com', display: 'B' }] }, 'invalidValue', 'emails.display'],
    ] as const) {
      const { status, body: answer } = await send(method, address, body)
      expect([status, answer['scimType']]).toEqual([400, scimType])
      expect(answer['detail']).toContain(`"${lost}" is not mapped`)
    }
    expect((await send('GET', address)).body).toMatchObject({ name, emails })
    expect((await send('PUT', address, { userName, name: { givenName: 'Zoe' }, emails })).status).toBe(200)
    const ignoring = await stack.gateway({ ...lines, ignoreUnmapped: ['emails.display', 'name.middleName'] })
    const put = { userName, name: { ...name, middleName: 'Lost' }, emails: [{ value: 'b@example.com', display: 'B' }] }
    expect((await ignoring.send('PUT', address, put)).status).toBe(200)
  })
})

describe('passwords', () => {
  test('are announced if the workflow sets them, and otherwise rejected in a change', async () => {
    const { send: without } = stack
    const { send: sets } = await stack.gateway({ ...builtInParams, workflowName: 'with-password' })
    expect((await without('GET', '/ServiceProviderConfig')).body).toMatchObject({
      changePassword: { supported: false },
    })
    expect((await sets('GET', '/ServiceProviderConfig')).body).toMatchObject({ changePassword: { supported: true } })
    expect((await attributesOf(without)).has('password')).toBe(false)
    expect((await attributesOf(sets)).get('password')).toMatchObject({ mutability: 'writeOnly', returned: 'never' })
    const address = await created(without, { password: 'initial' })
    const refused = await without('PATCH', address, replace('password', 'a fresh secret 1'))
    expect([refused.status, refused.body['scimType']]).toEqual([400, 'invalidPath'])
    expect(refused.body['detail']).not.toContain('a fresh secret 1')
    expect((await sets('PATCH', address, replace('password', 'a fresh secret 1'))).status).toBe(200)
  })
})

describe('names outside all schemas', () => {
  const wrong = 'urn:ietf:params:scim:schemas:extension:enterprize:2.0:User'
  test.each([
    ['POST', '/Users', { userName: 'urn', [wrong]: { department: 'D' } }, 'invalidSyntax'],
    ['PATCH', '', patchOp({ op: 'add', value: { [wrong]: { department: 'D' } } }), 'invalidPath'],
    ['PATCH', '', patchOp({ op: 'add', value: { [`${wrong}:department`]: 'D' } }), 'invalidPath'],
    ['PATCH', '', patchOp({ op: 'add', path: `${wrong}:department`, value: 'D' }), 'invalidPath'],
    ['PUT', '', { userName: 'urn', [wrong]: { department: 'D' } }, 'invalidSyntax'],
  ])('%s%s of a misspelled extension is rejected with a suggestion', async (method, path, body, scimType) => {
    const { send } = await stack.gateway(builtInParams)
    const address = path === '' ? await created(send) : path
    const refused = await send(method, address, body as JsonObject)
    expect([refused.status, refused.body['scimType']]).toEqual([400, scimType])
    expect(refused.body['detail']).toContain(enterprise)
  })

  test('a misspelled attribute is rejected in a change and dropped in a create', async () => {
    const { send } = await stack.gateway(builtInParams)
    const address = await created(send, { acitve: false })
    for (const body of [
      patchOp({ op: 'replace', value: { acitve: false } }),
      patchOp({ op: 'replace', value: { [enterprise]: { departmnet: 'x' } } }),
    ]) {
      expect((await send('PATCH', address, body)).body).toMatchObject({ status: '400', scimType: 'invalidPath' })
    }
  })

  test('a misspelled part is rejected in a change, and removes nothing', async () => {
    const { send } = await stack.gateway(builtInParams)
    const name = { givenName: 'Ann', familyName: 'Bee' }
    const address = await created(send, { name: { ...name, famillyName: 'x' } })
    for (const body of [
      patchOp({ op: 'replace', value: { name: { givenNmae: 'Bea' } } }),
      replace('name', { givenNmae: 'Bea' }),
      replace('emails', [{ value: 'a@example.com', tpye: 'work' }]),
    ]) {
      const refused = await send('PATCH', address, body)
      expect(refused.body).toMatchObject({ status: '400', scimType: 'invalidPath' })
      expect(refused.body['detail']).toMatch(/"name\.givenName"|"emails\.type"/)
    }
    const put = await send('PUT', address, { userName: `loss${next - 1}`, name: { givenNmae: 'Bea' } })
    expect(put.body).toMatchObject({ status: '400', scimType: 'invalidValue' })
    expect((await send('GET', address)).body).toMatchObject({ name })
  })

  test('known habits of clients are accepted or ignored', async () => {
    const { send } = await stack.gateway({ ...builtInParams, ignoreUnmapped: 'urn:example:other' })
    const address = await created(send, {
      'urn:ietf:params:scim:schemas:extension:enterprise:2.0User': { department: 'D' },
      'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group': { x: 'y' },
      'urn:example:other': { a: 'b' },
    })
    expect((await send('GET', address)).body).toMatchObject({ [enterprise]: { department: 'D' } })
  })

  test('ignoreUnmapped applies to names outside all schemas, in every form of a PATCH', async () => {
    const { send } = await stack.gateway({ ...builtInParams, ignoreUnmapped: ['urn:example:other', 'badge'] })
    const address = await created(send, {})
    for (const operation of [
      { op: 'replace', path: 'urn:example:other:a', value: 'b' },
      { op: 'add', path: 'urn:example:other:list[type eq "x"].value', value: 'b' },
      { op: 'remove', path: 'urn:example:other' },
      { op: 'replace', path: 'badge.number', value: '1' },
      { op: 'replace', value: { badge: '1', 'urn:example:other': { a: 'b' }, 'urn:example:other:a': 'b' } },
    ]) {
      expect([operation, (await send('PATCH', address, patchOp(operation))).status]).toEqual([operation, 200])
    }
    for (const path of ['urn:example:others', 'badges', 'my.badge']) {
      const { status, body } = await send('PATCH', address, replace(path, 'x'))
      expect([status, body['scimType']]).toEqual([400, 'invalidPath'])
      expect(body['detail']).toContain('Correct the name, or list it in ignoreUnmapped.')
    }
  })
})

/** Users of whom a target stores only these attributes. */
const limited = (storable: StorableAttributes): People =>
  Object.assign(new People(), { storable: async () => storable })

const writesAll: WorkflowWrites = {
  ofUser: (attribute) => [{ target: 'people', attribute }],
  ofGroup: (attribute) => [{ target: 'people', attribute }],
  passwords: [],
  severalTimes: false,
}

describe('attributes that the target can store', () => {
  const storable = { users: new Set(['username', 'title', 'name.givenname']), groups: new Set(['description']) }
  const params = { ...builtInParams, groupCreateWorkflow: 'create-group', groupUpdateWorkflow: 'update-group' }
  const open = () =>
    openGateway(scimGateway, { people: limited(storable), params, host: { workflowWrites: () => writesAll } })

  test('are the only ones announced, written and accepted', async () => {
    const { send, workflows } = await open()
    const attributes = await attributesOf(send)
    expect([...attributes.keys()].sort()).toEqual(['groups', 'name', 'title', 'userName'])
    expect(attributes.get('name')?.['subAttributes']).toEqual([expect.objectContaining({ name: 'givenName' })])
    const address = await created(send, { title: 'x', nickName: 'y', emails: [{ value: 'a@b.c' }] })
    expect(workflows.calls[0]?.user.attributes.names().sort()).toEqual(['title', 'userName'])
    const { status, body } = await send('PATCH', address, replace('nickName', 'z'))
    expect([status, body['scimType']]).toEqual([400, 'invalidPath'])
    expect(body['detail']).toMatch(/the target has no place for "nickName"/)
  })

  test('apply to groups too', async () => {
    const { send } = await open()
    const announced = await attributesOf(send, 'urn:ietf:params:scim:schemas:core:2.0:Group')
    expect([...announced.keys()]).toEqual(['displayName', 'members'])
    const { body } = await send('POST', '/Groups', { displayName: 'g', externalId: 'dropped' })
    expect(body['externalId']).toBeUndefined()
    const changed = await send('PATCH', '/Groups/g', replace('externalId', 'x'))
    expect([changed.status, changed.body['scimType']]).toEqual([400, 'invalidPath'])
  })

  test('the name of a group is announced as unique, since a second one is a conflict', async () => {
    const { send } = await open()
    const announced = await attributesOf(send, 'urn:ietf:params:scim:schemas:core:2.0:Group')
    expect(announced.get('displayName')).toMatchObject({ uniqueness: 'server' })
    await send('POST', '/Groups', { displayName: 'one' })
    expect((await send('POST', '/Groups', { displayName: 'one' })).status).toBe(409)
  })
})

describe('a run that ends without effect', () => {
  test('is an error that names the attribute, unless it has an effect', async () => {
    const people = new People()
    people.add('ann', { first: ['Ann'], enabled: ['true'] })
    const { send, workflows } = await openGateway(scimGateway, { people, params: tutorialParams })
    workflows.override = async () => {}
    const { status, body } = await send('PATCH', '/Users/ann', replace('active', false))
    expect([status, body['detail']]).toEqual([500, expect.stringMatching(/"active" did not change.*sync-user/)])
    workflows.override = undefined
    expect((await send('PATCH', '/Users/ann', replace('active', false))).status).toBe(200)
  })

  test('the default of a target in the place of a removed value is accepted, another value is an error', async () => {
    const people: People = Object.assign(new People(), {
      defaultValue: (attribute: string, { userID }: { userID: string }) => (attribute === 'title' ? userID : undefined),
    })
    people.add('ann', { title: ['ann'], nickName: ['ann'] })
    const { send, workflows } = await openGateway(scimGateway, { people, params: builtInParams })
    workflows.override = async () => {}
    const remove = (path: string) => send('PATCH', '/Users/ann', patchOp({ op: 'remove', path }))
    const removed = await remove('title')
    expect([removed.status, removed.body['title']]).toEqual([200, 'ann'])
    expect((await remove('nickName')).status).toBe(500)
    expect((await send('PATCH', '/Users/ann', replace('title', 'Boss'))).status).toBe(500)
    people.add('bob', { title: ['Boss'] })
    expect((await send('PATCH', '/Users/bob', patchOp({ op: 'remove', path: 'title' }))).status).toBe(500)
  })

  test('an active user that was to be created inactive is an error', async () => {
    const { send, workflows, people } = await openGateway(scimGateway, { params: tutorialParams })
    workflows.override = async ({ user }) => people.add(user.userID, { enabled: ['true'] })
    expect((await send('POST', '/Users', { userName: 'off', active: false })).status).toBe(500)
  })

  test('a group that keeps its attribute is an error', async () => {
    const { send, people, workflows } = await openGateway(scimGateway, {
      params: { ...builtInParams, groupUpdateWorkflow: 'update-group' },
    })
    people.addGroup('team')
    workflows.override = async () => {}
    expect((await send('PATCH', '/Groups/team', replace('externalId', 'x'))).status).toBe(500)
  })

  test('members that did not join or leave, and a group that was not deleted, are errors', async () => {
    const people = new People({ ownIds: true, versions: true })
    people.add('ann')
    people.add('bob')
    people.addGroup('team', 'bob')
    const { send, workflows } = await openGateway(scimGateway, {
      people,
      params: { ...tutorialParams, groupCreateWorkflow: 'create-group', groupUpdateWorkflow: 'update-group' },
    })
    workflows.override = async () => {}
    for (const [method, path, body, text] of [
      [
        'PATCH',
        '/Groups/gid-team',
        patchOp({ op: 'add', path: 'members', value: [{ value: 'id-1' }] }),
        /has not joined/,
      ],
      ['PATCH', '/Groups/gid-team', patchOp({ op: 'remove', path: 'members[value eq "id-2"]' }), /has not left/],
      [
        'PUT',
        '/Groups/gid-team',
        { displayName: 'team', members: [{ value: 'id-1' }, { value: 'id-2' }] },
        /has not joined/,
      ],
      ['DELETE', '/Groups/gid-team', undefined, /the group is still there/],
    ] as const) {
      const answer = await send(method, path, body)
      expect([answer.status, answer.body['detail']]).toEqual([500, expect.stringMatching(text)])
    }
  })

  test('a change that the mapping drops is rejected', async () => {
    const params = {
      ...tutorialParams,
      scim2tremolo: ['username', 'fixed'],
      'scim2tremolo.fixed.source': 'part|displayName,nothing',
      'scim2tremolo.fixed.sourceType': 'custom',
    }
    const kept = Object.fromEntries(
      Object.entries(params).filter(([name]) => !/^scim2tremolo\.(?:mail|first|last|enabled|secretNote)\./.test(name)),
    )
    const people = new People()
    people.add('ann')
    const { send } = await openGateway(scimGateway, { people, params: kept })
    const { status, body } = await send('PATCH', '/Users/ann', replace('displayName', 'x'))
    expect([status, body['scimType']]).toEqual([400, 'invalidPath'])
  })
})

describe('check', () => {
  const problems = (params: ParamValues, writes: WorkflowWrites = unknownWrites) =>
    prepareGateway(scimGateway, params)
      .prepared.flow?.check?.(
        () => writes,
        () => undefined,
      )
      .map(({ message }) => message)

  test('warns if nothing maps `active`, with the remedy', () => {
    expect(problems(threeLines)).toEqual([
      expect.stringMatching(/nothing maps "active".*scim2tremolo.*tremolo2scim.*ignoreUnmapped/),
    ])
    expect(problems({ ...threeLines, ignoreUnmapped: 'active' })).toEqual([])
    expect(problems(builtInParams)).toEqual([])
  })

  test('warns if the workflow does not write the attribute of `active`', () => {
    expect(problems(tutorialParams, writesAll)).toEqual([])
    const none = { ...writesAll, ofUser: () => [] }
    expect(problems(tutorialParams, none)).toEqual([expect.stringMatching(/"enabled".*does not write/)])
  })
})

test.each(['/Schemas', '/ResourceTypes', `/Schemas/${core}`])('%s with a filter is 403', async (path) => {
  const { status, body } = await stack.send('GET', `${path}?filter=name%20eq%20%22x%22`)
  expect([status, body['status']]).toEqual([403, '403'])
})
