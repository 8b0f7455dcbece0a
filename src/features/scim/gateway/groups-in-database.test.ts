import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { Send } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams, openStack } from '#testing/scim/scim-stack.ts'
import { customTask } from '#testing/workflows/workflow-fixture.ts'
import scimGateway from './scim-gateway.ts'

const params = {
  ...builtInParams,
  groupCreateWorkflow: 'create-group',
  groupUpdateWorkflow: 'update-group',
  groupDeleteWorkflow: 'delete-group',
}
const named = { target: 'people', name: '$groupname$' }
const workflows = {
  'create-group': [customTask('tasks.CreateGroup', named)],
  'update-group': [customTask('tasks.UpdateGroup', { ...named, newName: '$newgroupname$' })],
  'delete-group': [customTask('tasks.DeleteGroup', named)],
}

let stack: Awaited<ReturnType<typeof openStack>>
/** Two gateways that share only the database. */
let sends: readonly Send[]
const ids: string[] = []

beforeAll(async () => {
  stack = await openStack(scimGateway, { params, workflows })
  sends = [stack.send, (await stack.gateway(params)).send]
  for (let i = 0; i < 60; i++) {
    ids.push(String((await stack.send('POST', '/Users', { userName: `user${i}` })).body['id']))
  }
})
afterAll(() => stack?.close())

const sendBy = (i: number): Send => sends[i % sends.length] ?? stack.send
const patchOp = (...operations: JsonValue[]): JsonObject => ({ Operations: operations })
const add = (...members: string[]) =>
  patchOp({ op: 'add', path: 'members', value: members.map((value) => ({ value })) })
const remove = (id: string) => patchOp({ op: 'Remove', path: 'members', value: [{ $ref: null, value: id }] })
const rename = (value: string) => patchOp({ op: 'replace', path: 'displayName', value })
const membersIn = (body: JsonObject) => ((body['members'] ?? []) as JsonObject[]).map(({ value }) => String(value))
const statuses = (answers: readonly { status: number }[]) => answers.map(({ status }) => status).sort()

/** The group after a PATCH, which itself is answered without a body. */
async function patched(address: string, body: JsonObject, send: Send = stack.send) {
  const { status } = await send('PATCH', address, body)
  expect(status).toBe(204)
  return send('GET', address)
}

async function groupsNamed(displayName: string) {
  const { body } = await stack.send('GET', `/Groups?filter=${encodeURIComponent(`displayName eq "${displayName}"`)}`)
  return body['Resources'] ?? []
}

let next = 1
async function create(...members: string[]) {
  const displayName = `group${next++}`
  const body = { displayName, members: members.map((value) => ({ value })) }
  const answer = await stack.send('POST', '/Groups', body)
  expect([answer.status, answer.body['detail']]).toEqual([201, undefined])
  return { displayName, address: `/Groups/${answer.body['id']}`, etag: String(answer.headers['etag']) }
}

describe('from several processes at once', () => {
  test('50 changes of different members of one group all take effect', async () => {
    const { address } = await create(...ids.slice(0, 25))
    const answers = await Promise.all(
      ids.slice(0, 50).map((id, i) => sendBy(i)('PATCH', address, i < 25 ? remove(id) : add(id))),
    )
    expect(new Set(statuses(answers))).toEqual(new Set([204]))
    expect(membersIn((await stack.send('GET', address)).body).sort()).toEqual(ids.slice(25, 50).sort())
  })

  test('a user that joins many groups at the same time is in all of them', async () => {
    const groups = await Promise.all(Array.from({ length: 12 }, () => create()))
    const [user = ''] = ids
    const answers = await Promise.all(groups.map(({ address }, i) => sendBy(i)('PATCH', address, add(user))))
    expect(new Set(statuses(answers))).toEqual(new Set([204]))
    for (const { address } of groups) expect(membersIn((await stack.send('GET', address)).body)).toEqual([user])
  })

  test('one of many with the same If-Match wins, whether it renames or changes members', async () => {
    const { address, etag } = await create()
    const answers = await Promise.all(
      ids.slice(0, 12).map((id, i) => {
        const change = i % 3 === 0 ? rename(`won${i}`) : add(id)
        return sendBy(i)('PATCH', address, change, { 'if-match': etag })
      }),
    )
    expect(statuses(answers)).toEqual([204, ...Array<number>(11).fill(412)])
  })

  test.each([0, 4, 8, 16])('a group that is renamed %i ms into a change of its members keeps them all', async (ms) => {
    const { address, displayName } = await create(...ids.slice(0, 20))
    const newName = `renamed ${displayName}`
    const change = patchOp(
      { op: 'remove', path: 'members', value: ids.slice(0, 10).map((value) => ({ value })) },
      { op: 'add', path: 'members', value: ids.slice(20).map((value) => ({ value })) },
    )
    const [changed, renamed] = await Promise.all([
      sendBy(0)('PATCH', address, change),
      wait(ms).then(() => sendBy(1)('PATCH', address, rename(newName))),
    ])
    expect([changed.status, renamed.status]).toEqual([204, 204])
    const { body } = await stack.send('GET', address)
    expect([body['displayName'], membersIn(body).sort()]).toEqual([newName, ids.slice(10).sort()])
    expect(await groupsNamed(displayName)).toEqual([])
  })

  test.each([0, 4, 8, 16])('a group that is deleted %i ms into a change of its members stays deleted', async (ms) => {
    const { address, displayName } = await create()
    const [changed, deleted] = await Promise.all([
      sendBy(0)('PATCH', address, add(...ids)),
      wait(ms).then(() => sendBy(1)('DELETE', address)),
    ])
    expect(deleted.status).toBe(204)
    expect([204, 404]).toContain(changed.status)
    expect(await groupsNamed(displayName)).toEqual([])
  })

  test('one of two requests that create one name succeeds', async () => {
    const displayName = `group${next++}`
    const answers = await Promise.all([
      sendBy(0)('POST', '/Groups', { displayName }),
      sendBy(1)('POST', '/Groups', { displayName: displayName.toUpperCase() }),
    ])
    expect(statuses(answers)).toEqual([201, 409])
  })

  test('a stale If-Match does not delete', async () => {
    const { address, etag } = await create()
    await sendBy(1)('PATCH', address, add(ids[0] ?? ''))
    expect((await stack.send('DELETE', address, undefined, { 'if-match': etag })).status).toBe(412)
    expect((await stack.send('DELETE', address)).status).toBe(204)
    expect((await stack.send('DELETE', address)).status).toBe(404)
  })
})

