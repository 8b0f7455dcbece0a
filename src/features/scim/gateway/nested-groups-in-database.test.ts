import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { base, type Send } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams, openStack } from '#testing/scim/scim-stack.ts'
import { customTask } from '#testing/workflows/workflow-fixture.ts'
import scimGateway from './scim-gateway.ts'

const params = {
  ...builtInParams,
  groupCreateWorkflow: 'create-group',
  groupUpdateWorkflow: 'update-group',
  groupDeleteWorkflow: 'delete-group',
  groupNestingWorkflow: 'nest-group',
}
const shared = { ...params, groupNames: 'shared', groupDisplayName: 'displayName' }
const named = { target: 'people', name: '$groupname$' }
const workflows = {
  'create-group': [customTask('tasks.CreateGroup', named)],
  'update-group': [customTask('tasks.UpdateGroup', { ...named, newName: '$newgroupname$' })],
  'delete-group': [customTask('tasks.DeleteGroup', named)],
  'nest-group': [customTask('tasks.NestGroup', { target: 'people' })],
}

let stack: Awaited<ReturnType<typeof openStack>>
/** Two gateways that share only the database, and two more that share names. */
let sends: readonly Send[]
let sharing: readonly Send[]
let plain: Send
const ids: string[] = []

beforeAll(async () => {
  stack = await openStack(scimGateway, { params, workflows })
  const { groupNestingWorkflow: _, ...without } = params
  plain = (await stack.gateway(without)).send
  sends = [stack.send, (await stack.gateway(params)).send]
  sharing = [(await stack.gateway(shared)).send, (await stack.gateway(shared)).send]
  for (let i = 0; i < 20; i++) {
    const user = { userName: `user${i}`, ...(i === 0 ? { displayName: 'Zero' } : {}) }
    ids.push(String((await stack.send('POST', '/Users', user)).body['id']))
  }
})
afterAll(() => stack?.close())

const sendBy = (i: number): Send => sends[i % sends.length] ?? stack.send
const patchOp = (...operations: JsonValue[]): JsonObject => ({ Operations: operations })
const add = (...members: JsonObject[]) => patchOp({ op: 'add', path: 'members', value: members })
const membersIn = (body: JsonObject) => ((body['members'] ?? []) as JsonObject[]).map(({ value }) => String(value))

let next = 1
async function create(...members: JsonObject[]): Promise<{ id: string; name: string; body: JsonObject }> {
  const name = `nest${next++}`
  const { status, body } = await stack.send('POST', '/Groups', { displayName: name, members })
  expect([status, body['detail']]).toEqual([201, undefined])
  return { id: String(body['id']), name, body }
}
const find = async (filter: string) =>
  ((await stack.send('GET', `/Groups?filter=${encodeURIComponent(filter)}`)).body['Resources'] as JsonObject[]).map(
    ({ id }) => id,
  )

