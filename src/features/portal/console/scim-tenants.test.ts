import { join } from 'node:path'
import { expect, test } from 'vitest'
import { storedPlace } from '#config/sources/stored-objects.ts'
import type { ConfigurationAccess, ConfigurationFacts } from '#features/portal/access/configuration-access.ts'
import { tenantDirectory, tenantObjects } from '#features/scim/tenants/tenant.ts'
import { unaudited } from '#identity/entry-changes.ts'
import { compilePattern } from '#kernel/text/safe-pattern.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { openMain, someone } from '#testing/modules/main-fixture.ts'

const admin = someone('root', ['people', 'admins'])
const operator = someone('root', ['people', 'admins', 'operators'])

const noFacts: ConfigurationFacts = {
  running: { hash: '', since: new Date() },
  latest: { outcome: 'applied', time: new Date() },
  problems: [],
  objects: [],
}

/** The console over a real database; `facts` are those of the running configuration. */
async function open(facts: () => ConfigurationFacts = () => noFacts) {
  const { one } = await openStores(`sqlite:${join(temporaryFolder(), 'gatehouse.db')}`)
  const loaded: ConfigurationAccess = {
    describe: facts,
    explain: () => {
      throw new Error('not asked')
    },
  }
  const urls = [
    { hosts: ['*'], uri: '/', pattern: undefined },
    { hosts: ['*'], uri: '/scim/v2', pattern: undefined },
    { hosts: ['other.example.com'], uri: '/scim/elsewhere', pattern: undefined },
    {
      hosts: ['*'],
      uri: '(?<mount>/tenants/shared-[a-z]+/scim)(/.*)?',
      pattern: compilePattern('(?<mount>/tenants/shared-[a-z]+/scim)(/.*)?'),
    },
  ]
  const { send } = await openMain({
    params: { administrators: 'filter;(groups=admins)', operators: 'filter;(groups=operators)' },
    now: Date.now,
    loaded,
    scimClients: { tokens: one.clientTokens, tenants: one.tenants, urls, named: new Set(['umbrella']) },
    openUserDirectory: async (options) => one.userDirectory(options),
  })
  const path = '/admin/scim-tenants'
  return {
    one,
    add: (body: object, as = operator) => send('POST', path, body, as),
    get: async (name = '') => (await send('GET', `${path}${name}`, undefined, admin)).body,
    change: (name: string, what: string, version: unknown, as = operator) =>
      send('POST', `${path}/${name}/${what}`, { version, reason: 'A test' }, as),
  }
}

const object = (name: string, version: number, more: Partial<ConfigurationFacts['objects'][number]> = {}) =>
  tenantObjects({
    name,
    host: 'h',
    path: '/scim/x',
    profile: 'tolerant',
    version,
    createdBy: 'x',
  }).files.map((file) => ({
    kind: file.kind,
    name: file.name,
    file: file.file.name,
    loaded: true,
    errors: 0,
    warnings: 0,
    ...more,
  }))

