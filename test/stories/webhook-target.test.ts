import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hasLookups, type LookupTarget } from '#sdk/target/target.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { ScimClient } from '#testing/scim/scim-client.ts'
import {
  type CrmApplication,
  crmParams,
  crmSecrets,
  openWebhook,
  startCrmApplication,
} from '#testing/targets/crm-application.ts'

/** An application with its own API behind a SCIM gateway, only by the configuration of examples/webhook-target. */
let application: CrmApplication
let gateway: GatewayProcess
let client: ScimClient
let behind: LookupTarget
const data = mkdtempSync(join(tmpdir(), 'gatehouse-crm-'))

beforeAll(async () => {
  application = await startCrmApplication(join(data, 'crm.db'))
  gateway = await startGatewayProcess({ config: 'examples/webhook-target', environment: application.environment })
  client = new ScimClient(`${gateway.url}/scim/crm`, await gateway.token('--subject', 'idp'))
  const target = await openWebhook(crmParams({ url: application.url }))
  if (!hasLookups(target)) throw new Error('the example has no look-ups')
  behind = target
})
afterAll(async () => {
  await behind?.close?.()
  await gateway?.stop()
  await application?.stop()
  rmSync(data, { recursive: true, force: true })
})

const idOf = async (login: string): Promise<string> =>
  (await client.filter('/Users', `userName eq "${login}"`)).body.Resources[0].id

test('a user is created, with the id of the application', async () => {
  const created = await client.post('/Users', {
    userName: 'grace',
    displayName: 'Grace "Amazing" Hopper',
    emails: [{ value: 'grace@navy.test', type: 'work' }],
    active: true,
    password: 'correct horse',
  })
  expect(created).toMatchObject({ status: 201, body: { userName: 'grace', active: true } })
  const there = await behind.lookupUserByLogin('grace')
  expect(there?.id).toBe(created.body.id)
  expect(there?.attributes.toObject()).toMatchObject({
    displayName: ['Grace "Amazing" Hopper'],
    mail: ['grace@navy.test'],
    active: ['true'],
  })
  expect((await client.post('/Users', { userName: 'Grace' })).status).toBe(409)
})

test('changes pass through, including a new login, and a stale version does not', async () => {
  const id = await idOf('grace')
  const { version } = (await client.get(`/Users/${id}`)).body.meta
  const patched = await client.patch(`/Users/${id}`, [
    { op: 'replace', path: 'active', value: false },
    { op: 'remove', path: 'emails' },
    { op: 'replace', path: 'userName', value: 'admiral' },
  ])
  expect(patched).toMatchObject({ status: 200, body: { userName: 'admiral', active: false } })
  const there = await behind.lookupUserById(id)
  expect(there).toMatchObject({ userID: 'admiral' })
  expect(there?.attributes.values('mail')).toEqual([])
  const stale = await client.patch(`/Users/${id}`, [{ op: 'replace', path: 'displayName', value: 'x' }], {
    'if-match': version,
  })
  expect(stale.status).toBe(412)
})

test('teams are created and renamed, users join and leave', async () => {
  const id = await idOf('admiral')
  const { body: team } = await client.post('/Groups', { displayName: 'compilers' })
  const add = await client.patch(`/Groups/${team.id}`, [{ op: 'add', path: 'members', value: [{ value: id }] }])
  expect(add.status).toBe(204)
  expect(await client.members(team.id)).toEqual([id])
  expect((await behind.lookupUserById(id))?.groups).toEqual(['compilers'])
  await client.patch(`/Groups/${team.id}`, [{ op: 'replace', path: 'displayName', value: 'linkers' }])
  expect((await behind.lookupUserById(id))?.groups).toEqual(['linkers'])
  await client.patch(`/Groups/${team.id}`, [{ op: 'remove', path: `members[value eq "${id}"]` }])
  expect(await client.members(team.id)).toEqual([])
  expect((await client.delete(`/Groups/${team.id}`)).status).toBe(204)
  expect((await client.get(`/Groups/${team.id}`)).status).toBe(404)
})

test('filters are evaluated by the application or in front of it, over all its pages', async () => {
  await Promise.all(
    Array.from({ length: 130 }, (_, n) =>
      client.post('/Users', {
        userName: `many${n}`,
        displayName: n % 2 === 0 ? 'Even' : 'Odd',
        emails: [{ value: `m${n}@x.test` }],
      }),
    ),
  )
  const even = await client.list('/Users', { filter: 'displayName eq "even" and userName sw "many"', count: '10' })
  expect(even.body).toMatchObject({ totalResults: 65, itemsPerPage: 10 })
  const mail = await client.filter('/Users', 'emails.value eq "M7@x.test"')
  expect(mail.body.Resources).toMatchObject([{ userName: 'many7' }])
})

test('the gateway reconnects to a killed application automatically, and no acknowledged change is lost', async () => {
  const results = Array.from({ length: 60 }, (_, n) => client.post('/Users', { userName: `late${n}` }))
  await Promise.all([application.restart(), ...results])
  const acknowledged = (await Promise.all(results)).flatMap(({ status }, n) => (status === 201 ? [`late${n}`] : []))
  for (const { status } of await Promise.all(results)) expect([201, 503]).toContain(status)
  for (const login of acknowledged) expect((await behind.lookupUserByLogin(login))?.userID).toBe(login)
  expect((await client.post('/Users', { userName: 'after' })).status).toBe(201)
})

test('deleting deletes behind; an unreachable application is not a success, and its secrets appear nowhere', async () => {
  const id = await idOf('admiral')
  expect((await client.delete(`/Users/${id}`)).status).toBe(204)
  expect(await behind.lookupUserByLogin('admiral')).toBeUndefined()
  await application.stop()
  const refused = await client.post('/Users', { userName: 'never' })
  expect(refused.status).toBe(503)
  for (const secret of [crmSecrets.bearerToken, crmSecrets.signingSecret, 'correct horse']) {
    expect(JSON.stringify(refused.body) + gateway.output()).not.toContain(secret)
  }
})
