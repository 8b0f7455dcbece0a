import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { folderSource } from '#config/watch/configuration-source.ts'
import type { Tenant } from '#features/scim/tenants/tenant.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { usable } from './reload.ts'
import { TenantFollower } from './tenant-follower.ts'

const tenant = (name = 'acme', more: Partial<Tenant> = {}): Tenant => ({
  name,
  host: 'idm.example.com',
  path: `/tenants/${name}/scim`,
  profile: 'okta',
  version: 1,
  created: new Date(0),
  createdBy: 'Grace',
  ...more,
})

const written = (kind: string, name: string, spec: object) =>
  `apiVersion: openunison.tremolo.io/v1\nkind: ${kind}\nmetadata: { name: ${name} }\nspec: ${JSON.stringify(spec)}\n`

const target = (name: string) => written('Target', name, { className: 'targets.Database' })

const application = (name: string, uri: string) =>
  written('Application', name, {
    cookieConfig: { cookiesEnabled: false },
    urls: [{ hosts: ['idm.example.com'], uri, azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }] }],
  })

function open(tenants: readonly Tenant[] | (() => readonly Tenant[])) {
  const config = temporaryFolder()
  mkdirSync(config, { recursive: true })
  const source = folderSource({ config, catalog, environment: {} })
  onTestFinished(() => source.close())
  const list = async () => (typeof tenants === 'function' ? tenants() : tenants)
  const follower = new TenantFollower({ store: { list }, stored: source.stored, log: silentLogger })
  onTestFinished(() => follower.close())
  const write = (text: string) => writeFileSync(join(config, 'written.yaml'), text)
  write(target('people'))
  return { source, follower, write }
}

const loose = { strict: false, served: [] }

test('a tenant is a gateway of the configuration, with users, workflows and a client of its own', async () => {
  const { source, follower } = open([tenant(), tenant('zenith', { disabled: new Date(1), profile: 'tolerant' })])
  const before = await source.load()
  expect(await follower.read()).toBe(true)
  expect(await follower.read()).toBe(false)
  const loaded = await source.load()
  expect(loaded.issues).toEqual([])
  expect(loaded.hash).not.toBe(before.hash)
  const { applications, targets, workflows } = usable(loaded, { strict: true, served: [] })
  expect(applications.map(({ name, urls }) => [name, urls[0]?.uri, urls[0]?.rules[0]?.constraint])).toEqual([
    ['scim-acme', '/tenants/acme/scim', 'uid=acme,ou=tokens,o=Tremolo'],
    ['scim-zenith', '/tenants/zenith/scim', 'uid=zenith,ou=disabled,o=Tremolo'],
  ])
  expect([...targets.keys()]).toEqual(expect.arrayContaining(['people', 'acme-users', 'zenith-users']))
  expect(workflows.size).toBe(14)
})

test('what is written wins over a tenant with the same names, and stays served', async () => {
  const { source, follower, write } = open([tenant(), tenant('zenith')])
  await follower.read()
  const served = (await source.load()).found
  write(target('acme-users'))
  const loaded = await source.load()
  const { applications, targets } = usable(loaded, { strict: true, served })
  expect(applications.map(({ name }) => name)).toEqual(['scim-zenith'])
  expect([...targets.keys()]).toContain('acme-users')
  expect(loaded.issues).toMatchObject([
    { level: 'warning', file: 'stored:tenant/acme@1', message: expect.stringContaining('written.yaml:3:') },
  ])
})

test('what is written wins over a tenant with the same address', async () => {
  const { source, follower, write } = open([tenant(), tenant('zenith')])
  await follower.read()
  const served = (await source.load()).found
  write(application('mine', '/tenants/acme/scim/'))
  const loaded = await source.load()
  const { applications } = usable(loaded, { strict: true, served })
  expect(applications.map(({ name, setAside }) => [name, setAside !== undefined])).toEqual([
    ['mine', false],
    ['scim-acme', true],
    ['scim-zenith', false],
  ])
})

test('a change is followed by a reload, and what is known stays while the database is away', async () => {
  let tenants: readonly Tenant[] | undefined = []
  const { source, follower } = open(() => {
    if (tenants === undefined) throw new GatewayError('TARGET_UNREACHABLE', 'away')
    return tenants
  })
  const reloads: string[][] = []
  let wake = (): void => {}
  const reloaded = () => new Promise<void>((resolve) => (wake = resolve))
  const first = reloaded()
  follower.follow(async () => {
    reloads.push(usable(await source.load(), loose).applications.map(({ name }) => name))
    wake()
  }, 5)
  tenants = [tenant()]
  await first
  tenants = undefined
  await expect(follower.read()).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  expect(source.stored.list).toHaveLength(1)
  const second = reloaded()
  tenants = [tenant('zenith')]
  await second
  expect(reloads).toEqual([['scim-acme'], ['scim-zenith']])
})
