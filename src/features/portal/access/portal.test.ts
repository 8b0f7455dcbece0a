import { expect, test } from 'vitest'
import type { Configuration } from '#config/configuration/configuration.ts'
import { secretHash } from '#kernel/ids.ts'
import { NotificationStore } from '#mail/notification-store.ts'
import { memoryDatabase, rowsOf } from '#testing/databases/memory-database.ts'
import { subject } from '#testing/login/subjects.ts'
import { loadText } from '#testing/modules/check-text.ts'
import { fakeCatalog } from '#testing/modules/fake-catalog.ts'
import { fakePortal } from '#testing/modules/fake-portal.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { Portal, PortalMemory } from './portal.ts'
import { PortalStore } from './portal-store.ts'

const yaml = `
apiVersion: openunison.tremolo.io/v1
kind: Org
metadata: { name: below }
spec: { uuid: u2, parent: u1, showInReports: false, azRules: [{ scope: dn, constraint: o=x }] }
---
apiVersion: openunison.tremolo.io/v1
kind: Org
metadata: { name: top }
spec: { uuid: u1, label: The top, azRules: [{ scope: filter, constraint: (uid=*) }] }
---
apiVersion: openunison.tremolo.io/v1
kind: PortalUrl
metadata: { name: wiki }
spec:
  label: Wiki
  url: https://wiki.example.com/
  org: u2
  icon: |
    iVBORw0K
    Ggo=
  azRules: [{ scope: dn, constraint: o=x }]
---
apiVersion: openunison.tremolo.io/v1
kind: Report
metadata: { name: r }
spec: { name: Open requests, orgId: u1, sql: select 1 }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: join }
spec: { label: Join, inList: true, orgId: u1, owner: Ops, accessEnds: { longest: P1M }, parameters: [accessEnds], tasks: [] }
`

function loaded(): Configuration {
  const { configuration } = loadText(yaml, fakeCatalog)
  if (configuration === undefined) throw new Error('the configuration does not load')
  return configuration
}

test('the views match the configuration, with orgs from the top', () => {
  const { memory } = fakePortal()
  const portal = new Portal(loaded(), new Map(), memory)
  expect(portal).toMatchObject({
    orgs: [
      { id: 'u1', name: 'The top', parent: undefined, showInReports: true, rules: [{ scope: 'filter' }] },
      { id: 'u2', name: 'below', parent: 'u1', showInReports: false, rules: [{ scope: 'dn', constraint: 'o=x' }] },
    ],
    urls: [{ name: 'wiki', org: 'u2', icon: 'iVBORw0KGgo=', rules: [{ scope: 'dn' }] }],
    reports: [{ name: 'Open requests', org: 'u1', spec: { sql: 'select 1' } }],
    workflows: [
      {
        name: 'join',
        label: 'Join',
        description: '',
        org: 'u1',
        inList: true,
        accessEnds: { required: false, longest: { months: 1, millis: 0 } },
        dynamic: undefined,
      },
    ],
  })
  expect(portal.memory).toBe(memory)
})

test('a dynamic workflow reads its source, which may be added later', async () => {
  const [workflow] = loaded().workflows.values()
  if (workflow === undefined) throw new Error('there is no workflow')
  const source = {
    className: 'x',
    create: async () => {
      throw new Error('not to be created')
    },
  }
  const dynamic = { source, annotations: [{ name: 'Group', parameter: 'group' }] }
  const sources = new Map()
  const configuration = { ...loaded(), workflows: new Map([['join', { ...workflow, dynamic }]]) }
  const [shown] = new Portal(configuration, sources, fakePortal().memory).workflows
  const ann = subject('uid=ann,o=x')
  await expect(shown?.dynamic?.parameterSets(ann)).rejects.toThrow('not ready yet')
  sources.set('join', { parameterSets: async () => [{ group: 'admins' }] })
  expect(await shown?.dynamic?.parameterSets(ann)).toEqual([{ group: 'admins' }])
  expect(shown?.dynamic?.annotations).toEqual([{ name: 'Group', parameter: 'group' }])
})

const ann = userRef('ann')

test("D13: the stored form of a reference can't be used", async () => {
  const database = memoryDatabase()
  const memory = new PortalMemory(new PortalStore(database), new NotificationStore(database))
  const offers = [
    { workflow: 'join', parameters: { group: 'a' } },
    { workflow: 'join', parameters: { group: 'b' } },
  ]
  const [first = '', second = ''] = await memory.offer(ann, offers)
  expect(first).toMatch(/^[\w-]{43}$/)
  expect(first).not.toBe(second)
  const stored = (await rowsOf(database, 'portal_offers')).map(({ reference }) => reference)
  expect(stored).toEqual([secretHash(first), secretHash(second)].sort())
  expect(await memory.offered(ann, second)).toEqual(offers[1])
  expect(await memory.offered(ann, secretHash(first))).toBeUndefined()
  expect(await memory.offered(userRef('bob'), first)).toBeUndefined()
  expect(await memory.offer(ann, [])).toEqual([])
})

test('lists recent items latest first, without unknown kinds', async () => {
  const database = memoryDatabase()
  const store = new PortalStore(database)
  const memory = new PortalMemory(store, new NotificationStore(database))
  for (const [i, kind] of ['url', 'other', 'workflow'].entries()) {
    await store.mark(ann, 'favorite', { kind, name: `${i}` }, 10)
    await store.note(ann, 'recent', { kind, name: `${i}` }, 10)
  }
  expect((await memory.favorites(ann)).map(({ name }) => name)).toEqual(['0', '2'])
  expect((await memory.recent(ann)).map(({ name }) => name)).toEqual(['2', '0'])
})
