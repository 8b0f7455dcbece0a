import { expect, test } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute, type Schema } from '#protocols/scim/schema/schema.ts'
import type { FilterApi } from '#sdk/filter/filter-api.ts'
import type { ResourceType } from '#sdk/module/resource-type.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { openGateway, People, prepareGateway } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams } from '#testing/scim/scim-stack.ts'
import scimGateway from './scim-gateway.ts'
import { changeEvents, eventSubject } from './security-events.ts'

const core: Schema = {
  id: 'urn:example:Device',
  name: 'Device',
  description: 'A device',
  attributes: [
    attribute('serial', '', { required: true, uniqueness: 'server' }),
    attribute('active', '', { type: 'boolean' }),
    attribute('size', '', { type: 'integer' }),
  ],
}

/** The workflows of the fixture write it. */
const device: ResourceType = {
  schema: new ResourceSchema(core),
  endpoint: '/Devices',
  nameAttribute: 'serial',
  target: 'devices',
  workflow: 'sync-user',
  deleteWorkflow: 'delete-user',
}

const params = { ...builtInParams, resourceTypes: ['device'] }

/** Devices in a target whose ids are logins, which users have too. */
async function open() {
  const devices = new People()
  const { targets } = fakeModuleHost({ targets: { people: new People(), devices } })
  const gateway = await openGateway(scimGateway, { params, types: { device }, people: devices, host: { targets } })
  return { ...gateway, devices }
}

test('ids that users may have too begin with the name of the type', async () => {
  const { send } = await open()
  const created = await send('POST', '/Devices', { serial: 'SN-1', size: 4 })
  const id = 'device:SN-1'
  expect(created.body).toMatchObject({ id, serial: 'SN-1', size: 4, meta: { resourceType: 'Device' } })
  const path = `/Devices/${encodeURIComponent(id)}`
  expect(created.headers['location']).toBe(`https://gw.example.com/api/scim/Devices/${id}`)
  expect((await send('GET', path)).body).toMatchObject({ id })
  for (const other of ['/Devices/SN-1', '/Users/SN-1', `/Users/${id}`]) {
    expect([other, (await send('GET', other)).status]).toEqual([other, 404])
  }
  for (const [filter, total] of [
    [`id eq "${id}"`, 1],
    ['id eq "SN-1"', 0],
    ['id sw "device:"', 1],
    ['id ew "N-1" and size gt 3', 1],
  ] as const) {
    const { body } = await send('GET', `/Devices?filter=${encodeURIComponent(filter)}`)
    expect([filter, body['totalResults']]).toEqual([filter, total])
  }
  expect((await send('GET', '/Devices?sortBy=id')).body).toMatchObject({ totalResults: 1 })
  expect((await send('DELETE', path)).status).toBe(204)
})

test('a name that its target cannot change is immutable', async () => {
  const { send } = await open()
  await send('POST', '/Devices', { serial: 'SN-1' })
  const put = await send('PUT', '/Devices/device:SN-1', { serial: 'SN-2' })
  expect(put.body).toMatchObject({
    status: '400',
    scimType: 'mutability',
    detail: expect.stringMatching(/^serial cannot be changed: .* Create another Device instead\.$/),
  })
  const { body } = await send('GET', '/Schemas/urn:example:Device')
  expect((body['attributes'] as JsonObject[])[0]).toMatchObject({ name: 'serial', mutability: 'immutable' })
})

test('runs are about the resource, and `active` is an attribute like others', async () => {
  const { send, workflows, devices } = await open()
  await send('POST', '/Devices', { serial: 'Ada', active: false })
  await send('PUT', '/Devices/device:Ada', { serial: 'Ada', size: 1 })
  expect([...devices.people.values()].map(({ attributes }) => attributes.toObject())).toEqual([
    { serial: ['Ada'], size: ['1'] },
  ])
  expect((await send('POST', '/Devices', { serial: 'Ada', active: true })).status).toBe(409)
  await send('DELETE', '/Devices/device:Ada')
  const about = workflows.calls.map(({ head, user }) => [head.workflow, head.subject, user.userID])
  expect(about).toEqual([
    ['sync-user', 'device ada', 'Ada'],
    ['sync-user', 'device ada', 'Ada'],
    ['delete-user', 'device ada', 'Ada'],
  ])
})

test('a resource that its delete workflow leaves behind is not called deleted', async () => {
  const { send, workflows } = await open()
  await send('POST', '/Devices', { serial: 'SN-1', active: true })
  workflows.override = async () => {}
  const { status, body } = await send('DELETE', '/Devices/device:SN-1')
  expect([status, body['detail']]).toEqual([500, expect.stringContaining('the Device is still there')])
  expect((await send('GET', '/Devices/device:SN-1')).status).toBe(200)
})

test('events name the address of the resource', () => {
  const change = {
    kind: 'delete',
    resourceType: 'Device',
    endpoint: '/Devices',
    id: 'device:1',
    attributes: [],
  } as const
  expect(eventSubject(change)).toEqual({ format: 'scim', uri: '/Devices/device%3A1' })
  expect(Object.keys(changeEvents(change))).toEqual(['urn:ietf:params:scim:event:prov:delete'])
})

test('the API description has the operations and the schema of each type', () => {
  const { prepared, issues } = prepareGateway(scimGateway, params, { device })
  expect(issues).toEqual([])
  const api = prepared.api as FilterApi
  const place = { origin: 'https://x', base: '/scim', prefix: '' }
  const document = api.documents.openApi(place) as { paths: Record<string, JsonObject>; components: JsonObject }
  const paths = Object.keys(document.paths).filter((path) => path.includes('Devices'))
  expect(paths.map((path) => [path.slice(path.indexOf('/Devices')), Object.keys(document.paths[path] ?? {})])).toEqual([
    ['/Devices', ['get', 'post']],
    ['/Devices/.search', ['post']],
    ['/Devices/{id}', ['get', 'put', 'patch', 'delete']],
  ])
  const schemas = Object.keys(document.components['schemas'] as JsonObject)
  expect(schemas).toEqual(expect.arrayContaining(['DeviceResource', 'DeviceResourceList', 'DeviceResourceRequest']))
})
