import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { unaudited } from '#identity/entry-changes.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute } from '#protocols/scim/schema/schema.ts'
import { freshFile } from '#testing/databases/databases.ts'
import { dry, enterprise, openDryRuns, patchOf, provision, workflows } from '#testing/scim/dry-run-fixture.ts'
import { customTask, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import { type dryRunMessage, isDryRun } from './dry-run.ts'
import scimGateway from './scim-gateway.ts'

const device = {
  schema: new ResourceSchema({
    id: 'urn:example:Device',
    name: 'Device',
    description: '',
    attributes: [
      attribute('serial', '', { required: true, uniqueness: 'server' }),
      attribute('tag', '', { uniqueness: 'server' }),
    ],
  }),
  endpoint: '/Devices',
  nameAttribute: 'serial',
  target: 'devices',
  workflow: 'write-device',
  deleteWorkflow: undefined,
} as const

type Message = z.infer<typeof dryRunMessage>

const open = async (options: Parameters<typeof openDryRuns>[2] = {}) =>
  openDryRuns(scimGateway, await freshFile(), options)

describe('dry runs', () => {
  test('leave a deleted user deleted that the change would bring back as it is', async () => {
    const deactivate: TaskSpec[] = [
      { taskType: 'addAttribute', name: 'active', value: 'true', remove: true },
      { taskType: 'addAttribute', name: 'active', value: 'false', remove: false },
      { taskType: 'provision', target: 'people', sync: true, attributes: ['active'] },
    ]
    const { send, dump } = await open({
      workflows: { 'sync-user': [provision('people')], 'delete-user': deactivate },
    })
    const { body } = await send('POST', '/Users', { userName: 'ann', active: true })
    const address = `/Users/${body['id']}`
    expect((await send('DELETE', address)).status).toBe(204)
    const before = await dump()
    const sent = { userName: 'ann', active: false }
    const shown = await send('POST', '/Users', sent, dry)
    expect([shown.status, shown.body]).toMatchObject([
      200,
      { complete: false, runs: [], detail: 'The deleted user would be shown again.' },
    ])
    expect(await dump()).toEqual(before)
    expect((await send('GET', address)).status).toBe(404)
    expect((await send('POST', '/Users', sent)).status).toBe(201)
    expect((await send('GET', address)).body).toMatchObject({ active: false })
  })

  test('have the errors of the change', async () => {
    const { send, dump, directory } = await open()
    const { body } = await send('POST', '/Users', { userName: 'ann', title: 'Dr', active: true })
    await send('POST', '/Groups', { displayName: 'crew' })
    const [crew] = (await directory.searchGroups({ offset: 0, limit: 1 })).items
    const user = `/Users/${body['id']}`
    const noMember = patchOf({ op: 'add', path: 'members', value: [{ value: 'nobody' }] })
    for (const [method, path, sent, status, headers] of [
      ['POST', '/Users', { userName: 'ANN' }, 409],
      ['POST', '/Users', { title: 'x' }, 400],
      ['POST', '/Users', { userName: 'x', active: 'maybe' }, 400],
      ['POST', '/Users', { userName: 'x', [enterprise]: { manager: { value: 'nobody' } } }, 400],
      ['PUT', '/Users/nobody', { userName: 'x' }, 404],
      ['PATCH', user, patchOf({ op: 'move', path: 'title', value: 'x' }), 400],
      ['PATCH', user, patchOf({ op: 'replace', path: 'titel', value: 'x' }), 400],
      ['PATCH', user, patchOf({ op: 'replace', path: 'title', value: 'x' }), 412, { 'if-match': 'W/"other"' }],
      ['DELETE', user, undefined, 412, { 'if-match': 'W/"other"' }],
      ['DELETE', '/Users/nobody', undefined, 404],
      ['POST', '/Groups', { displayName: 'Crew' }, 409],
      ['POST', '/Groups', { displayName: 'new', members: [{ value: 'nobody' }] }, 400],
      ['PATCH', `/Groups/${crew?.id}`, noMember, 400],
      [
        'PATCH',
        `/Groups/${crew?.id}`,
        patchOf({ op: 'add', path: 'members', value: [{ value: crew?.id ?? '' }] }),
        400,
      ],
      ['DELETE', '/Groups/nobody', undefined, 404],
      ['POST', '/Bulk', { schemas: [], Operations: 'none' }, 400],
      ['PUT', '/Users', undefined, 405],
      ['POST', '/Nothing', {}, 404],
    ] as readonly (readonly [string, string, JsonObject | undefined, number, Record<string, string>?])[]) {
      const rows = await dump()
      const shown = await send(method, path, sent, { ...headers, ...dry })
      const title = `${method} ${path} ${JSON.stringify(sent)}`
      expect([shown.status, await dump()], `${title} ${JSON.stringify(shown.body)}`).toEqual([status, rows])
      expect((await send(method, path, sent, headers)).body, title).toEqual(shown.body)
    }
  })

  test('name what is unknown, and what would wait', async () => {
    const approval: TaskSpec = {
      taskType: 'approval',
      label: 'Delete it',
      emailTemplate: 'Please decide.',
      mailAttr: 'mail',
      failureEmailSubject: 'No',
      failureEmailMsg: 'No',
      approvers: [{ scope: 'filter', constraint: '(uid=boss)' }],
      onSuccess: [{ taskType: 'delete', target: 'people' }],
    }
    let ran = 0
    const { send, dump } = await open({
      workflows: {
        'sync-user': [provision('people'), { taskType: 'own' }],
        'delete-user': [approval],
      },
      tasks: {
        own: () => {
          ran++
          return { kind: 'next' }
        },
      },
    })
    const { body } = await send('POST', '/Users', { userName: 'ann' })
    expect([ran, typeof body['id']]).toEqual([1, 'string'])
    const before = await dump()
    const changed = await send('PATCH', `/Users/${body['id']}`, patchOf({ op: 'add', path: 'title', value: 'Dr' }), dry)
    expect(changed.body).toMatchObject({
      complete: false,
      waits: false,
      runs: [{ workflow: 'sync-user', subject: 'ann', steps: [{ kind: 'user' }, { kind: 'unforeseen', task: 'own' }] }],
    })
    const removed = await send('DELETE', `/Users/${body['id']}`, undefined, dry)
    expect(removed.body).toMatchObject({
      complete: true,
      waits: true,
      runs: [
        {
          steps: [
            { kind: 'approval', label: 'Delete it' },
            { kind: 'user', action: 'delete', name: 'ann' },
          ],
        },
      ],
    })
    expect([ran, await dump()]).toEqual([1, before])
  })

  test('preview each operation of a bulk request', async () => {
    const { send, dump, entries } = await open({ params: { journal: '10' } })
    const { body } = await send('POST', '/Users', { userName: 'ann' })
    const before = await dump()
    const post = (bulkId: string, path: string, data: JsonObject) => ({ method: 'POST', path, bulkId, data })
    const title = patchOf({ op: 'add', path: 'title', value: 'Dr' })
    const request = {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
      Operations: [
        post('b', '/Users', { userName: 'bob' }),
        post('c', '/Groups', { displayName: 'crew', members: [{ value: 'bulkId:b' }] }),
        post('d', '/Users', { userName: 'ann' }),
        { method: 'PATCH', path: '/Users/bulkId:d', data: title },
        { method: 'PATCH', path: '/Users/bulkId:x', data: title },
        { method: 'PATCH', path: `/Users/${body['id']}`, data: title },
        { method: 'DELETE', path: `/Users/${body['id']}` },
        { method: 'DELETE', path: `/Users/${body['id']}?dryRun=false` },
      ],
    }
    const shown = await send('POST', '/Bulk', request, dry)
    const outcomes = (shown.body['Operations'] as JsonObject[]).map(({ status, response, ...rest }) => [
      status,
      (response as JsonObject)['complete'],
      rest['location'] === undefined ? '' : 'at',
    ])
    expect(outcomes).toEqual([
      ['200', true, ''],
      ['200', false, ''],
      ['409', undefined, ''],
      ['409', undefined, ''],
      ['400', undefined, ''],
      ['200', true, 'at'],
      ['200', false, 'at'],
      ['404', undefined, 'at'],
    ])
    const first = await send('POST', '/Bulk', { ...request, failOnErrors: 1 }, dry)
    expect(first.body['Operations']).toHaveLength(3)
    expect(await dump()).toEqual(before)
    expect(entries.map(({ dryRun, workflows: runs }) => [dryRun, runs.length])).toEqual([
      [undefined, 1],
      [true, 0],
      [true, 0],
    ])
  })

  test('are not complete where the change would fail after its run', async () => {
    const never = (...tasks: readonly TaskSpec[]): TaskSpec[] => [
      { taskType: 'ifAttrExists', name: 'never', onSuccess: tasks },
    ]
    const keepsActive = ['false', 'true'].map((value) => ({
      taskType: 'addAttribute',
      name: 'active',
      value,
      remove: value === 'false',
    }))
    const { send, dump, directory } = await open({
      workflows: {
        'sync-user': [
          ...keepsActive,
          { taskType: 'ifAttrExists', name: 'title', onFailure: [provision('people')] },
          ...never(provision('second')),
        ],
        'delete-user': never({ taskType: 'delete', target: 'people' }),
        'change-members': never(...(workflows['change-members'] ?? [])),
        'create-group': never(...(workflows['create-group'] ?? [])),
        'update-group': never(...(workflows['update-group'] ?? [])),
        'nest-group': never(...(workflows['nest-group'] ?? [])),
      },
    })
    const ann = `/Users/${(await send('POST', '/Users', { userName: 'ann', active: true })).body['id']}`
    for (const name of ['crew', 'staff']) await directory.createGroup(name, {}, unaudited)
    const [crew, staff] = (await directory.searchGroups({ offset: 0, limit: 2 })).items.map(({ id }) => id)
    const members = (value: string) => patchOf({ op: 'add', path: 'members', value: [{ value }] })
    const group = `/Groups/${crew}`
    for (const [method, path, body] of [
      ['POST', '/Users', { userName: 'bob', title: 'Dr' }],
      ['PATCH', ann, patchOf({ op: 'replace', path: 'title', value: 'Dr' })],
      ['PATCH', ann, patchOf({ op: 'replace', path: 'active', value: false })],
      ['PUT', ann, { userName: 'ann', active: false }],
      ['DELETE', ann, undefined],
      ['POST', '/Groups', { displayName: 'new' }],
      ['PATCH', group, patchOf({ op: 'replace', path: 'displayName', value: 'team' })],
      ['PATCH', group, members(ann.slice('/Users/'.length))],
      ['PATCH', group, members(String(staff))],
      // Last, since it leaves an active user.
      ['POST', '/Users', { userName: 'bob', active: false }],
    ] as const) {
      const before = await dump()
      const shown = await send(method, path, body, dry)
      const title = `${method} ${path} ${JSON.stringify([body, shown.body])}`
      expect([shown.status, shown.body['complete'], await dump()], title).toEqual([200, false, before])
      const [, detail] = /^The change would fail after its run: (.*)$/.exec(String(shown.body['detail'])) ?? []
      const { status, body: error } = await send(method, path, body)
      expect([status, error['detail']], title).toEqual([500, detail])
    }
  })

  test('of operations that depend on each other are not complete', async () => {
    const { send, dump, directory } = await open({
      workflows: {
        'write-device': [{ taskType: 'provision', target: 'devices', sync: true }],
        'nest-group': [customTask('tasks.NestGroup', { target: 'people' })],
      },
      params: { resourceTypes: ['device'] },
      types: { device },
    })
    const ann = String((await send('POST', '/Users', { userName: 'ann' })).body['id'])
    const eve = String((await send('POST', '/Users', { userName: 'eve' })).body['id'])
    for (const name of ['crew', 'staff']) await directory.createGroup(name, {}, unaudited)
    const [crew = '', staff = ''] = (await directory.searchGroups({ offset: 0, limit: 2 })).items.map(({ id }) => id)
    const before = await dump()
    let next = 0
    const post = (path: string, data: JsonObject, bulkId = `b${next++}`) => ({ method: 'POST', path, bulkId, data })
    const patch = (path: string, ...operations: JsonValue[]) => ({
      method: 'PATCH',
      path,
      data: patchOf(...operations),
    })
    const title = { op: 'add', path: 'title', value: 'Dr' }
    const manager = { op: 'add', path: `${enterprise}:manager.value`, value: ann }
    const join = (value: JsonValue) => ({ op: 'add', path: 'members', value: [{ value }] })
    const preview = async (...operations: readonly JsonObject[]) => {
      const schemas = ['urn:ietf:params:scim:api:messages:2.0:BulkRequest']
      const { body } = await send('POST', '/Bulk', { schemas, Operations: [...operations] }, dry)
      return (body['Operations'] as { status: string; response: JsonObject }[]).map(({ status, response }) =>
        status === '200' ? response['complete'] : status,
      )
    }
    const tagged = (serial: string, tag: string) => post('/Devices', { serial, tag })
    expect(await preview(tagged('D-1', 'one'), tagged('D-2', 'two'))).toEqual([true, true])
    expect(await preview(tagged('D-1', 'one'), tagged('D-2', 'ONE'))).toEqual([true, false])
    expect(await preview(post('/Users', { userName: 'bob' }), post('/Users', { userName: 'BOB' }))).toEqual([
      true,
      false,
    ])
    expect(await preview(post('/Groups', { displayName: 'x' }), post('/Groups', { displayName: 'X' }))).toEqual([
      true,
      false,
    ])
    // The manager, the member and the group above may be another's by then.
    expect(await preview({ method: 'DELETE', path: `/Users/${ann}` }, patch(`/Users/${eve}`, manager))).toEqual([
      true,
      false,
    ])
    expect(await preview(patch(`/Users/${eve}`, manager), { method: 'DELETE', path: `/Users/${ann}` })).toEqual([
      true,
      false,
    ])
    expect(await preview(patch(`/Groups/${crew}`, join(staff)), patch(`/Groups/${staff}`, join(crew)))).toEqual([
      true,
      false,
    ])
    // One that refers to another is previewed as far as it goes, and later ones with it.
    const bob = post('/Users', { userName: 'bob' }, 'bob')
    const withBob = { displayName: 'new', members: [{ value: 'bulkId:bob' }] }
    expect(await preview(bob, post('/Groups', withBob), post('/Groups', { displayName: 'new' }))).toEqual([
      true,
      false,
      false,
    ])
    expect(await preview(bob, post('/Groups', { ...withBob, displayName: 'crew' }))).toEqual([true, '409'])
    expect(
      await preview(bob, patch(`/Groups/${crew}`, join('bulkId:bob')), patch(`/Groups/${crew}`, join(ann))),
    ).toEqual([true, false, false])
    // What is referred to is created first.
    const managed = { userName: 'mia', [enterprise]: { manager: { value: 'bulkId:bob' } } }
    expect(await preview(post('/Users', managed), post('/Users', { userName: 'BOB' }), bob)).toEqual([
      false,
      false,
      true,
    ])
    expect(await preview(patch(`/Users/${ann}`, title), patch(`/Users/${eve}`, title))).toEqual([true, true])
    expect(await dump()).toEqual(before)
  })

  test('show at most what has room, and say so', async () => {
    const { send, dump } = await open({
      workflows: { 'change-members': workflows['change-members'] ?? [] },
    })
    const users: JsonObject[] = []
    for (let n = 0; n < 4; n++) users.push((await send('POST', '/Users', { userName: `user${n}` })).body)
    const members = users.map(({ id }) => ({ value: id ?? '' }))
    const before = await dump()
    const shown = await send('POST', '/Groups', { displayName: 'crew', members }, dry)
    const { runs, complete } = shown.body as unknown as Message
    expect([runs.map(({ subject }) => subject), complete]).toEqual([
      ['group crew', 'user0', 'user1', 'user2', 'user3'],
      true,
    ])
    const { body } = await send('POST', '/Groups', { displayName: 'inner' }, dry)
    expect(body).toMatchObject({ complete: true })
    expect(await dump()).toEqual(before)
    const inner = (await send('POST', '/Groups', { displayName: 'inner' })).body
    const outer = await send('POST', '/Groups', { displayName: 'outer', members: [{ value: inner['id'] ?? '' }] }, dry)
    expect(outer.body).toMatchObject({ complete: false, detail: expect.stringMatching(/does not exist yet/) })
  })

  test('show what the client can read, and say what they leave out', async () => {
    const { send } = await open({ params: { dryRun: 'allow' } })
    const ann = `/Users/${(await send('POST', '/Users', { userName: 'ann', title: 'Dr' })).body['id']}`
    const left = { complete: false, detail: 'Effects that this client cannot read are left out.' }
    const title = await send('PATCH', ann, patchOf({ op: 'replace', path: 'title', value: 'Prof' }), dry)
    expect(title.body).toMatchObject({
      ...left,
      runs: [{ steps: [{ kind: 'user', target: 'people', attributes: [{ name: 'title', after: ['Prof'] }] }] }],
    })
    expect(JSON.stringify(title.body)).not.toContain('second')
    expect((await send('DELETE', ann, undefined, dry)).body).toMatchObject({
      ...left,
      runs: [{ steps: [{ kind: 'user', action: 'delete', target: 'people' }] }],
    })
    expect((await send('POST', '/Groups', { displayName: 'crew' }, dry)).body).toMatchObject(left)
    const alone = await open({
      workflows: { 'sync-user': [provision('people')], 'create-group': (workflows['create-group'] ?? []).slice(0, 1) },
      params: { dryRun: 'allow' },
    })
    for (const [path, body] of [
      ['/Users', { userName: 'bob', title: 'Dr', password: 'correct horse battery' }],
      ['/Groups', { displayName: 'crew' }],
    ] as const)
      expect((await alone.send('POST', path, body, dry)).body).toMatchObject({ complete: true })
  })

  test('are refused where the gateway does not offer them', async () => {
    const { send, dump } = await open({ params: { dryRun: 'refuse' } })
    const before = await dump()
    for (const [path, headers] of [
      ['/Users', dry],
      ['/Users?dryRun=true', {}],
    ] as const) {
      const { status, body } = await send('POST', path, { userName: 'ann' }, headers)
      expect([status, body['scimType']]).toEqual([400, 'invalidValue'])
    }
    expect(await dump()).toEqual(before)
    expect((await send('POST', '/Users?dryRun=false', { userName: 'ann' })).status).toBe(201)
  })

  test('are not requested in a body, even with `ignoreUnmapped`', async () => {
    const { send, dump } = await open({ params: { ignoreUnmapped: ['dryRun'] } })
    const user = (await send('POST', '/Users', { userName: 'ann' })).body
    const group = (await send('POST', '/Groups', { displayName: 'crew' })).body
    const before = await dump()
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:BulkRequest']
    const post = { method: 'POST', path: '/Users', bulkId: 'b', data: { userName: 'bob' } }
    const title = { op: 'add', path: 'title', value: 'Dr' }
    for (const [method, path, body] of [
      ['POST', '/Bulk', { schemas, dryRun: true, Operations: [post] }],
      ['POST', '/Bulk', { schemas, 'Dry-Run': false, Operations: [post] }],
      ['POST', '/Bulk', { schemas, Operations: [post, { ...post, bulkId: 'c', dry_run: 'true' }] }],
      ['PATCH', `/Users/${user['id']}`, { ...patchOf(title), dryRun: true }],
      ['PATCH', `/Users/${user['id']}`, patchOf({ ...title, dryrun: true })],
      [
        'PATCH',
        `/Groups/${group['id']}`,
        { ...patchOf({ op: 'replace', path: 'displayName', value: 'x' }), dryRun: true },
      ],
      ['POST', '/Users', { userName: 'bob', dryRun: true }],
      ['POST', '/Users', { userName: 'bob', [enterprise]: { 'X-Dry-Run': true } }],
      ['PUT', `/Users/${user['id']}`, { userName: 'ann', title: 'Dr', dry_run: 'true' }],
      ['PATCH', `/Users/${user['id']}`, patchOf({ op: 'add', value: { title: 'Dr', dryRun: true } })],
      ['PATCH', `/Users/${user['id']}`, patchOf(title, { op: 'add', path: 'dryRun', value: true })],
      ['POST', '/Groups', { displayName: 'staff', dryRun: true }],
      ['PUT', `/Groups/${group['id']}`, { displayName: 'staff', dryRun: true }],
      ['PATCH', `/Groups/${group['id']}`, patchOf({ op: 'replace', value: { displayName: 'x', dryRun: true } })],
    ] as const) {
      const { status, body: answer } = await send(method, path, body)
      expect([status, answer['scimType'], answer['detail']], JSON.stringify(body)).toEqual([
        400,
        'invalidValue',
        expect.stringMatching(/has no effect in a body\. Nothing was changed\./),
      ])
    }
    const data = { ...patchOf(title), dryRun: true }
    const operation = { method: 'PATCH', path: `/Users/${user['id']}`, data }
    const create = { ...post, data: { ...post.data, dryRun: true } }
    const { body } = await send('POST', '/Bulk', { schemas, Operations: [operation, create] })
    const refused = { status: '400', response: { scimType: 'invalidValue' } }
    expect(body['Operations']).toMatchObject([refused, refused])
    expect(await dump()).toEqual(before)
  })

  test('do nothing for a value that is not understood', async () => {
    const { send, dump } = await open()
    const before = await dump()
    for (const [value, query] of [
      ['yes', ''],
      ['', ''],
      ['TRUE', ''],
      ['true, true', ''],
      ['true', 'dryRun=false'],
      ['false', 'dryRun=true'],
      [undefined, 'dryRun'],
      [undefined, 'dryrun=True'],
      [undefined, 'dryRun=false&dryRun=true'],
      [undefined, 'dryRun=true&dry-run=all'],
    ] as const) {
      const headers: Record<string, string> = value === undefined ? {} : { 'dry-run': value }
      const { status, body } = await send('POST', `/Users?${query}`, { userName: 'ann' }, headers)
      const { scimType, detail } = body
      expect([status, scimType, detail], `${value} ${query}`).toEqual([
        400,
        'invalidValue',
        expect.stringMatching(/^Dry-Run: /),
      ])
    }
    expect(await dump()).toEqual(before)
  })
})

describe('a dry run is recognized', () => {
  const read = (headers: Record<string, string | string[]>, query = '') =>
    isDryRun({ headers, query: new URLSearchParams(query) })

  test.each([
    [{ 'dry-run': 'true' }, ''],
    [{ 'x-dry-run': 'true' }, ''],
    [{ dryrun: 'true' }, ''],
    [{ dry_run: 'true' }, ''],
    [{}, 'dryRun=true'],
    [{}, 'DRYRUN=true'],
    [{}, 'dry-run=true'],
    [{}, 'attributes=id&%64ryRun=true'],
    [{ 'dry-run': ['true', 'true'] }, 'dryRun=true'],
  ])('in %j and %j', (headers, query) => {
    expect(read(headers, query)).toBe(true)
  })

  test.each([
    [{}, ''],
    [{ 'dry-run': 'false' }, 'dryRun=false'],
    [{ prefer: 'dry-run' }, 'filter=dryRun'],
  ])('not in %j and %j', (headers, query) => {
    expect(read(headers, query)).toBe(false)
  })

  test('never by half', () => {
    expect(() => read({ 'dry-run': ['true', 'false'] })).toThrow('differ')
    expect(() => read({ 'x-dry-run': 'no' }, 'dryRun=true')).toThrow('neither true nor false')
  })
})
