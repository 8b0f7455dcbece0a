import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StatementSync } from 'node:sqlite'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { createGroup, joinGroup } from '#testing/databases/directory-writes.ts'
import { personId, personName } from '#testing/databases/many-people.ts'
import {
  applicationParams,
  applicationStatements,
  makeApplication,
  openTarget,
  runOn,
} from '#testing/databases/sql-schema.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { base, openGateway, People, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams, openStack } from '#testing/scim/scim-stack.ts'
import { customTask, startWorkflows } from '#testing/workflows/workflow-fixture.ts'
import scimGateway from './scim-gateway.ts'

const named = { target: 'people', name: '$groupname$' }
const params = {
  ...builtInParams,
  groupUpdateWorkflow: 'update-group',
  groupNestingWorkflow: 'nest-group',
  journal: '10',
}
const workflows = {
  'update-group': [customTask('tasks.UpdateGroup', { ...named, newName: '$newgroupname$' })],
  'nest-group': [customTask('tasks.NestGroup', { target: 'people' })],
}

const sizes = { small: 10, large: 5000 } as const
const [newcomer, other] = [personId(5000), personId(5001)]
let stack: Awaited<ReturnType<typeof openStack>>
const ids = new Map<string, string>()
const addressOf = (name: string): string => `/Groups/${ids.get(name)}`

beforeAll(async () => {
  stack = await openStack(scimGateway, { params, workflows, people: 5010 })
  for (const [name, size] of Object.entries(sizes)) {
    ids.set(name, (await createGroup(stack.directory, name)).id)
    const add = Array.from({ length: size }, (_, i) => personName(i))
    await joinGroup(stack.directory, name, add)
  }
  ids.set('inner', (await createGroup(stack.directory, 'inner')).id)
})
afterAll(() => stack?.close())

const patchOp = (...operations: JsonValue[]): JsonObject => ({ Operations: operations })
const add = (value: string) => patchOp({ op: 'add', path: 'members', value: [{ value }] })
const remove = (path: string) => patchOp({ op: 'remove', path })
const membersIn = (body: JsonObject) => ((body['members'] ?? []) as JsonObject[]).map(({ value }) => String(value))

/** Parallel changes share commits, as their timing has it. */
const isCommit = /^(begin|savepoint|release|commit)/

/** What SQLite did during the work: its statements, and the rows and characters that they returned. */
async function counted<T>(work: () => Promise<T>) {
  const read = vi.spyOn(StatementSync.prototype, 'all')
  const written = vi.spyOn(StatementSync.prototype, 'run')
  try {
    const result = await work()
    const rows = read.mock.results.map(({ value }) => value as unknown[])
    return {
      result,
      reads: rows.length,
      writes: (written.mock.contexts as StatementSync[]).filter(({ sourceSQL }) => !isCommit.test(sourceSQL)).length,
      rows: rows.flat().length,
      characters: JSON.stringify(rows, (_, value) => (typeof value === 'bigint' ? String(value) : value)).length,
    }
  } finally {
    read.mockRestore()
    written.mockRestore()
  }
}

describe('a change of one member costs the same in a group of 10 and in one of 5,000', () => {
  const changes: readonly (readonly [string, JsonObject, JsonObject])[] = [
    ['by value', add(newcomer), patchOp({ op: 'Remove', path: 'members', value: [{ value: newcomer }] })],
    ['by a filter', add(newcomer), remove(`members[value eq "${newcomer}"]`)],
    ['by a filter with the type', add(newcomer), remove(`members[value eq "${newcomer}" and type eq "User"]`)],
    [
      'by a filter with several',
      patchOp({ op: 'add', path: 'members', value: [{ value: newcomer }, { value: other }] }),
      remove(`members[value eq "${newcomer}" or value eq "${other}"]`),
    ],
  ]

  async function cost(name: string, change: JsonObject, headers: Record<string, string> = {}) {
    const { result, characters, ...work } = await counted(() =>
      stack.respond('PATCH', addressOf(name), change, headers),
    )
    expect([result.status, result.body]).toEqual([204, undefined])
    expect(result.headers['etag']).toMatch(/^W\/"\d+"$/)
    return { work, characters }
  }

  type Conditions = (name: string) => Promise<Record<string, string>>

  /** In one group after the other, since the cost depends on the groups that the member is in. */
  async function expectSame(joining: JsonObject, leaving: JsonObject, conditions: Conditions = async () => ({})) {
    const both = async (name: string) => [
      await cost(name, joining, await conditions(name)),
      await cost(name, leaving, await conditions(name)),
    ]
    // The first call of a statement prepares it.
    await both('small')
    const [small, large] = [await both('small'), await both('large')]
    expect(large.map(({ work }) => work)).toEqual(small.map(({ work }) => work))
    for (const [i, { work, characters }] of small.entries()) {
      expect(work.reads).toBeGreaterThan(0)
      // Only the digits of numbers may differ.
      expect(Math.abs((large[i]?.characters ?? 0) - characters)).toBeLessThan(100)
    }
  }

  test.each(changes)('removed %s', (_, joining, leaving) => expectSame(joining, leaving))

  test('with If-Match', async () => {
    await expectSame(add(newcomer), remove(`members[value eq "${newcomer}"]`), async (name) => {
      const { headers } = await stack.respond('GET', `${addressOf(name)}?excludedAttributes=members`)
      return { 'if-match': String(headers['etag']) }
    })
  })

  test('where the member is a group', async () => {
    const inner = ids.get('inner') ?? ''
    await expectSame(add(inner), remove(`members[value eq "${inner}"]`))
  })

  test('and reads no members where the answer is to have none of them', async () => {
    const address = (name: string) => `${addressOf(name)}?attributes=displayName`
    const read = async (name: string) => {
      const changed = await counted(() => stack.send('PATCH', address(name), add(newcomer)))
      await stack.respond('PATCH', address(name), remove(`members[value eq "${newcomer}"]`))
      return changed
    }
    await read('small')
    const [small, large] = [await read('small'), await read('large')]
    expect(large.result).toMatchObject({ status: 200, body: { displayName: 'large' } })
    expect([large.reads, large.rows]).toEqual([small.reads, small.rows])
  })

  test('and a change of a single member in place is refused before members are read', async () => {
    const change = patchOp({ op: 'replace', path: `members[value eq "${newcomer}"]`, value: { value: other } })
    const refused = (name: string) => counted(() => stack.send('PATCH', addressOf(name), change))
    await refused('small')
    const [small, large] = [await refused('small'), await refused('large')]
    expect(large.result).toMatchObject({ status: 400, body: { scimType: 'mutability' } })
    expect([large.reads, large.rows]).toEqual([small.reads, small.rows])
  })
})

