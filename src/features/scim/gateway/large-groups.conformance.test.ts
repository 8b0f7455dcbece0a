import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import ldapInsert from '#adapters/directory-inserts/ldap/ldap.ts'
import { VirtualDirectory } from '#directory/virtual-directory.ts'
import { Dn } from '#identity/dn.ts'
import type { JsonObject } from '#kernel/json.ts'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import { addEntry, newBranch, openLdap, quietRequest } from '#testing/ldap/ldap-target.ts'
import { type Slapd, sharedSlapd } from '#testing/ldap/slapd.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { openGateway, type Send } from '#testing/scim/scim-gateway-fixture.ts'
import { customTask, startWorkflows } from '#testing/workflows/workflow-fixture.ts'
import scimGateway from './scim-gateway.ts'

const sizes = { small: 10, large: 5000 } as const

const patchOp = (operation: JsonObject): JsonObject => ({ Operations: [operation] })
const adding = (value: string) => patchOp({ op: 'add', path: 'members', value: [{ value }] })
const removing = (value: string) => patchOp({ op: 'remove', path: `members[value eq "${value}"]` })

describe.skipIf(inject('slapd') === '')('a change of one member of a group in OpenLDAP', () => {
  let slapd: Slapd
  let relay: CountingRelay
  beforeAll(async () => {
    slapd = await sharedSlapd()
    relay = await startCountingRelay(Number(new URL(slapd.url).port))
  })
  afterAll(async () => {
    relay?.close()
  })

  /** Two groups, of which most members are names without an entry, a user and a third group. */
  async function open(more: ParamValues) {
    const branch = await newBranch(slapd)
    const url = `ldap://127.0.0.1:${relay.port}`
    const target = await openLdap(slapd, branch, { url, groupObjectClass: ['groupOfNames'], ...more })
    onTestFinished(() => void target.close?.())
    await target.createUser(userOf('ada'), [], quietRequest)
    await target.createGroup('inner', {}, quietRequest)
    for (const [name, size] of Object.entries(sizes)) {
      const member = Array.from({ length: size }, (_, i) => `uid=other${i},${branch}`)
      await addEntry(slapd, `cn=${name},${branch}`, { objectClass: ['groupOfNames'], cn: [name], member })
    }
    const { workflows } = await startWorkflows({
      workflows: {
        'change-members': [
          { taskType: 'addGroup', name: '$groupname$', remove: '$removegroup$' },
          { taskType: 'provision', target: 'people', sync: true, attributes: [] },
        ],
        'nest-group': [customTask('tasks.NestGroup', { target: 'people' })],
      },
      targets: { people: target },
    })
    onTestFinished(async () => workflows.close?.())
    const { targets } = fakeModuleHost({ targets: { people: target } })
    return { branch, url, target, host: { targets, workflows } }
  }

  const params = {
    lookupTarget: 'people',
    uidAttributeName: 'uid',
    workflowName: 'change-members',
    groupWorkflow: 'change-members',
    groupNestingWorkflow: 'nest-group',
  }

  const idIn = async (send: Send, path: string, filter: string): Promise<string> => {
    const { body } = await send('GET', `${path}?excludedAttributes=members&filter=${encodeURIComponent(filter)}`)
    const [found] = body['Resources'] as JsonObject[]
    return String(found?.['id'])
  }

  /** The bytes that the server answers to joining and to leaving. */
  async function cost(send: Send, member: string, group: string) {
    const bytes: number[] = []
    for (const change of [adding(member), removing(member)]) {
      const before = relay.answered
      const { status, body } = await send('PATCH', `/Groups/${group}`, change)
      expect(status, JSON.stringify(body)).toBe(204)
      bytes.push(relay.answered - before)
    }
    return bytes
  }

  async function expectSame(send: Send) {
    const [small, large, inner] = await Promise.all(
      ['small', 'large', 'inner'].map((name) => idIn(send, '/Groups', `displayName eq "${name}"`)),
    )
    const ada = await idIn(send, '/Users', 'userName eq "ada"')
    for (const member of [ada, inner ?? '']) {
      // The first change also opens connections and reads the schema.
      await cost(send, member, small ?? '')
      const few = await cost(send, member, small ?? '')
      const many = await cost(send, member, large ?? '')
      for (const [i, bytes] of few.entries()) {
        expect(bytes).toBeGreaterThan(0)
        // One name of a member has more than 20 bytes, and all of them 100,000.
        expect(Math.abs((many[i] ?? 0) - bytes)).toBeLessThan(500)
      }
    }
    return { ada, large: `/Groups/${large}` }
  }

  test.each([
    ['with memberOf', { memberOf: 'true' }],
    ['by the member attribute', { memberOf: 'false' }],
    ['with versions', { memberOf: 'false', versionAttribute: 'entryCSN' }],
  ])('reads no other members, %s', async (_, more) => {
    const { host } = await open(more)
    const { send } = await openGateway(scimGateway, { params, host })
    await expectSame(send)
  })

  test('a large group is read page by page, with the groups in it', async () => {
    const { host, target } = await open({ memberOf: 'false' })
    const [large, inner] = await Promise.all(['large', 'inner'].map((name) => target.findGroup(name)))
    if (large === undefined || inner === undefined) throw new Error('no groups')
    await target.changeMemberGroups?.('large', { add: [inner], remove: [] }, quietRequest)
    const read = await target.lookupGroupById(large.id, { members: true, inPages: true })
    expect(read).toMatchObject({ name: 'large', members: [] })
    const pages = await Array.fromAsync(read?.memberPages?.() ?? [])
    expect(pages.map(({ members, memberGroups = [] }) => members.length + memberGroups.length)).toEqual([
      1000, 1000, 1000, 1000, 1000, 1,
    ])
    expect(pages.flatMap(({ memberGroups = [] }) => memberGroups)).toEqual([{ id: inner.id, name: 'inner' }])
    const { send, respond } = await openGateway(scimGateway, { params, host })
    expect((await respond('GET', `/Groups/${large.id}`)).body).toBeInstanceOf(Readable)
    const { body } = await send('GET', `/Groups/${large.id}?attributes=members.value`)
    // The other members are names without an entry.
    expect(body['members']).toEqual([{ value: inner.id }])
  })

  test('reads no other members, looked up in the virtual directory', async () => {
    const { host, url, branch } = await open({ memberOf: 'true' })
    const suffix = Dn.parse('ou=staff,o=Tremolo')
    const issues = noIssues()
    const given = { url, adminDN: slapd.adminDn, adminPasswd: slapd.adminPassword, searchBase: branch }
    const prepared = ldapInsert.prepare(fakeParams(given, ['adminPasswd']), issues, fakeParseContext())
    expect(issueTexts(issues.list)).toEqual([])
    const insert = await prepared.create({ ...fakeModuleHost(), name: 'staff', suffix })
    onTestFinished(() => insert.close?.())
    const { send } = await openGateway(scimGateway, {
      params: {
        ...params,
        mapping: 'scim',
        lookupTarget: '',
        lookupFromLDAP: 'true',
        searchBase: suffix.toString(),
        lookupAttributeName: 'uid',
        idAttributeName: 'entryUUID',
        groupIdName: 'entryUUID',
        groupLookupAttributeName: 'cn',
        groupMemberAttributeName: 'member',
      },
      host: { ...host, directory: new VirtualDirectory([{ name: 'staff', suffix, insert }]) },
    })
    const { ada, large } = await expectSame(send)
    expect((await send('PATCH', large, adding(ada))).status).toBe(204)
    // The others are names without an entry.
    expect((await send('GET', large)).body['members']).toMatchObject([{ value: ada }])
  })
})

interface CountingRelay {
  readonly port: number
  /** The bytes that the server has answered so far. */
  readonly answered: number
  close(): void
}

/** A relay in front of a server on this machine. */
async function startCountingRelay(to: number): Promise<CountingRelay> {
  let answered = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const behind = connect(to, '127.0.0.1')
    for (const socket of [client, behind]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => sockets.delete(socket))
    }
    behind.on('data', (bytes) => {
      answered += bytes.length
    })
    client.pipe(behind)
    behind.pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    get answered() {
      return answered
    },
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
