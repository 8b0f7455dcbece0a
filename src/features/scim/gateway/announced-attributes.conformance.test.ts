import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { databaseTarget } from '#adapters/targets/database/database.ts'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import plugin from '#adapters/targets/plugin/plugin.ts'
import { systemClock } from '#kernel/clock.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { silentLogger } from '#kernel/logger.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import type { Target } from '#sdk/target/target.ts'
import { workflowWrites } from '#sdk/workflow/workflow-writes.ts'
import { openStorage } from '#server/composition/stores.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { applicationParams, makeApplication, openTarget } from '#testing/databases/sql-schema.ts'
import { newBranch, openLdap } from '#testing/ldap/ldap-target.ts'
import { sharedSlapd } from '#testing/ldap/slapd.ts'
import { leastCost } from '#testing/login/least-cost.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { scimBehind } from '#testing/scim/scim-behind.ts'
import { openGateway, type Send } from '#testing/scim/scim-gateway-fixture.ts'
import { openTargetOn } from '#testing/scim/scim-target-fixture.ts'
import { crmParams, openWebhook, startCrmApplication } from '#testing/targets/crm-application.ts'
import { parseTasks, startWorkflows, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import scimGateway from './scim-gateway.ts'

interface Opened {
  readonly target: Target
  close(): Promise<void>
}

interface Row {
  readonly name: string
  readonly isThere?: () => boolean
  /** Announced attributes of users and groups, among others, that are stored. */
  readonly users: readonly string[]
  /** Empty where groups can't be created. */
  readonly groups: readonly string[]
  /** An attribute that it can't store; undefined where it stores everything. */
  readonly refused: string | undefined
  open(): Promise<Opened>
}

async function database(databaseUrl?: string): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-announced-'))
  const url = databaseUrl === undefined ? {} : { url: databaseUrl }
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger, ...url })
  const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }), leastCost)
  return {
    target: databaseTarget(storage.userDirectory({ name: 'people' }), passwords),
    close: async () => {
      await storage.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const sqlParams = {
  'column.userName': 'login',
  'column.displayName': 'given name',
  'column.title': 'phone',
  'column.active': 'active',
  'groupColumn.externalId': 'about',
}

const everything = ['name', 'displayName', 'title', 'active', 'emails', 'addresses', 'x509Certificates']

const rows: readonly Row[] = [
  {
    name: 'a database on SQLite',
    users: everything,
    groups: ['displayName'],
    refused: undefined,
    open: () => database(),
  },
  {
    name: 'a database on PostgreSQL',
    isThere: () => postgresUrl() !== '',
    users: everything,
    groups: ['displayName'],
    refused: undefined,
    open: async () => database(await freshSchema()),
  },
  {
    name: 'SQL tables',
    users: ['displayName', 'title', 'active'],
    groups: ['displayName'],
    refused: 'nickName',
    open: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'gatehouse-announced-sql-'))
      const url = `sqlite:${join(folder, 'application.db')}`
      await makeApplication(url)
      const target = await openTarget(url, { ...applicationParams, ...sqlParams })
      return { target, close: async () => rm(folder, { recursive: true, force: true }) }
    },
  },
  {
    name: 'an LDAP server',
    isThere: () => inject('slapd') !== '',
    users: ['name', 'displayName', 'title', 'preferredLanguage'],
    groups: ['displayName'],
    refused: 'active',
    open: async () => {
      const slapd = await sharedSlapd()
      const branch = await newBranch(slapd)
      const target = await openLdap(slapd, branch, {
        objectClass: ['inetOrgPerson'],
        'default.cn': '${uid}',
        'default.sn': '${uid}',
        'attribute.userName': 'uid',
        'attribute.name.familyName': 'sn',
        'attribute.name.givenName': 'givenName',
        groupObjectClass: 'groupOfNames',
        'groupAttribute.externalId': 'description',
      })
      return { target, close: async () => {} }
    },
  },
  {
    name: 'a second gateway',
    users: everything,
    groups: ['displayName'],
    refused: undefined,
    open: async () => {
      const behind = await scimBehind()
      return { target: await openTargetOn(behind), close: async () => {} }
    },
  },
  {
    name: 'a webhook',
    users: ['displayName', 'active'],
    groups: ['displayName'],
    refused: 'title',
    open: async () => {
      const application = await startCrmApplication()
      return { target: await openWebhook(crmParams({ url: application.url })), close: () => application.stop() }
    },
  },
  {
    name: 'a plug-in',
    users: everything,
    groups: [],
    refused: undefined,
    open: async () => {
      const javaScript = readFileSync('examples/plugin-target/target.ts', 'utf8')
      const prepared = plugin.prepare(fakeParams({ javaScript }), noIssues(), fakeParseContext())
      return { target: await prepared.create({ ...fakeModuleHost(), name: 'crm' }), close: async () => {} }
    },
  },
]

const workflows: Readonly<Record<string, readonly TaskSpec[]>> = {
  'sync-user': [{ taskType: 'provision', target: 'people', sync: true }],
  'create-group': [{ taskType: 'customTask', className: 'tasks.CreateGroup', params: { target: 'people' } }],
  'update-group': [{ taskType: 'customTask', className: 'tasks.UpdateGroup', params: { target: 'people' } }],
}