test('name and attributes: stored, found, changed and cleared', async () => {
  const { address } = await create(ids[0] ?? '')
  const displayName = `group${next++}`
  const renamed = await patched(address, patchOp({ op: 'replace', value: { displayName, externalId: 'E-1' } }))
  expect(renamed.body).toMatchObject({ displayName, externalId: 'E-1', members: [{ value: ids[0] }] })
  const byExternalId = `/Groups?filter=${encodeURIComponent('externalId eq "E-1"')}`
  expect((await stack.send('GET', byExternalId)).body).toMatchObject({ totalResults: 1 })
  const put = await stack.send('PUT', address, { displayName: displayName.toUpperCase() })
  expect([put.body['displayName'], put.body['externalId'], put.body['members']]).toEqual([
    displayName.toUpperCase(),
    undefined,
    undefined,
  ])
  expect((await stack.send('GET', byExternalId)).body).toMatchObject({ totalResults: 0 })
})

test("Entra's probe and the lookup by name", async () => {
  const { address, displayName } = await create(ids[0] ?? '')
  const find = async (filter: string) =>
    (await stack.send('GET', `/Groups?attributes=id&filter=${encodeURIComponent(filter)}`)).body['totalResults']
  const id = address.slice('/Groups/'.length)
  expect(await find(`id eq "${id}" and members eq "${ids[0]}"`)).toBe(1)
  expect(await find(`id eq "${id}" and members eq "${ids[1]}"`)).toBe(0)
  expect(await find(`displayName eq "${displayName.toUpperCase()}"`)).toBe(1)
  expect(await find(`members.value eq "${ids[0]}" and displayName eq "${displayName}"`)).toBe(1)
})

test('100 groups created at once by one client', async () => {
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => stack.send('POST', '/Groups', { displayName: `group${next++}` })),
  )
  expect(new Set(statuses(answers))).toEqual(new Set([201]))
})

test('spaces at the ends of a name are part of it, for its whole life', async () => {
  const [member = ''] = ids
  const created = await stack.send('POST', '/Groups', { displayName: ' spaced ', members: [{ value: member }] })
  expect([created.status, created.body['displayName'], membersIn(created.body)]).toEqual([201, ' spaced ', [member]])
  const address = `/Groups/${created.body['id']}`
  const renamed = await patched(address, rename(' wide '))
  expect([renamed.body['displayName'], membersIn(renamed.body)]).toEqual([' wide ', [member]])
  expect(membersIn((await patched(address, remove(member))).body)).toEqual([])
  expect((await stack.send('DELETE', address)).status).toBe(204)
})

test('an attribute of an extension is not the core attribute of the same name', async () => {
  const extension = {
    id: 'urn:example:G',
    attributes: [
      { name: 'members', type: 'complex', multiValued: true, subAttributes: [{ name: 'value', type: 'string' }] },
      { name: 'id', type: 'string' },
      { name: 'displayName', type: 'string' },
      { name: 'meta', type: 'string' },
    ],
  }
  const { send } = await stack.gateway({ ...params, groupSchema: JSON.stringify(extension) })
  const [first = '', second = ''] = ids
  const displayName = `group${next++}`
  const own = { members: [{ value: second }], id: 'own', displayName: 'Own', meta: 'm' }
  const created = await send('POST', '/Groups', { displayName, members: [{ value: first }], 'urn:example:G': own })
  expect(created).toMatchObject({ status: 201, body: { displayName, 'urn:example:G': own } })
  expect(membersIn(created.body)).toEqual([first])
  const address = `/Groups/${created.body['id']}`
  const cleared = await patched(address, patchOp({ op: 'remove', path: 'urn:example:G:members' }), send)
  expect(cleared.body['urn:example:G']).not.toHaveProperty('members')
  expect(membersIn(cleared.body)).toEqual([first])
  await send('PATCH', address, patchOp({ op: 'add', path: 'urn:example:G:members', value: [{ value: second }] }))
  const total = async (filter: string) =>
    (await send('GET', `/Groups?filter=${encodeURIComponent(filter)}`)).body['totalResults']
  for (const [name, value] of [
    ['members', second],
    ['id', 'own'],
    ['displayName', 'Own'],
    ['meta', 'm'],
  ]) {
    expect([name, await total(`urn:example:G:${name} eq "${value}"`)]).toEqual([name, 1])
  }
  expect(await total(`urn:example:G:members[value eq "${first}"]`)).toBe(0)
  expect(await total(`urn:example:G:id eq "${created.body['id']}"`)).toBe(0)
  expect(membersIn((await stack.send('GET', address)).body)).toEqual([first])
})
