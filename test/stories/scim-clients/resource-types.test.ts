import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ScimClient, type ScimServer, startScimServer } from '#testing/scim/scim-client.ts'
import { fresh } from '#testing/scim/scim-story.ts'

const schema = 'urn:ietf:params:scim:schemas:test:2.0:TestResource'
const extension = 'urn:ietf:params:scim:schemas:extension:test:2.0:TestResource'

/** The types of the example, and one with every kind of attribute. */
function configuration(folder: string): string {
  cpSync('examples/resource-types', folder, { recursive: true })
  cpSync('test/support/scim/test-resource.yaml', join(folder, 'test-resource.yaml'))
  const gateway = readFileSync(join(folder, 'gateway.yaml'), 'utf8')
  writeFileSync(join(folder, 'gateway.yaml'), gateway.replace('application]', 'application, test-resource]'))
  return folder
}

let folder: string
let server: ScimServer
let scim: ScimClient
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-types-'))
  server = await startScimServer(undefined, undefined, configuration(folder))
  scim = server.client('/scim/v2')
})
afterAll(async () => {
  await server?.process.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** A resource with these attributes, as the answer to the POST and as a later GET shows it. */
async function created(more: Readonly<Record<string, unknown>>) {
  const body = {
    schemas: [schema, extension],
    identifier: fresh('test'),
    [extension]: { extRequired: 'default' },
    ...more,
  }
  const answer = await scim.post('/TestResources', body)
  expect([answer.status, answer.body.detail]).toEqual([201, undefined])
  const path = `/TestResources/${answer.body.id}`
  const read = await scim.get(path)
  expect(read.body).toEqual(answer.body)
  return { path, body: answer.body }
}

/** The cases of the Go suite scim2/test-suite for its TestResource. */
describe('a resource with every kind of attribute', () => {
  const comesBack: Readonly<Record<string, unknown>> = {
    integerAttr: 42,
    booleanAttr: true,
    dateTimeAttr: '2025-06-15T10:30:00Z',
    binaryAttr: Buffer.from('hello, compliance test').toString('base64'),
    referenceAttr: 'https://example.com/resource/123',
    multiStrings: ['alpha', 'beta', 'gamma'],
    complexAttr: { sub1: 'hello', sub2: 99, sub3: true },
    [extension]: { extString: 'ext-value', extRequired: 'required-value', extInteger: 1 },
  }
  for (const [name, value] of Object.entries(comesBack)) {
    test(`${name} comes back as it was sent`, async () => {
      const { body } = await created({ [name]: value })
      expect(body[name]).toEqual(value)
      expect(body.schemas).toEqual([schema, extension])
    })
  }

  test('an immutable attribute keeps its value', async () => {
    const { path, body } = await created({ immutableAttr: 'original' })
    const put = await scim.put(path, { ...body, immutableAttr: 'changed' })
    expect([put.status, put.body.scimType]).toEqual([400, 'mutability'])
    expect((await scim.get(path)).body.immutableAttr).toBe('original')
  })

  test('a readOnly attribute is ignored, and a writeOnly one is not returned', async () => {
    const { path, body } = await created({ readOnlyAttr: 'mine', writeOnlyAttr: 'secret-value' })
    const asked = await scim.get(`${path}?attributes=readOnlyAttr,writeOnlyAttr`)
    for (const name of ['readOnlyAttr', 'writeOnlyAttr']) {
      expect(body).not.toHaveProperty(name)
      expect(asked.body).not.toHaveProperty(name)
    }
  })

  test('attributes are returned always, or on request', async () => {
    const { path, body } = await created({ alwaysReturnedAttr: 'here', requestOnlyAttr: 'asked' })
    expect(body).not.toHaveProperty('requestOnlyAttr')
    expect((await scim.get(`${path}?excludedAttributes=alwaysReturnedAttr`)).body.alwaysReturnedAttr).toBe('here')
    expect((await scim.get(`${path}?attributes=requestOnlyAttr`)).body.requestOnlyAttr).toBe('asked')
  })

  test('letter case counts where the schema says so', async () => {
    const value = fresh('CaSe')
    const { body } = await created({ caseExactString: value, caseInsensitiveString: value })
    const total = async (filter: string) => (await scim.filter('/TestResources', filter)).body.totalResults
    expect(await total(`caseExactString eq "${value.toLowerCase()}"`)).toBe(0)
    expect(await total(`caseExactString eq "${value}"`)).toBe(1)
    expect(await total(`caseInsensitiveString eq "${value.toLowerCase()}"`)).toBe(1)
    expect([body.caseExactString, body.caseInsensitiveString]).toEqual([value, value])
  })

  test('a required extension is required, of two primary values one is refused, and unique values are unique', async () => {
    const bare = await scim.post('/TestResources', { schemas: [schema], identifier: fresh('test') })
    expect([bare.status, bare.body.scimType]).toEqual([400, 'invalidValue'])
    const both = ['one', 'two'].map((value) => ({ value, primary: true }))
    const primaries = { identifier: fresh('test'), [extension]: { extRequired: 'x' }, multiComplex: both }
    expect((await scim.post('/TestResources', primaries)).status).toBe(400)
    const uniqueString = fresh('unique')
    await created({ uniqueString })
    const second = { identifier: fresh('test'), [extension]: { extRequired: 'x' }, uniqueString }
    expect((await scim.post('/TestResources', second)).body).toMatchObject({ status: '409', scimType: 'uniqueness' })
  })
})

describe('the types of the example', () => {
  test('refer to each other and to users, and are found by what they refer to', async () => {
    const user = (await scim.post('/Users', { userName: fresh('ada') })).body
    const owner = `../Users/${user.id}`
    const application = (await scim.post('/Applications', { name: fresh('crm'), owners: [owner], costPerUser: 2.5 }))
      .body
    const review = { reviewer: user.meta.location, everyDays: 90 }
    const role = await scim.post('/Roles', {
      name: fresh('reader'),
      application: `../Applications/${application.id}`,
      permissions: ['read', 'Read'],
      'urn:example:params:scim:schemas:extension:Review': review,
    })
    expect([role.status, role.body.permissions]).toEqual([201, ['read', 'Read']])
    const device = (await scim.post('/Devices', { serialNumber: fresh('sn'), owner, boughtAt: '2026-01-02T03:04:05Z' }))
      .body
    const found = await scim.filter('/Devices', `owner eq "${owner}" and boughtAt gt "2025-12-31T00:00:00Z"`)
    expect(found.body.Resources.map(({ id }: { id: string }) => id)).toEqual([device.id])
    const wrong = await scim.patch(`/Devices/${device.id}`, [{ op: 'replace', path: 'owner', value: '../Groups/1' }])
    expect([wrong.status, wrong.body.scimType]).toEqual([400, 'invalidValue'])
    expect((await scim.delete(`/Devices/${device.id}`)).status).toBe(204)
    expect((await scim.get(`/Devices/${device.id}`)).status).toBe(404)
    expect((await scim.get(`/Users/${user.id}`)).status).toBe(200)
  })

  test('many changes of one device at once lose nothing', async () => {
    const { id } = (await scim.post('/Devices', { serialNumber: fresh('sn') })).body
    const add = (value: string) =>
      scim.patch(`/Devices/${id}`, [{ op: 'add', path: 'disks', value: [{ value, gigabytes: 1 }] }])
    const names = Array.from({ length: 10 }, (_, i) => `disk${i}`)
    const answers = await Promise.all(names.map(add))
    expect(answers.map(({ status }) => status)).toEqual(names.map(() => 200))
    const { disks } = (await scim.get(`/Devices/${id}`)).body
    expect(disks.map(({ value }: { value: string }) => value).sort()).toEqual(names)
  })
})