describe('groups as members', () => {
  test('are shown with their type, address and name, and users with the groups that contain theirs', async () => {
    const [user = ''] = ids
    const inner = await create({ value: user })
    const middle = await create({ value: inner.id })
    const { id, body } = await create({ value: user }, { value: middle.id, type: 'Group' })
    expect(body['members']).toEqual([
      { value: user, $ref: `${base}/Users/${user}`, type: 'User', display: 'Zero' },
      { value: middle.id, $ref: `${base}/Groups/${middle.id}`, type: 'Group', display: middle.name },
    ])
    const expected = [
      [inner.id, 'direct'],
      [id, 'direct'],
      [middle.id, 'indirect'],
    ].toSorted()
    const typesOf = (resource: JsonObject | undefined) =>
      ((resource?.['groups'] ?? []) as JsonObject[]).map(({ value, type }) => [value, type]).toSorted()
    expect(typesOf((await stack.send('GET', `/Users/${user}`)).body)).toEqual(expected)
    const list = (await stack.send('GET', '/Users?count=5')).body['Resources'] as JsonObject[]
    expect(typesOf(list[0])).toEqual(expected)
    expect(list[1]?.['groups']).toBeUndefined()
    expect(await find(`members.value eq "${middle.id}"`)).toEqual([id])
    expect(await find(`members.value eq "${inner.id}"`)).toEqual([middle.id])
    expect(await find(`id eq "${id}" and members eq "${inner.id}"`)).toEqual([])
  })

  test.each(['externalId', 'name'])('have the ids of groupIdName: %s', async (groupIdName) => {
    const { send } = await stack.gateway({ ...params, groupIdName })
    const user = ids[groupIdName === 'name' ? 18 : 19] ?? ''
    const make = async (member: string) => {
      const name = `nest${next++}`
      const group = { displayName: name, externalId: `x-${name}`, members: [{ value: member }] }
      const { status, body } = await send('POST', '/Groups', group)
      const id = `group:${groupIdName === 'name' ? name : `x-${name}`}`
      expect([status, body['id'], membersIn(body)]).toEqual([201, id, [member]])
      return id
    }
    const inner = await make(user)
    const middle = await make(inner)
    const outer = await make(middle)
    const { groups } = (await send('GET', `/Users/${user}`)).body
    expect((groups as JsonObject[]).map(({ value, $ref, type }) => [value, $ref, type]).toSorted()).toEqual(
      [
        [inner, `${base}/Groups/${inner}`, 'direct'],
        [middle, `${base}/Groups/${middle}`, 'indirect'],
        [outer, `${base}/Groups/${outer}`, 'indirect'],
      ].toSorted(),
    )
    for (const [filter, found] of [
      [`members.value eq "${inner}"`, middle],
      [`members.value eq "${user}"`, inner],
      [`id eq "${outer}"`, outer],
    ] as const) {
      const { body } = await send('GET', `/Groups?filter=${encodeURIComponent(filter)}`)
      expect([filter, (body['Resources'] as JsonObject[]).map(({ id }) => id)]).toEqual([filter, [found]])
    }
    expect((await send('PATCH', `/Groups/${inner}`, add({ value: outer }))).body).toMatchObject({ status: '400' })
    const remove = patchOp({ op: 'remove', path: `members[value eq "${middle}"]` })
    expect((await send('PATCH', `/Groups/${outer}`, remove)).status).toBe(204)
    expect(membersIn((await send('GET', `/Groups/${outer}`)).body)).toEqual([])
    expect((await send('DELETE', `/Groups/${middle}`)).status).toBe(204)
    expect((await send('GET', `/Groups/${middle}`)).status).toBe(404)
  })

  test('join and leave by every form of reference, and a PUT keeps them', async () => {
    const [a, b, c] = [await create(), await create(), await create()]
    const { id } = await create({ value: ids[1] ?? '' })
    const address = `/Groups/${id}`
    const sent = add({ value: a.id }, { value: b.id, $ref: `../Groups/${b.id}` }, { value: c.id, type: 'group' })
    expect((await stack.send('PATCH', address, sent)).status).toBe(204)
    const { body } = await stack.send('GET', address)
    expect(membersIn(body)).toEqual([ids[1], a.id, b.id, c.id])
    const before = (await stack.send('GET', address)).headers['etag']
    expect((await stack.send('PUT', address, body)).status).toBe(200)
    expect((await stack.send('GET', address)).headers['etag']).toBe(before)
    const remove = patchOp(
      { op: 'remove', path: `members[value eq "${a.id}"]` },
      { op: 'remove', path: 'members', value: [{ value: b.id }] },
    )
    expect((await stack.send('PATCH', address, remove)).status).toBe(204)
    expect(membersIn((await stack.send('GET', address)).body)).toEqual([ids[1], c.id])
    expect((await stack.send('DELETE', `/Groups/${c.id}`)).status).toBe(204)
    expect(membersIn((await stack.send('GET', address)).body)).toEqual([ids[1]])
  })

  test.each<[string, (group: string, user: string) => JsonObject, RegExp]>([
    ['a group sent as a user', (group) => ({ value: group, type: 'User' }), /no user/],
    ['a user sent as a group', (_, user) => ({ value: user, $ref: `x/Groups/${user}` }), /no group/],
    ['types that contradict', (group) => ({ value: group, type: 'User', $ref: `../Groups/${group}` }), /\$ref/],
    ['another type', (group) => ({ value: group, type: 'Device' }), /User or Group/],
  ])('%s is rejected, and no change is partial', async (_name, member, reason) => {
    const inner = await create()
    const { id } = await create()
    const sent = add({ value: ids[2] ?? '' }, member(inner.id, ids[0] ?? ''))
    const { status, body } = await stack.send('PATCH', `/Groups/${id}`, sent)
    expect([status, body['scimType'], body['detail']]).toEqual([400, 'invalidValue', expect.stringMatching(reason)])
    expect(membersIn((await stack.send('GET', `/Groups/${id}`)).body)).toEqual([])
  })

  test('a cycle is rejected, and no change is partial', async () => {
    const a = await create()
    const b = await create({ value: a.id })
    const c = await create({ value: b.id })
    for (const member of [a.id, b.id, c.id]) {
      const { status, body } = await stack.send(
        'PATCH',
        `/Groups/${a.id}`,
        add({ value: ids[0] ?? '' }, { value: member }),
      )
      const text = /^members: the group .* would contain itself.*Leave the member out/
      expect([status, body['scimType'], body['detail']]).toEqual([400, 'invalidValue', expect.stringMatching(text)])
    }
    expect(membersIn((await stack.send('GET', `/Groups/${a.id}`)).body)).toEqual([])
  })

  test('if two gateways close a cycle at the same time, one gets an error', async () => {
    for (let round = 0; round < 5; round++) {
      const [a, b] = [await create(), await create()]
      const answers = await Promise.all([
        sendBy(0)('PATCH', `/Groups/${a.id}`, add({ value: b.id })),
        sendBy(1)('PATCH', `/Groups/${b.id}`, add({ value: a.id })),
      ])
      expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 400])
    }
  })

  test('without the workflow they are rejected with the reason', async () => {
    const inner = await create()
    const { id } = await create()
    const { status, body } = await plain('PATCH', `/Groups/${id}`, add({ value: inner.id }))
    expect([status, body['scimType']]).toEqual([400, 'invalidValue'])
    expect(body['detail']).toContain('groupNestingWorkflow')
  })

  test('a cycle of bulk references: each is created, and the operation that closes it is rejected', async () => {
    const operation = (bulkId: string, member: string) => ({
      method: 'POST',
      path: '/Groups',
      bulkId,
      data: { displayName: `circle ${bulkId}`, members: [{ value: `bulkId:${member}`, type: 'Group' }] },
    })
    const { body } = await stack.send('POST', '/Bulk', { Operations: [operation('x', 'y'), operation('y', 'x')] })
    const results = body['Operations'] as JsonObject[]
    expect(results.map(({ bulkId, status }) => [bulkId, status])).toEqual([
      ['x', '201'],
      ['y', '400'],
    ])
    expect(JSON.stringify(results[1]?.['response'])).toMatch(/was created.*itself/)
    const [x] = await find('displayName eq "circle x"')
    const [y] = await find('displayName eq "circle y"')
    expect(membersIn((await stack.send('GET', `/Groups/${x}`)).body)).toEqual([y])
    expect(membersIn((await stack.send('GET', `/Groups/${y}`)).body)).toEqual([])
  })
})