describe('a group of 5,000 members', () => {
  const bodyOf = async (path: string, headers = {}) => {
    const response = await stack.respond('GET', path, undefined, headers)
    if (!(response.body instanceof Readable)) throw new Error('the body is not read in parts')
    return { ...response, body: response.body }
  }

  test('is answered in parts, which together are the group', async () => {
    const { status, headers, body } = await bodyOf(addressOf('large'))
    expect([status, headers['content-length'], headers['etag']]).toEqual([200, undefined, expect.any(String)])
    let parts = 0
    let whole = ''
    for await (const part of body) {
      parts++
      whole += String(part)
      expect(String(part).length).toBeLessThan(400_000)
    }
    expect(parts).toBeGreaterThan(4)
    const group: JsonObject = JSON.parse(whole)
    expect(group).toMatchObject({
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'],
      id: ids.get('large'),
      displayName: 'large',
      meta: { version: headers['etag'] },
    })
    expect(membersIn(group).sort()).toEqual(Array.from({ length: 5000 }, (_, i) => personId(i)))
    expect((group['members'] as JsonObject[])[0]).toEqual({
      value: personId(0),
      $ref: `${base}/Users/${personId(0)}`,
      type: 'User',
      display: personName(0),
    })
  })

  test('is answered with the requested parts of its members', async () => {
    const { body } = await bodyOf(`${addressOf('large')}?attributes=members.value`)
    const group: JsonObject = JSON.parse(await text(body))
    expect(Object.keys(group).sort()).toEqual(['id', 'members', 'schemas'])
    expect((group['members'] as JsonObject[])[4999]).toEqual({ value: personId(4999) })
    const without = await stack.respond('GET', `${addressOf('large')}?excludedAttributes=members`)
    expect(without.body).toBeTypeOf('string')
  })

  test('is answered as it was at its version, without users that were deleted meanwhile', async () => {
    const members = ['first', 'second'].map((_, i) => personId(4990 + i))
    const [leaver = '', deleted = ''] = members
    const { headers, body } = await bodyOf(addressOf('large'))
    await stack.respond('PATCH', addressOf('large'), remove(`members[value eq "${leaver}"]`))
    await stack.respond('PATCH', addressOf('large'), add(newcomer))
    expect((await stack.send('DELETE', `/Users/${deleted}`)).status).toBe(204)
    const shown = membersIn(JSON.parse(await text(body)))
    expect(shown).toHaveLength(4999)
    expect(shown).toContain(leaver)
    expect(shown).not.toContain(deleted)
    expect(shown).not.toContain(newcomer)
    const stale = { 'if-match': String(headers['etag']) }
    expect((await stack.send('PATCH', addressOf('large'), add(leaver), stale)).status).toBe(412)
    await stack.respond('PATCH', addressOf('large'), add(leaver))
    await stack.respond('PATCH', addressOf('large'), remove(`members[value eq "${newcomer}"]`))
  })

  test('HEAD and If-None-Match read no members', async () => {
    const wholly = await counted(async () => text((await bodyOf(addressOf('large'))).body))
    const head = await counted(() => stack.respond('HEAD', addressOf('large')))
    expect(head.result).toMatchObject({ status: 200, headers: { etag: expect.any(String) } })
    expect([head.result.body, head.result.headers['content-length']]).toEqual([undefined, undefined])
    expect(wholly.reads - head.reads).toBeGreaterThanOrEqual(5)
    const etag = String(head.result.headers['etag'])
    const unchanged = await counted(() =>
      stack.respond('GET', addressOf('large'), undefined, { 'if-none-match': etag }),
    )
    expect([unchanged.result.status, unchanged.result.body, unchanged.rows]).toEqual([304, undefined, 1])
  })

  test('a client that leaves ends the reading', async () => {
    const wholly = await counted(async () => text((await bodyOf(addressOf('large'))).body))
    const partly = await counted(async () => {
      const { body } = await bodyOf(addressOf('large'))
      for await (const part of body) if (String(part).includes('"members"')) break
      expect(body.destroyed).toBe(true)
    })
    expect(partly.reads).toBeLessThan(wholly.reads)
  })

  test('a bulk request and an answer that is not shown read no members', async () => {
    const bulk = (name: string) =>
      counted(() =>
        stack.send('POST', '/Bulk', {
          schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
          Operations: [
            { method: 'PATCH', path: addressOf(name), data: add(newcomer) },
            { method: 'PATCH', path: addressOf(name), data: remove(`members[value eq "${newcomer}"]`) },
          ],
        }),
      )
    await bulk('small')
    const [small, large] = [await bulk('small'), await bulk('large')]
    expect([large.reads, large.rows]).toEqual([small.reads, small.rows])
    expect(large.result.body['Operations']).toMatchObject([{ status: '204' }, { status: '204' }])
  })
})