const params = {
  mapping: 'scim',
  lookupTarget: 'people',
  workflowName: 'sync-user',
  groupCreateWorkflow: 'create-group',
  groupUpdateWorkflow: 'update-group',
}

/** A value of the attribute's type, with all announced parts that clients may write. */
function sample(attribute: JsonObject, n: number): JsonValue {
  const subs = (attribute['subAttributes'] ?? []) as readonly JsonObject[]
  const parts = subs.filter((sub) => sub['mutability'] !== 'readOnly')
  const one = (): JsonValue => {
    switch (attribute['type']) {
      case 'complex':
        return Object.fromEntries(parts.map((sub) => [String(sub['name']), sample(sub, n)]))
      case 'boolean':
        return n % 2 === 0
      case 'integer':
      case 'decimal':
        return n
      case 'dateTime':
        return `2026-01-0${n}T00:00:00Z`
      case 'binary':
        return Buffer.from(`v${n}`).toString('base64')
      default:
        return attribute['name'] === 'preferredLanguage' ? (['en', 'de'][n % 2] ?? 'en') : `v${n}`
    }
  }
  return attribute['multiValued'] === true ? [one()] : one()
}

const patch = (path: string, value: JsonValue): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: [{ op: 'replace', path, value }],
})

for (const row of rows) {
  describe.skipIf(row.isThere?.() === false)(`the announced schema in front of ${row.name}`, () => {
    let opened: Opened
    let send: Send
    let close: () => Promise<void>
    beforeAll(async () => {
      opened = await row.open()
      const targets = { people: opened.target }
      const started = await startWorkflows({ workflows, targets })
      const source = { tasks: (name: string) => parseTasks(workflows[name] ?? []).tasks, mapping: () => undefined }
      const host = {
        targets: fakeModuleHost({ targets }).targets,
        workflows: started.workflows,
        workflowWrites: (name: string) => workflowWrites(source, name),
      }
      send = (await openGateway(scimGateway, { params, host })).send
      close = async () => {
        await started.workflows.close?.()
        await opened.target.close?.()
        await opened.close()
      }
    })
    afterAll(() => close?.())

    async function announced(urn: string): Promise<readonly JsonObject[]> {
      const { status, body } = await send('GET', `/Schemas/${urn}`)
      return status === 404 ? [] : (body['attributes'] as JsonObject[])
    }

    /** Writes each announced attribute and reads it again; returns the names of those that came back. */
    async function written(address: string, urn: string, own: ReadonlySet<string>): Promise<string[]> {
      const kept: string[] = []
      const isExtension = urn.includes(':extension:')
      for (const attribute of await announced(urn)) {
        const name = String(attribute['name'])
        if (own.has(name)) continue
        const path = isExtension ? `${urn}:${name}` : name
        for (const n of [1, 2]) {
          const value = sample(attribute, n)
          const answer = await send('PATCH', address, patch(path, value))
          if (attribute['mutability'] === 'readOnly') {
            expect([path, answer.status]).toEqual([path, 400])
            continue
          }
          if (answer.status >= 400) {
            expect([path, answer.status < 500]).toEqual([path, true])
            continue
          }
          const { body } = await send('GET', address)
          const shown = isExtension ? (body[urn] as JsonObject | undefined)?.[name] : body[name]
          expect([path, shown]).toEqual([path, value])
          if (n === 2) kept.push(name)
        }
      }
      return kept
    }

    test('of users is stored and read back, or rejected', async () => {
      const { body } = await send('POST', '/Users', { userName: 'ann' })
      const address = `/Users/${String(body['id'])}`
      const kept = await written(address, userSchema.id, new Set(['userName', 'groups']))
      expect(kept).toEqual(expect.arrayContaining([...row.users]))
      await written(address, enterpriseUserSchema.id, new Set())
    })

    test('of groups is stored and read back, or rejected', async () => {
      const core = 'urn:ietf:params:scim:schemas:core:2.0:Group'
      const { status, body } = await send('POST', '/Groups', { displayName: 'crew' })
      expect(status).toBe(row.groups.length === 0 ? 501 : 201)
      if (row.groups.length === 0) return
      const address = `/Groups/${String(body['id'])}`
      const kept = await written(address, core, new Set(['members']))
      if ((await announced(core))[0]?.['mutability'] !== 'immutable') expect(kept).toEqual([...row.groups])
    })

    test('is all that can be changed', async () => {
      const names = new Set((await announced(userSchema.id)).map(({ name }) => name))
      const { body } = await send('POST', '/Users', { userName: 'bea' })
      const others = userSchema.attributes.filter(({ name }) => !names.has(name))
      for (const attribute of others) {
        const value = sample(JSON.parse(JSON.stringify(attribute)) as JsonObject, 1)
        const { status } = await send('PATCH', `/Users/${String(body['id'])}`, patch(attribute.name, value))
        expect([attribute.name, status]).toEqual([attribute.name, 400])
      }
      expect(row.refused === undefined || !names.has(row.refused)).toBe(true)
    })
  })
}