describe('names', () => {
  test('if two gateways create identical groups at the same time, one is created', async () => {
    for (let round = 0; round < 10; round++) {
      const group = { displayName: `same ${round}`, externalId: 'x' }
      const answers = await Promise.all([0, 1].map((n) => sendBy(n)('POST', '/Groups', group)))
      expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409])
    }
  })

  test('with shared names, two groups have one displayName and different ids', async () => {
    const [send = stack.send] = sharing
    const group = (externalId: string) => ({ displayName: 'Sales', externalId, members: [{ value: ids[3] ?? '' }] })
    const answers = await Promise.all(
      ['1', '2', '3'].map((n, i) => (sharing[i % 2] ?? send)('POST', '/Groups', group(n))),
    )
    expect(answers.map(({ status, body }) => [status, body['displayName']])).toEqual(Array(3).fill([201, 'Sales']))
    expect(new Set(answers.map(({ body }) => body['id'])).size).toBe(3)
    const search = async (name: string) =>
      (await send('GET', `/Groups?filter=${encodeURIComponent(`displayName eq "${name}"`)}`)).body['totalResults']
    expect(await search('Sales')).toBe(3)
    const [first] = answers
    const rename = patchOp({ op: 'replace', path: 'displayName', value: 'Marketing' })
    expect((await send('PATCH', `/Groups/${first?.body['id']}`, rename)).status).toBe(204)
    expect([await search('Sales'), await search('Marketing')]).toEqual([2, 1])
    expect((await send('GET', `/Groups/${answers[1]?.body['id']}`)).body).toMatchObject({
      members: [{ value: ids[3] }],
    })
  })
})