describe('a change of one member of a group in SQL', () => {
  test.each([
    ['tables', applicationParams],
    ['statements', applicationStatements],
  ])('costs the same in a group of 10 and in one of 5,000, in %s', async (_, sqlParams) => {
    const folder = await mkdtemp(join(tmpdir(), 'gatehouse-large-groups-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const url = `sqlite:${join(folder, 'application.db')}`
    await makeApplication(url)
    const series = 'with recursive series(i) as (select 1 union all select i + 1 from series where i < 5001)'
    await runOn(
      url,
      `insert into "People" (person_id, login) ${series} select i, 'user' || i from series`,
      ...Object.values(sizes).map(
        (size, i) =>
          `insert into crew_people (person, crew) ${series} select i, ${i + 1} from series where i <= ${size}`,
      ),
    )
    const people = await openTarget(url, sqlParams)
    onTestFinished(async () => people.close?.())
    const { workflows: runs } = await startWorkflows({
      workflows: {
        'change-members': [
          { taskType: 'addGroup', name: '$groupname$', remove: '$removegroup$' },
          { taskType: 'provision', target: 'people', sync: true, attributes: ['phone'] },
        ],
      },
      targets: { people },
    })
    onTestFinished(async () => runs.close?.())
    const { targets } = fakeModuleHost({ targets: { people } })
    const workflow = { workflowName: 'change-members', groupWorkflow: 'change-members' }
    const { send } = await openGateway(scimGateway, {
      params: { lookupTarget: 'people', uidAttributeName: 'login', ...workflow },
      host: { targets, workflows: runs },
    })
    const idOf = async (path: string, filter: string) => {
      const { body } = await send('GET', `${path}?excludedAttributes=members&filter=${encodeURIComponent(filter)}`)
      return String((body['Resources'] as JsonObject[])[0]?.['id'])
    }
    const user = await idOf('/Users', 'userName eq "user5001"')
    const both = async (group: string) => {
      const address = `/Groups/${encodeURIComponent(await idOf('/Groups', `displayName eq "${group}"`))}`
      const work: object[] = []
      for (const change of [add(user), remove(`members[value eq "${user}"]`)]) {
        const { result, characters, ...same } = await counted(() => send('PATCH', address, change))
        expect([result.status, result.body]).toEqual([204, {}])
        work.push({ ...same, isShort: characters < 20_000 })
      }
      return work
    }
    await both('group1')
    expect(await both('group2')).toEqual(await both('group1'))
  })
})

test('a failure while members are read ends the answer early', async () => {
  const people = new People()
  people.addGroup('red')
  const lookup = people.lookupGroupById.bind(people)
  people.lookupGroupById = async (id, options) => {
    const group = await lookup(id, options)
    async function* memberPages() {
      yield { members: ['a'] }
      throw new Error('the server went away')
    }
    return group && options?.members === true ? { ...group, memberPages } : group
  }
  const { respond } = await openGateway(scimGateway, { people, params: tutorialParams })
  const { status, body } = await respond('GET', '/Groups/red')
  expect(status).toBe(200)
  if (!(body instanceof Readable)) throw new Error('the body is not read in parts')
  onTestFinished(() => void body.destroy())
  await expect(text(body)).rejects.toThrow('the server went away')
})
