import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { ScimClient, type ScimServer, startScimServer } from '#testing/scim/scim-client.ts'

/** One gateway in front of another: the first passes the changes of an identity system to the second, over SCIM. */
let behind: ScimServer
let front: GatewayProcess
let server: ScimClient
let client: ScimClient
const config = mkdtempSync(join(tmpdir(), 'gatehouse-front-'))

beforeAll(async () => {
  behind = await startScimServer()
  server = behind.client('/scim/v2')
  cpSync('examples/scim-target', config, { recursive: true })
  writeFileSync(join(config, 'secrets/downstream/token'), behind.token)
  front = await startGatewayProcess({ config, environment: { DOWNSTREAM_URL: server.base } })
  client = new ScimClient(`${front.url}/scim/front`, await front.token('--subject', 'idp'))
}, 60_000)
afterAll(async () => {
  await front?.stop()
  await behind?.process.stop()
  rmSync(config, { recursive: true, force: true })
})

test('a user created in front is created behind, with the same id', async () => {
  const created = await client.post('/Users', { userName: 'grace', displayName: 'Grace Hopper', active: true })
  expect(created).toMatchObject({ status: 201, body: { userName: 'grace', displayName: 'Grace Hopper' } })
  const there = await server.filter('/Users', 'userName eq "grace"')
  expect(there.body.Resources).toMatchObject([{ id: created.body.id, displayName: 'Grace Hopper', active: true }])
  expect((await client.post('/Users', { userName: 'GRACE' })).status).toBe(409)
})

test('changes pass through, and reads return the data behind', async () => {
  const { body } = await client.filter('/Users', 'userName eq "grace"')
  const [{ id }] = body.Resources
  const patched = await client.patch(`/Users/${id}`, [{ op: 'Replace', path: 'active', value: 'False' }])
  expect(patched).toMatchObject({ status: 200, body: { active: false } })
  expect((await server.get(`/Users/${id}`)).body.active).toBe(false)
  await server.patch(`/Users/${id}`, [{ op: 'replace', path: 'displayName', value: 'Rear Admiral Hopper' }])
  expect((await client.get(`/Users/${id}`)).body.displayName).toBe('Rear Admiral Hopper')
})

test('members are added and removed behind', async () => {
  const group = (await server.post('/Groups', { displayName: 'compilers' })).body.id
  const { id } = (await client.filter('/Users', 'userName eq "grace"')).body.Resources[0]
  const added = await client.patch(`/Groups/${group}`, [{ op: 'add', path: 'members', value: [{ value: id }] }])
  expect(added.status).toBe(204)
  expect(await server.members(group)).toEqual([id])
  expect(await client.members(group)).toEqual([id])
  await client.patch(`/Groups/${group}`, [{ op: 'Remove', path: 'members', value: [{ value: id }] }])
  expect(await server.members(group)).toEqual([])
})

test('groups are created, renamed and deleted behind', async () => {
  const created = await client.post('/Groups', { displayName: 'navy' })
  expect(created.status).toBe(201)
  const { id } = created.body
  expect((await server.get(`/Groups/${id}`)).body.displayName).toBe('navy')
  const renamed = await client.patch(`/Groups/${id}`, [{ op: 'replace', path: 'displayName', value: 'fleet' }])
  expect(renamed.status).toBe(204)
  expect((await server.get(`/Groups/${id}`)).body.displayName).toBe('fleet')
  expect((await client.delete(`/Groups/${id}`)).status).toBe(204)
  expect((await server.get(`/Groups/${id}`)).status).toBe(404)
})

test('versions are those of the server behind', async () => {
  const { id } = (await client.filter('/Users', 'userName eq "grace"')).body.Resources[0]
  const stale = (await client.get(`/Users/${id}`)).headers.get('etag') ?? ''
  await server.patch(`/Users/${id}`, [{ op: 'replace', path: 'nickName', value: 'Amazing Grace' }])
  const title = [{ op: 'replace', path: 'title', value: 'Admiral' }]
  expect((await client.patch(`/Users/${id}`, title, { 'if-match': stale })).status).toBe(412)
  const fresh = (await client.get(`/Users/${id}`)).headers.get('etag') ?? ''
  expect((await client.patch(`/Users/${id}`, title, { 'if-match': fresh })).status).toBe(200)
  expect((await server.get(`/Users/${id}`)).body).toMatchObject({ title: 'Admiral', nickName: 'Amazing Grace' })
})

test('filters that the server behind cannot evaluate are applied in front, over all its pages', async () => {
  await Promise.all(
    Array.from({ length: 120 }, (_, n) =>
      server.post('/Users', { userName: `many${n}`, displayName: n % 2 === 0 ? 'Even' : 'Odd' }),
    ),
  )
  const even = await client.list('/Users', { filter: 'displayName eq "even" and userName sw "many"', count: '10' })
  expect(even.body).toMatchObject({ totalResults: 60, itemsPerPage: 10 })
})

test('deleting deletes behind; an unreachable server behind is not a success', async () => {
  const { id } = (await client.filter('/Users', 'userName eq "grace"')).body.Resources[0]
  expect((await client.delete(`/Users/${id}`)).status).toBe(204)
  expect((await server.get(`/Users/${id}`)).status).toBe(404)
  await behind.process.stop()
  const refused = await client.post('/Users', { userName: 'late' })
  expect(refused.status).toBeGreaterThanOrEqual(500)
  expect(refused.body).toMatchObject({ schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'] })
  expect(JSON.stringify(refused.body)).not.toContain(behind.token)
})
