import { afterEach, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { readSchema } from '#protocols/scim/schema/read-schema.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import type { ResourceType } from '#sdk/module/resource-type.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { base, type Send } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams, openStack } from '#testing/scim/scim-stack.ts'
import scimGateway from './scim-gateway.ts'

function schemaOf(document: JsonObject) {
  const schema = readSchema(document, (path, message) => {
    throw new Error(`${path.join('.')}: ${message}`)
  })
  if (schema === undefined) throw new Error('no schema')
  return schema
}

const urn = 'urn:example:Device'
const support = 'urn:example:Support'

const device: ResourceType = {
  schema: new ResourceSchema(
    schemaOf({
      id: urn,
      name: 'Device',
      description: 'A device',
      attributes: [
        { name: 'serial', required: true, uniqueness: 'server' },
        { name: 'model', mutability: 'immutable' },
        { name: 'inventory', uniqueness: 'server', caseExact: true },
        { name: 'active', type: 'boolean' },
        { name: 'cores', type: 'integer' },
        { name: 'weight', type: 'decimal' },
        { name: 'boughtAt', type: 'dateTime' },
        { name: 'certificate', type: 'binary' },
        { name: 'pin', mutability: 'writeOnly' },
        { name: 'note', returned: 'request' },
        { name: 'state', mutability: 'readOnly' },
        { name: 'members', multiValued: true },
        { name: 'owner', type: 'reference', referenceTypes: ['User', 'Group'] },
        { name: 'manual', type: 'reference', referenceTypes: ['external'] },
        {
          name: 'place',
          type: 'complex',
          subAttributes: [{ name: 'building' }, { name: 'desk', uniqueness: 'server' }],
        },
        {
          name: 'disks',
          type: 'complex',
          multiValued: true,
          subAttributes: [
            { name: 'value', required: true },
            { name: 'size', type: 'integer' },
            { name: 'primary', type: 'boolean' },
          ],
        },
      ],
    }),
    [schemaOf({ id: support, name: 'Support', required: true, attributes: [{ name: 'level', required: true }] })],
  ),
  endpoint: '/Devices',
  nameAttribute: 'serial',
  target: 'devices',
  workflow: 'write-device',
  deleteWorkflow: 'delete-device',
}

const role: ResourceType = {
  schema: new ResourceSchema(
    schemaOf({
      id: 'urn:example:Role',
      name: 'Role',
      attributes: [
        { name: 'name', required: true, uniqueness: 'server' },
        { name: 'groups', multiValued: true },
      ],
    }),
  ),
  endpoint: '/Roles',
  nameAttribute: 'name',
  target: 'roles',
  workflow: 'write-role',
  deleteWorkflow: undefined,
}

const patchOp = (...Operations: JsonValue[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations,
})

const a = (serial: string, more: JsonObject = {}): JsonObject => ({ serial, [support]: { level: 'gold' }, ...more })

onEachDatabase('resources of other types', (freshUrl) => {
  let close: (() => Promise<void>) | undefined
  afterEach(async () => {
    await close?.()
    close = undefined
  })

  async function open() {
    const params = { ...builtInParams, resourceTypes: ['device', 'role'] }
    const stack = await openStack(scimGateway, { url: await freshUrl(), params, types: { device, role } })
    close = () => stack.close()
    const { send } = stack
    const create = async (resource: JsonObject, endpoint = '/Devices') => {
      const answer = await send('POST', endpoint, resource)
      expect([answer.status, answer.body['detail']]).toEqual([201, undefined])
      return { id: String(answer.body['id']), etag: String(answer.headers['etag']), body: answer.body }
    }
    return { ...stack, params, create }
  }

  /** The serials that a filter finds, in the order of the answer. */
  async function found(send: Send, query: Readonly<Record<string, string>>): Promise<JsonValue> {
    const { status, body } = await send('GET', `/Devices?${new URLSearchParams(query)}`)
    if (status !== 200) return String(body['scimType'])
    return (body['Resources'] as JsonObject[]).map(({ serial }) => serial ?? null)
  }

  const failure = (status: number, scimType: string) => ({ status: String(status), scimType })

  test('every attribute comes back as it was sent, under an address and a version of its own', async () => {
    const { send, create } = await open()
    const sent = a('SN-1', {
      externalId: 'x1',
      model: 'M1',
      inventory: 'inv',
      active: false,
      cores: 8,
      weight: 1.25,
      boughtAt: '2026-01-02T03:04:05Z',
      certificate: 'aGVsbG8=',
      members: ['one', 'two'],
      owner: '../Users/u-1',
      manual: 'https://example.com/manual.pdf',
      place: { building: 'B1', desk: 'D1' },
      disks: [
        { value: 'nvme0', size: 512, primary: true },
        { value: 'sda', size: 4096 },
      ],
    })
    const { id, etag, body } = await create({ ...sent, pin: '1234', note: 'spare', state: 'mine', unknown: 'x' })
    const { meta, schemas, ...rest } = body
    expect(rest).toEqual({ ...sent, id })
    expect(schemas).toEqual([urn, support])
    const location = `${base}/Devices/${id}`
    expect(meta).toMatchObject({ resourceType: 'Device', location, version: etag })
    const read = await send('GET', `/Devices/${id}`)
    expect(read.body).toEqual(body)
    expect(read.headers['location']).toBe(location)
    const asked = await send('GET', `/Devices/${id}?attributes=note,pin`)
    expect(asked.body).toMatchObject({ note: 'spare' })
    expect(asked.body).not.toHaveProperty('pin')
    expect((await send('GET', `/Devices/${id}`, undefined, { 'if-none-match': etag })).status).toBe(304)
    expect((await send('HEAD', `/Devices/${id}`)).status).toBe(200)
  })

  test('PATCH, PUT and DELETE change a resource in its version only', async () => {
    const { send, create } = await open()
    const { id, etag } = await create(a('SN-1', { model: 'M1', active: true, cores: 4 }))
    const path = `/Devices/${id}`
    const patch = patchOp(
      { op: 'replace', path: 'cores', value: 8 },
      { op: 'add', path: 'disks[value eq "sda"].size', value: 1 },
      { op: 'replace', path: `${support}:level`, value: 'silver' },
      { op: 'replace', path: 'serial', value: 'SN-2' },
    )
    const patched = await send('PATCH', path, patch, { 'if-match': etag })
    expect(patched.body).toMatchObject({ serial: 'SN-2', cores: 8, disks: [{ value: 'sda', size: 1 }], model: 'M1' })
    expect((await send('PATCH', path, patch, { 'if-match': etag })).status).toBe(412)
    expect((await send('DELETE', path, undefined, { 'if-match': etag })).status).toBe(412)
    // What a PUT leaves out is cleared, also `active`, except an immutable value.
    const put = await send('PUT', path, a('SN-2', { weight: 2 }))
    expect(put.body).toMatchObject({ serial: 'SN-2', weight: 2, model: 'M1', [support]: { level: 'gold' } })
    for (const name of ['cores', 'active', 'disks']) expect(put.body).not.toHaveProperty(name)
    expect((await send('PUT', path, a('SN-2', { model: 'M2' }))).body).toMatchObject(failure(400, 'mutability'))
    expect((await send('PATCH', path, patchOp({ op: 'remove', path: 'serial' }))).status).toBe(400)
    expect((await send('DELETE', path)).status).toBe(204)
    const gone = await send('GET', path)
    expect([gone.status, gone.body['detail']]).toEqual([404, expect.stringContaining('search for it by serial')])
    expect((await send('DELETE', path)).status).toBe(404)
  })

  test('filters, orders and pages are those of users', async () => {
    const { send, create } = await open()
    await create(
      a('B', { cores: 4, boughtAt: '2026-01-01T00:00:00Z', disks: [{ value: 'x', size: 10 }], inventory: 'Q' }),
    )
    await create(a('a', { cores: 16, boughtAt: '2026-03-01T00:00:00Z', members: ['m'] }))
    await create(a('C', { cores: 8, [support]: { level: 'Silver' } }))
    const filters: Readonly<Record<string, JsonValue>> = {
      'serial eq "A"': ['a'],
      'serial sw "c" or cores gt 10': ['a', 'C'],
      'cores ge 8 and not (serial eq "a")': ['C'],
      'boughtAt gt "2026-02-01T00:00:00+01:00"': ['a'],
      'disks[value eq "x" and size lt 20]': ['B'],
      'disks.size pr': ['B'],
      'members eq "m"': ['a'],
      'inventory eq "q"': [],
      [`${support}:level eq "silver"`]: ['C'],
      'meta.resourceType eq "Device"': ['B', 'a', 'C'],
      'meta.resourceType eq "User"': [],
      'nothing eq 1': 'invalidFilter',
      'pin eq "1"': 'invalidFilter',
    }
    for (const [filter, expected] of Object.entries(filters)) {
      expect([filter, await found(send, { filter })]).toEqual([filter, expected])
    }
    expect(await found(send, { sortBy: 'serial' })).toEqual(['a', 'B', 'C'])
    expect(await found(send, { sortBy: 'cores', sortOrder: 'descending' })).toEqual(['a', 'C', 'B'])
    expect(await found(send, { sortBy: 'members' })).toEqual(['a', 'B', 'C'])
    expect(await found(send, { startIndex: '2', count: '1' })).toEqual(['a'])
    const first = await send('GET', '/Devices?cursor&count=2')
    const next = String(first.body['nextCursor'])
    expect(await found(send, { cursor: next, count: '2' })).toEqual(['C'])
    const search = { schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'], filter: 'cores eq 8' }
    expect((await send('POST', '/Devices/.search', search)).body).toMatchObject({ totalResults: 1 })
  })

  test('a search of all types finds them, by index and by cursor', async () => {
    const { send, create } = await open()
    await create({ userName: 'ada' }, '/Users')
    await create(a('ada'))
    await create({ name: 'ada', groups: ['g'] }, '/Roles')
    const typesOf = (body: JsonObject) =>
      (body['Resources'] as { meta: JsonObject }[]).map(({ meta }) => meta['resourceType'])
    expect(typesOf((await send('GET', '/')).body)).toEqual(['User', 'Device', 'Role'])
    const filter = encodeURIComponent('urn:example:Role:groups eq "g"')
    expect(typesOf((await send('GET', `/?filter=${filter}`)).body)).toEqual(['Role'])
    const seen: unknown[] = []
    let cursor = ''
    do {
      const { body } = await send('GET', `/?count=1&cursor=${encodeURIComponent(cursor)}`)
      seen.push(...typesOf(body))
      cursor = String(body['nextCursor'] ?? '')
    } while (cursor !== '')
    expect(seen).toEqual(['User', 'Device', 'Role'])
  })

  test('discovery has exactly what is served', async () => {
    const { send } = await open()
    const { body } = await send('GET', '/ResourceTypes')
    expect(body['Resources']).toContainEqual({
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:ResourceType'],
      id: 'Device',
      name: 'Device',
      endpoint: '/Devices',
      description: 'A device',
      schema: urn,
      schemaExtensions: [{ schema: support, required: true }],
      meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/Device` },
    })
    expect((await send('GET', '/ResourceTypes/role')).body).toMatchObject({ endpoint: '/Roles', schemaExtensions: [] })
    const schema = await send('GET', `/Schemas/${urn}`)
    const attributes = schema.body['attributes'] as JsonObject[]
    expect(attributes.map(({ name }) => name)).toEqual(device.schema.core.attributes.map(({ name }) => name))
    expect(attributes.find(({ name }) => name === 'inventory')).toMatchObject({ uniqueness: 'server', caseExact: true })
    expect((await send('GET', `/Schemas/${support}`)).body).toMatchObject({ attributes: [{ name: 'level' }] })
  })

  test('names and unique values are those of one resource, for every caller', async () => {
    const { send, create, gateway, params } = await open()
    const { id } = await create(a('SN-1', { inventory: 'I-1', place: { desk: 'D1' } }))
    const other = await create(a('SN-2'))
    const taken = failure(409, 'uniqueness')
    expect((await send('POST', '/Devices', a('sn-1'))).body).toMatchObject(taken)
    const doubled = await send('POST', '/Devices', a('SN-3', { inventory: 'I-1' }))
    expect(doubled.body).toMatchObject({ ...taken, detail: expect.stringMatching(/^inventory: another Device has /) })
    expect((await send('POST', '/Devices', a('SN-3', { place: { desk: 'd1' } }))).body).toMatchObject(taken)
    const patch = patchOp({ op: 'add', path: 'inventory', value: 'I-1' })
    expect((await send('PATCH', `/Devices/${other.id}`, patch)).body).toMatchObject(taken)
    expect((await send('PUT', `/Devices/${other.id}`, a('SN-1'))).body).toMatchObject(taken)
    // It is case-exact, and the resource itself may keep or repeat its value.
    await create(a('SN-3', { inventory: 'i-1' }))
    expect((await send('PATCH', `/Devices/${id}`, patch)).status).toBe(200)
    expect((await send('PUT', `/Devices/${id}`, a('SN-1', { inventory: 'I-1' }))).status).toBe(200)
    // Freed by a delete, and then taken by one of many, in two processes.
    await send('DELETE', `/Devices/${id}`)
    const second = await gateway(params)
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        (i % 2 === 0 ? send : second.send)('POST', '/Devices', a(`race-${i}`, { inventory: 'I-1' })),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 11 }, () => 409)])
    expect(await found(send, { filter: 'inventory eq "I-1"' })).toHaveLength(1)
  })

  test('a dry run changes nothing, and refuses what the change would refuse', async () => {
    const { send, create } = await open()
    const { id, body } = await create(a('SN-1', { inventory: 'I-1' }))
    const dryRun = { 'dry-run': 'true' }
    const created = await send('POST', '/Devices', a('SN-2', { inventory: 'I-2' }), dryRun)
    expect(created.body).toMatchObject({ runs: [{ workflow: 'write-device', subject: 'device sn-2' }] })
    const taken = await send('POST', '/Devices', a('SN-2', { inventory: 'I-1' }), dryRun)
    expect(taken.body).toMatchObject(failure(409, 'uniqueness'))
    const patch = patchOp({ op: 'add', path: 'inventory', value: 'I-3' })
    expect((await send('PATCH', `/Devices/${id}`, patch, dryRun)).body).toMatchObject({
      runs: [{ workflow: 'write-device' }],
    })
    expect((await send('DELETE', `/Devices/${id}`, undefined, dryRun)).status).toBe(200)
    expect((await send('GET', '/Devices')).body).toMatchObject({ totalResults: 1, Resources: [body] })
  })

  test('a request that does not fit the schema is refused, and nothing is stored', async () => {
    const { send } = await open()
    const invalid: readonly JsonObject[] = [
      { serial: 'x' },
      { [support]: { level: 'gold' } },
      a('x', { dryRun: true }),
      a('x', { cores: 1.5 }),
      a('x', { cores: 'many' }),
      a('x', { active: 'perhaps' }),
      a('x', { boughtAt: 'yesterday' }),
      a('x', { certificate: 'not base64!' }),
      a('x', { owner: 'no address' }),
      a('x', { owner: '../Devices/1' }),
      a('x', { owner: 'https://other.example.com/Users/1' }),
      a('x', { manual: 'manual.pdf' }),
      a('x', { disks: [{ size: 1 }] }),
      a('x', {
        disks: [
          { value: 'a', primary: true },
          { value: 'b', primary: true },
        ],
      }),
      a('x', { place: ['a', 'b'] }),
      a(' x'),
      a('..'),
      a('x'.repeat(300)),
    ]
    for (const body of invalid) {
      const answer = await send('POST', '/Devices', body)
      expect([body, answer.status, answer.body['scimType']]).toEqual([body, 400, 'invalidValue'])
    }
    for (const owner of ['../Users/1', 'Groups/2', '/Users/3', `${base}/Users/4`]) {
      expect((await send('POST', '/Devices', a(`of ${owner.at(-1)}`, { owner }))).status).toBe(201)
    }
    expect(await found(send, { filter: 'serial sw "x"' })).toEqual([])
  })

  test('names of prototypes, other types and paths of other cases are nothing here', async () => {
    const { send, create } = await open()
    const { id } = await create({ ...a('SN-1'), ...JSON.parse('{"__proto__": {"cores": 1}, "constructor": {"x": 1}}') })
    const poison = { op: 'add', path: '__proto__.x', value: 1 }
    expect((await send('PATCH', `/Devices/${id}`, patchOp(poison))).status).toBe(400)
    expect(
      (await send('PATCH', `/Devices/${id}`, patchOp({ op: 'add', value: JSON.parse('{"__proto__":{"x":1}}') })))
        .status,
    ).toBeOneOf([200, 400])
    expect({}).not.toHaveProperty('x')
    expect((await send('GET', `/Devices/${id}`)).body).not.toHaveProperty('cores')
    for (const path of [
      `/Users/${id}`,
      `/Groups/${id}`,
      `/Roles/${id}`,
      `/devices/${id}`,
      '/__proto__',
      '/constructor',
    ]) {
      expect([path, (await send('GET', path)).status]).toEqual([path, 404])
    }
  })

  test('a type without a workflow for it cannot be deleted', async () => {
    const { send, create } = await open()
    const { id, body } = await create({ name: 'reader', groups: ['one'] }, '/Roles')
    expect(body).toMatchObject({ groups: ['one'] })
    const answer = await send('DELETE', `/Roles/${id}`)
    expect([answer.status, answer.body['detail']]).toEqual([501, expect.stringContaining('no deleteWorkflow')])
    expect((await send('GET', `/Roles/${id}`)).status).toBe(200)
  })

  test('operations of a bulk request may refer to each other across types', async () => {
    const { send } = await open()
    const operation = (path: string, bulkId: string, data: JsonObject) => ({ method: 'POST', path, bulkId, data })
    const { body } = await send('POST', '/Bulk', {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
      Operations: [
        operation('/Devices', 'd', a('SN-1', { members: ['bulkId:u'] })),
        operation('/Users', 'u', { userName: 'ada' }),
        operation('/Devices', 'e', a('SN-1')),
        { method: 'PATCH', path: '/Devices/bulkId:d', data: patchOp({ op: 'add', path: 'cores', value: 2 }) },
        { method: 'DELETE', path: '/Devices/none' },
      ],
    })
    const statuses = (body['Operations'] as JsonObject[]).map(({ status }) => status)
    expect(statuses).toEqual(['201', '201', '409', '200', '404'])
    const [device] = (await send('GET', '/Devices')).body['Resources'] as JsonObject[]
    const [user] = (await send('GET', '/Users')).body['Resources'] as JsonObject[]
    expect(device).toMatchObject({ serial: 'SN-1', cores: 2, members: [user?.['id']] })
  })

  test('the audit names the target of each change, so a device is not taken for the user of that name', async () => {
    const { create, audit, send } = await open()
    await create({ userName: 'ada' }, '/Users')
    const { id } = await create(a('ada', { cores: 2 }))
    await send('DELETE', `/Devices/${id}`)
    const entries = audit.rows.filter(({ kind }) => kind === 'entry')
    expect(entries.map(({ action, target, subject }) => [action, target, subject])).toEqual([
      ['add', 'people', 'ada'],
      ['add', 'devices', 'ada'],
      ['delete', 'devices', 'ada'],
    ])
    expect((await send('GET', '/Users')).body).toMatchObject({ totalResults: 1 })
  })
})
