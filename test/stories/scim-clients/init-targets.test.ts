import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { startFakeObjectApi } from '#testing/kubernetes/fake-object-api.ts'
import { newBranch } from '#testing/ldap/ldap-target.ts'
import { startSlapd } from '#testing/ldap/slapd.ts'
import { describeInit, type InitSystem } from '#testing/scim/init-target.ts'
import { coreUser, enterpriseUser, type ScimClient, startScimServer } from '#testing/scim/scim-client.ts'
import { fresh } from '#testing/scim/scim-story.ts'
import { crmSecrets, startCrmApplication } from '#testing/targets/crm-application.ts'
import { entraStory } from './entra.ts'
import { oktaStory } from './okta.ts'
import { oktaSpecStory } from './okta-spec.ts'
import { oneloginStory } from './onelogin.ts'
import { sailpointStory } from './sailpoint.ts'

const systems: readonly InitSystem[] = [
  { name: 'without a target', open: async () => ({ args: [] }) },
  {
    name: 'sql on SQLite',
    open: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'gatehouse-tables-'))
      return {
        args: ['--target', 'sql', '--create-target', '--target-url', `sqlite:${join(folder, 'crm.db')}`],
        close: () => rm(folder, { recursive: true, force: true }),
      }
    },
  },
  {
    name: 'sql on PostgreSQL',
    isThere: () => postgresUrl() !== '',
    open: async () => ({ args: ['--target', 'sql', '--create-target', '--target-url', await freshSchema()] }),
  },
  {
    name: 'ldap',
    isThere: () => inject('slapd') !== '',
    open: async () => {
      const slapd = await startSlapd({ config: true })
      const [base, other] = [await newBranch(slapd), await newBranch(slapd)]
      const where = ['--target-base', base, '--target-user', slapd.adminDn]
      return {
        args: ['--target', 'ldap', '--create-target', '--target-url', slapd.url, ...where],
        secret: slapd.adminPassword,
        prepare: async (folder) => {
          await slapd.add(join(folder, 'target-schema.ldif'), 'cn=config')
          // --create-target created these below the base.
          const entries = join(folder, 'target-entries.ldif')
          writeFileSync(entries, readFileSync(entries, 'utf8').replaceAll(base, other))
          await slapd.add(entries)
        },
        close: () => slapd.stop(),
      }
    },
  },
  {
    name: 'webhook',
    open: async () => {
      const application = await startCrmApplication()
      return {
        args: ['--target', 'webhook', '--target-url', application.url],
        secret: crmSecrets.bearerToken,
        prepare: async (folder) => {
          // This application also requires a signature.
          writeFileSync(join(folder, 'config/secrets/accounts/signing'), crmSecrets.signingSecret)
          const file = join(folder, 'config/target.yaml')
          const signing = '    - name: signingSecret\n      secretName: accounts\n      secretKey: signing\n'
          writeFileSync(file, `${readFileSync(file, 'utf8')}${signing}`)
        },
        close: () => application.stop(),
      }
    },
  },
  {
    name: 'scim',
    open: async () => {
      const server = await startScimServer()
      const other = server.client('/scim/v2')
      return {
        args: ['--target', 'scim', '--target-url', other.base],
        secret: other.token,
        close: async () => void (await server.process.stop()),
      }
    },
  },
  {
    name: 'kubernetes',
    // A group exists while a User object names it, and the login is the name of the object.
    can: { groups: false, renames: false },
    open: async () => {
      const cluster = await startFakeObjectApi()
      return {
        args: ['--target', 'kubernetes', '--target-url', cluster.url],
        secret: 'a-token',
        close: () => cluster.close(),
      }
    },
  },
]

for (const system of systems) {
  describeInit(system, (client) => {
    describe('Okta', () => oktaStory(client('okta'), system.can))
    describe("Okta's SPEC suite", () => oktaSpecStory(client('okta')))
    describe('Entra ID', () => entraStory(client('entra'), system.can))
    describe('SailPoint', () => sailpointStory(client('sailpoint'), system.can))
    describe('OneLogin', () => oneloginStory(client('onelogin'), system.can))
    describe('any client', () => genericStory(client('tolerant')))
  })
}

/** The profile that Ping and other clients push: everything by PUT, then single changes, deactivation and return. */
function genericStory(client: () => ScimClient): void {
  test('a whole profile is pushed, changed, deactivated, and returns', async () => {
    const userName = fresh('ping')
    const profile = {
      schemas: [coreUser, enterpriseUser],
      userName,
      externalId: fresh('external'),
      name: { formatted: 'Ann Bee', givenName: 'Ann', familyName: 'Bee' },
      displayName: 'Ann',
      title: 'Engineer',
      locale: 'en-US',
      preferredLanguage: 'en',
      emails: [
        { value: `${userName}@example.com`, type: 'work', primary: true },
        { value: 'ann@home.example', type: 'home' },
      ],
      phoneNumbers: [
        { value: '+47 1', type: 'work', primary: true },
        { value: '+47 2', type: 'mobile' },
      ],
      addresses: [{ streetAddress: '1 Main St', locality: 'Oslo', country: 'NO', type: 'work', primary: true }],
      active: true,
      [enterpriseUser]: { department: 'R&D', employeeNumber: '7' },
    }
    const created = await client().post('/Users', profile)
    expect(created).toMatchObject({ status: 201, body: profile })
    const path = `/Users/${created.body.id}`
    const put = { ...profile, title: 'Lead', locale: 'nb-NO' }
    expect(await client().put(path, put)).toMatchObject({ status: 200, body: put })
    const patched = await client().patch(path, [
      { op: 'replace', path: 'emails[type eq "home"].value', value: 'new@home.example' },
      { op: 'remove', path: 'phoneNumbers[type eq "mobile"]' },
      { op: 'add', path: 'title', value: 'Chief' },
    ])
    expect(patched.status).toBe(200)
    expect(patched.body).toMatchObject({ title: 'Chief', emails: [profile.emails[0], { value: 'new@home.example' }] })
    expect(patched.body.phoneNumbers).toMatchObject([profile.phoneNumbers[0]])
    for (const filter of [`externalId eq "${profile.externalId}"`, `emails.value eq "${userName}@example.com"`]) {
      expect([filter, (await client().filter('/Users', filter)).body.totalResults]).toEqual([filter, 1])
    }
    const removed = await client().patch(path, [{ op: 'remove', path: 'emails' }])
    expect([removed.status, removed.body.emails]).toEqual([200, undefined])
    expect((await client().patch(path, [{ op: 'replace', path: 'active', value: false }])).body.active).toBe(false)
    const back = await client().post('/Users', profile)
    expect([back.status, back.body.id, back.body.active]).toEqual([201, created.body.id, true])
  })

  test('a user whose `active` is removed is not deactivated', async () => {
    const { body } = await client().post('/Users', { schemas: [coreUser], userName: fresh('user'), active: true })
    const { status } = await client().patch(`/Users/${body.id}`, [{ op: 'remove', path: 'active' }])
    expect([200, 400]).toContain(status)
    expect((await client().get(`/Users/${body.id}`)).body.active ?? true).toBe(true)
  })

  test('/Schemas announces what was stored', async () => {
    const { body } = await client().get(`/Schemas/${coreUser}`)
    const names = body.attributes.map(({ name }: { name: string }) => name)
    expect(names).toEqual(expect.arrayContaining(['title', 'locale', 'emails', 'phoneNumbers', 'active']))
  })
}