test('a tenant is added, shown with its address and state, disabled and deleted', async () => {
  let facts = noFacts
  const { one, add, get, change } = await open(() => facts)
  const { status, body } = await add({ name: 'acme', profile: 'okta' })
  expect([status, body]).toEqual([
    201,
    expect.objectContaining({ state: 'pending', path: '/tenants/acme/scim', version: 1, createdBy: 'root' }),
  ])
  expect(body.address).toMatch(/^https?:\/\/[^/]+\/tenants\/acme\/scim$/)
  facts = { ...noFacts, objects: object('acme', 1) }
  await add({ name: 'zenith', path: '/scim/zenith', host: 'idm.example.com' })
  expect(await get()).toMatchObject({
    tenants: [
      { name: 'acme', state: 'served' },
      { name: 'zenith', state: 'pending', address: 'https://idm.example.com/scim/zenith', profile: 'tolerant' },
    ],
  })
  expect((await get('?q=ZEN')).tenants).toHaveLength(1)
  expect((await get('?limit=1')).next).toBe('acme')
  expect(await get('/acme')).toMatchObject({ users: 0, groups: 0 })
  await expect(change('acme', 'remove', 1)).rejects.toMatchObject({ code: 'CONFLICT' })
  expect((await change('acme', 'disable', 1)).body).toMatchObject({ state: 'pending', disabledBy: 'root', version: 2 })
  facts = { ...noFacts, objects: object('acme', 2) }
  expect(await get('/acme')).toMatchObject({ state: 'disabled' })
  await expect(change('acme', 'enable', 1)).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
  const directory = one.userDirectory({ name: tenantDirectory('acme') })
  await directory.createGroup('staff', {}, unaudited)
  await expect(change('acme', 'remove', 2)).rejects.toThrow('0 users and 1 groups')
  expect(await get('/acme')).toMatchObject({ users: 0, groups: 1 })
  await directory.deleteGroup('staff', unaudited)
  await directory.close()
  expect((await change('acme', 'remove', 2)).body).toEqual({ revokedTokens: 0 })
  await expect(get('/acme')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect((await one.audit.list({ limit: 9 })).rows).toMatchObject([
    { action: 'delete', attribute: 'scimTenant', subject: 'acme', requestor: 'root', reason: 'A test' },
    { action: 'replace', attribute: 'disabled', value: 'true' },
    { action: 'add', attribute: 'scimTenant', value: '/scim/zenith' },
    { action: 'add', attribute: 'scimTenant', value: '/tenants/acme/scim' },
  ])
})

test('a tenant that the configuration has no place for is refused, and says why', async () => {
  const person = { kind: 'Target', name: 'mine-users', file: 'a.yaml', line: 3, loaded: true, errors: 0, warnings: 0 }
  let facts: ConfigurationFacts = { ...noFacts, objects: [person] }
  const { one, add, get } = await open(() => facts)
  for (const [body, text] of [
    [{ name: 'mine' }, 'The configuration has Target "mine-users"'],
    [{ name: 'umbrella' }, 'The configuration has a client "umbrella"'],
    [{ name: 'a', path: '/scim/v2' }, 'has a URL at /scim/v2'],
    [{ name: 'a', path: '/scim/v2/users' }, 'has a URL at /scim/v2'],
    [{ name: 'a', path: '/tenants/shared-x/scim' }, 'has a URL at (?<mount>'],
    [{ name: 'a', path: '/scim/elsewhere', host: 'other.example.com' }, 'has a URL at /scim/elsewhere'],
  ] as const) {
    await expect(add(body)).rejects.toMatchObject({ code: 'CONFLICT', publicText: expect.stringContaining(text) })
  }
  const directory = one.userDirectory({ name: tenantDirectory('old') })
  await directory.createGroup('staff', {}, unaudited)
  await directory.close()
  await expect(add({ name: 'old' })).rejects.toThrow('an earlier tenant "old"')
  await add({ name: 'a', path: '/scim/v2x' })
  facts = {
    ...noFacts,
    problems: [{ level: 'warning', file: storedPlace('tenant/a@1'), path: '', message: 'Target "a-users" is written' }],
  }
  expect(await get('/a')).toMatchObject({ state: 'refused', problem: 'Target "a-users" is written' })
  facts = { ...noFacts, objects: object('a', 1, { loaded: false, setAside: 'already claimed' }) }
  expect(await get('/a')).toMatchObject({ state: 'refused', problem: 'already claimed' })
})

test('tenants are changed by operators only', async () => {
  const { one, add, change } = await open()
  await expect(add({ name: 'acme' }, admin)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  await add({ name: 'acme' })
  for (const what of ['disable', 'enable', 'remove']) {
    await expect(change('acme', what, 1, admin)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    await expect(change('acme', what, undefined)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await expect(change('nothing', what, 1)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  }
  for (const body of [{}, { name: 'Acme' }, { name: 'b', path: '/tenants/..' }, { name: 'b', scope: 'all' }]) {
    await expect(add(body)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  }
  expect(await one.tenants.list()).toMatchObject([{ name: 'acme', version: 1 }])
})
