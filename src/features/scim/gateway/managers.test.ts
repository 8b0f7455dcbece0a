import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { enterpriseUserSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { deleteUser } from '#testing/databases/directory-writes.ts'
import { base, openGateway, People, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams, openStack } from '#testing/scim/scim-stack.ts'
import scimGateway from './scim-gateway.ts'

const enterprise = enterpriseUserSchema.id
const path = `${enterprise}:manager`
const patchOp = (...operations: JsonValue[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})
const managerIn = (resource: JsonObject): JsonObject | undefined =>
  (resource[enterprise] as JsonObject | undefined)?.['manager'] as JsonObject | undefined

let next = 1

describe('a manager is a user', () => {
  let stack: Awaited<ReturnType<typeof openStack>>
  beforeAll(async () => {
    stack = await openStack(scimGateway, { params: builtInParams })
  })
  afterAll(() => stack.close())

  const create = async (more: JsonObject = {}): Promise<string> => {
    const { status, body } = await stack.send('POST', '/Users', { userName: `user${next++}`, ...more })
    expect(status, JSON.stringify(body)).toBe(201)
    return String(body['id'])
  }
  const under = (value: string): JsonObject => ({ [enterprise]: { manager: { value } } })
  const read = async (id: string) => (await stack.send('GET', `/Users/${id}`)).body
  const shown = (id: string, displayName: string) => ({ value: id, $ref: `${base}/Users/${id}`, displayName })

  test('is shown with name and address, by POST, GET, PATCH and in lists', async () => {
    const boss = await create({ displayName: 'The Boss' })
    const other = await create({ name: { formatted: 'Ada Lovelace' } })
    const created = await stack.send('POST', '/Users', { userName: `user${next++}`, title: 'Dr', ...under(boss) })
    expect(managerIn(created.body)).toEqual(shown(boss, 'The Boss'))
    const id = String(created.body['id'])
    expect(managerIn(await read(id))).toEqual(shown(boss, 'The Boss'))
    // As Entra sends it.
    const patched = await stack.send('PATCH', `/Users/${id}`, patchOp({ op: 'Replace', path, value: other }))
    expect(managerIn(patched.body)).toEqual(shown(other, 'Ada Lovelace'))
    for (const filter of [`manager eq "${other}"`, `${path}.value eq "${other}"`, `${path}.displayName co "Ada"`]) {
      const { body } = await stack.send('GET', `/Users?filter=${encodeURIComponent(filter)}`)
      expect(body, filter).toMatchObject({ totalResults: 1, Resources: [{ id }] })
      expect(managerIn((body['Resources'] as JsonObject[])[0] ?? {})).toEqual(shown(other, 'Ada Lovelace'))
    }
    const few = await stack.send('GET', `/Users/${id}?attributes=title`)
    expect(few.body[enterprise]).toBeUndefined()
    // A client can send back what it read, which changes nothing.
    const runs = stack.audit.rows.length
    expect((await stack.send('PUT', `/Users/${id}`, await read(id))).status).toBe(200)
    expect(stack.audit.rows.length).toBe(runs)
    const attributes = (await stack.directory.lookupUserById(id))?.attributes.names()
    expect(attributes?.filter((name) => name.includes('manager'))).toEqual([`${path}.value`])
  })

  test('can be set by address alone', async () => {
    const [boss, id] = [await create({ displayName: 'B' }), await create()]
    const by = ($ref: string) => stack.send('PATCH', `/Users/${id}`, patchOp({ op: 'add', path, value: { $ref } }))
    expect(managerIn((await by(`${base}/Users/${boss}`)).body)).toEqual(shown(boss, 'B'))
    const second = await create({ displayName: 'C' })
    expect(managerIn((await by(`../Users/${second}`)).body)).toEqual(shown(second, 'C'))
    const wrong = await by('https://example.com/elsewhere')
    expect([wrong.status, wrong.body['scimType']]).toEqual([400, 'invalidValue'])
  })

  test('rejects an unknown one by name, and nothing changes', async () => {
    const id = await create({ title: 'Dr' })
    const nobody = { userName: `user${next++}`, ...under('nobody-42') }
    const answers = [
      await stack.send('POST', '/Users', nobody),
      await stack.send('PUT', `/Users/${id}`, { userName: 'x', ...under('nobody-42') }),
      await stack.send('PATCH', `/Users/${id}`, patchOp({ op: 'add', path, value: 'nobody-42' })),
    ]
    for (const { status, body } of answers) {
      expect([status, body['scimType']]).toEqual([400, 'invalidValue'])
      expect(body['detail']).toMatch(/nobody-42.*leave the manager out, or set unknownManager to accept/)
    }
    expect(await stack.directory.lookupUserByLogin(nobody.userName)).toBeUndefined()
    expect(await read(id)).toMatchObject({ title: 'Dr' })
  })

  test('clears a deleted one, and hides one that disappeared otherwise', async () => {
    const [boss, other] = [await create(), await create()]
    const reports = await Promise.all(Array.from({ length: 12 }, () => create(under(boss))))
    const staying = await create(under(other))
    expect((await stack.send('DELETE', `/Users/${boss}`, undefined, { 'if-match': '*' })).status).toBe(204)
    for (const id of reports) {
      expect((await stack.directory.lookupUserById(id))?.attributes.has(`${path}.value`)).toBe(false)
      expect((await read(id))['schemas']).not.toContain(enterprise)
    }
    expect(managerIn(await read(staying))?.['value']).toBe(other)
    await deleteUser(stack.directory, (await stack.directory.lookupUserById(other))?.userID ?? '')
    const after = await read(staying)
    expect(managerIn(after)).toBeUndefined()
    expect(after['schemas']).not.toContain(enterprise)
    // It can still be removed or replaced, and does not prevent other changes.
    const titled = await stack.send('PATCH', `/Users/${staying}`, patchOp({ op: 'add', path: 'title', value: 'Dr' }))
    expect(titled.status).toBe(200)
    expect((await stack.send('PATCH', `/Users/${staying}`, patchOp({ op: 'remove', path }))).status).toBe(200)
    expect((await stack.directory.lookupUserById(staying))?.attributes.has(`${path}.value`)).toBe(false)
  })

  test('unknownManager accept stores the manager as sent', async () => {
    const { send } = await stack.gateway({ ...builtInParams, unknownManager: 'accept' })
    const { status, body } = await send('POST', '/Users', { userName: `user${next++}`, ...under('E-17') })
    expect([status, managerIn(body)]).toEqual([201, { value: 'E-17' }])
  })
})

test('a page looks up each manager once, and not those on the page', async () => {
  const people = new People({ ownIds: true })
  people.add('boss', { displayName: ['B'] })
  people.add('chief', { displayName: ['C'] })
  for (let i = 0; i < 100; i++) people.add(`user${i}`, { title: ['x'], [`${path}.value`]: [i % 2 ? 'id-1' : 'id-2'] })
  const { send } = await openGateway(scimGateway, { people, params: builtInParams })
  const lookups = vi.spyOn(people, 'lookupUserById')
  const { body } = await send('GET', '/Users?count=100&filter=title%20pr')
  const shown = (body['Resources'] as JsonObject[]).map((user) => managerIn(user)?.['displayName'])
  expect(shown.filter((name) => name === 'B')).toHaveLength(50)
  expect(shown.filter((name) => name === 'C')).toHaveLength(50)
  expect(lookups).toHaveBeenCalledTimes(2)
  lookups.mockClear()
  await send('GET', '/Users?count=100')
  expect(lookups).not.toHaveBeenCalled()
  await send('GET', '/Users?count=100&attributes=userName&filter=title%20pr')
  expect(lookups).not.toHaveBeenCalled()
})

test('lines that map a manager otherwise still apply', async () => {
  const people = new People()
  people.add('ann', { boss: ['cn=boss,dc=example'] })
  const { send } = await openGateway(scimGateway, {
    people,
    params: {
      ...tutorialParams,
      tremolo2scim: [...(tutorialParams['tremolo2scim'] ?? []), `${path}.value`],
      [`tremolo2scim.${path}.value.source`]: 'boss',
    },
  })
  expect(managerIn((await send('GET', '/Users/ann')).body)).toEqual({ value: 'cn=boss,dc=example' })
})
