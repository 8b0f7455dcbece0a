import { describe, expect, onTestFinished, test } from 'vitest'
import type { z } from 'zod'
import { databaseTarget } from '#adapters/targets/database/database.ts'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import type { JournalEntry } from '#features/scim/journal/journal-entry.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { workflowWrites } from '#sdk/workflow/workflow-writes.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { openGateway } from '#testing/scim/scim-gateway-fixture.ts'
import { MemoryGroups } from '#testing/targets/memory-groups.ts'
import { openDurable } from '#testing/workflows/durable-fixture.ts'
import { customTask, type OwnTasks, parseTasks, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import { type dryRunMessage, isDryRun } from './dry-run.ts'
import scimGateway from './scim-gateway.ts'

type Message = z.infer<typeof dryRunMessage>
type Step = Message['runs'][number]['steps'][number]

const both = ['people', 'second']
const provision = (target: string): TaskSpec => ({ taskType: 'provision', target, sync: true, setPassword: true })
const onBoth = (className: string): TaskSpec[] => both.map((target) => customTask(className, { target }))
const workflows: Readonly<Record<string, readonly TaskSpec[]>> = {
  'sync-user': both.map(provision),
  'delete-user': both.map((target) => ({ taskType: 'delete', target })),
  'change-members': [{ taskType: 'addGroup', name: '$groupname$', remove: '$removegroup$' }, ...both.map(provision)],
  'create-group': onBoth('tasks.CreateGroup'),
  'update-group': onBoth('tasks.UpdateGroup'),
  'delete-group': onBoth('tasks.DeleteGroup'),
  'nest-group': [customTask('tasks.NestGroup', { target: 'people' })],
}

const gatewayParams: ParamValues = {
  mapping: 'scim',
  lookupTarget: 'people',
  workflowName: 'sync-user',
  deleteUserWorkflowName: 'delete-user',
  groupWorkflow: 'change-members',
  groupCreateWorkflow: 'create-group',
  groupUpdateWorkflow: 'update-group',
  groupDeleteWorkflow: 'delete-group',
  groupNestingWorkflow: 'nest-group',
}

const patchOf = (...operations: JsonValue[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})
const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const dry = { 'dry-run': 'true' }

interface Options {
  readonly workflows?: Readonly<Record<string, readonly TaskSpec[]>>
  readonly tasks?: OwnTasks
  readonly params?: ParamValues
}

/** Users and groups of one target, by name. */
interface State {
  readonly user: Record<string, { attributes: Record<string, readonly string[]>; groups: string[] }>
  readonly group: Record<string, Record<string, readonly string[]>>
}

async function open(url: string, options: Options = {}) {
  const all = { ...workflows, ...options.workflows }
  const second = new MemoryGroups()
  const process = await openDurable(url, { workflows: {} })
  const { storage } = process
  const directory = storage.userDirectory({ name: 'people' })
  const people = databaseTarget(directory, new Passwords(storage.userDirectory({ name: 'people/passwords' })))
  onTestFinished(() => people.close())
  const targets = { people, second }
  await process.reload({ workflows: all, targets, ...(options.tasks && { tasks: options.tasks }) })
  const entries: JournalEntry[] = []
  const source = {
    tasks: (name: string) => parseTasks(all[name] ?? [], options.tasks).tasks,
    mapping: () => undefined,
  }
  const { send } = await openGateway(scimGateway, {
    params: { ...gatewayParams, ...options.params },
    host: {
      clock: systemClock,
      targets: fakeModuleHost({ targets }).targets,
      workflows: process.runs,
      runs: process.runs,
      openUserDirectory: async (wanted) => storage.userDirectory(wanted),
      workflowWrites: (name) => workflowWrites(source, name),
      journals: {
        open: () => ({ add: (entry) => void entries.push(entry), close: async () => {} }),
        list: async () => ({ entries: [] }),
      },
    },
  })
  // The first read of a directory enters its name.
  expect((await send('GET', '/Users')).status).toBe(200)
  entries.length = 0
  const { sql, dialect } = await openStores(url)
  const tables =
    dialect === 'sqlite'
      ? "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name"
      : 'select tablename as name from pg_tables where schemaname = current_schema() order by tablename'
  /** Every row of every table, and all that the second system has and was asked to write. */
  const dump = async () => {
    const rows: Record<string, readonly string[]> = {}
    for (const { name } of await sql(tables)) {
      rows[String(name)] = (await sql(`select * from "${name}"`)).map((row) => JSON.stringify(row)).sort()
    }
    const writes = second.calls.filter(({ method }) => method !== 'findUser').length
    return { rows, writes, groups: second.listed(), passwords: [...second.passwords] }
  }
  const state = async (): Promise<Record<string, State>> => {
    const users = (await directory.searchUsers({ offset: 0, limit: 100 })).items
    const groups = (await directory.searchGroups({ offset: 0, limit: 100 })).items
    const own: State = {
      user: Object.fromEntries(
        users.map((one) => [
          one.userID,
          { attributes: { ...one.attributes.toObject() }, groups: [...one.groups].sort() },
        ]),
      ),
      group: Object.fromEntries(groups.map((one) => [one.name, { ...one.attributes?.toObject() }])),
    }
    const known = users.flatMap(({ userID }) => {
      const stored = second.stored(userID)
      return stored === undefined ? [] : [[userID, { ...stored, groups: stored.groups.sort() }] as const]
    })
    const other = { user: Object.fromEntries(known), group: Object.fromEntries(second.listed()) }
    return { people: own, second: other }
  }
  return { send, dump, state, second, directory, process, entries }
}

/** What a target has after the steps of a preview. */
function applied(before: Record<string, State>, steps: readonly Step[]): Record<string, State> {
  const after = structuredClone(before)
  for (const step of steps) {
    if (step.kind !== 'user' && step.kind !== 'group') continue
    const { kind, action, name, newName = name, attributes, joins, leaves } = step
    const target = after[step.target]
    if (target === undefined) throw new Error(`no target ${step.target}`)
    const { user, group } = target
    const values = (present: Readonly<Record<string, readonly string[]>> = {}) => {
      // Groups in groups are not attributes of them.
      const shown = attributes.filter((one) => !one.secret && one.name !== 'members')
      for (const one of shown) expect(present[one.name] ?? [], `${one.name} before`).toEqual(one.before)
      const changed = { ...present, ...Object.fromEntries(shown.map((one) => [one.name, one.after])) }
      return Object.fromEntries(Object.entries(changed).filter(([, list]) => list.length > 0))
    }
    if (kind === 'user') {
      const present = user[name]
      const groups = new Set(present?.groups).difference(new Set(leaves)).union(new Set(joins))
      delete user[name]
      if (action !== 'delete') user[newName] = { attributes: values(present?.attributes), groups: [...groups].sort() }
      continue
    }
    const present = group[name]
    delete group[name]
    if (action !== 'delete') group[newName] = values(present)
    // The second system keeps the names of groups in its users.
    for (const one of step.target === 'people' ? Object.values(user) : []) {
      const rest = one.groups.filter((joined) => joined !== name)
      const renamed = action !== 'delete' && rest.length < one.groups.length ? [newName] : []
      one.groups = [...rest, ...renamed].sort()
    }
  }
  return after
}

onEachDatabase('dry runs', (freshUrl) => {
  test('change nothing, and show what the same request then does', async () => {
    const { send, dump, state } = await open(await freshUrl())
    const ids = new Map<string, string>()
    const at = (name: string): string => `/${name === name.toUpperCase() ? 'Groups' : 'Users'}/${ids.get(name) ?? ''}`
    const member = (...names: string[]) => names.map((name) => ({ value: ids.get(name) ?? '' }))
    /** A dry run by header or query, the same request, and the id of what it created. */
    const change = async (method: string, path: string, body?: JsonObject, created?: string) => {
      const [before, rows] = [await state(), await dump()]
      const byQuery = ids.size % 2 === 0
      const shown = await send(method, byQuery ? `${path}?dryRun=true` : path, body, byQuery ? {} : dry)
      const title = `${method} ${path} ${JSON.stringify(body)} ${JSON.stringify(shown.body)}`
      expect(shown.status, title).toBe(200)
      expect(shown.body, title).toMatchObject({ complete: true, waits: false })
      expect(await dump(), title).toEqual(rows)
      const { runs } = shown.body as unknown as Message
      const done = await send(method, path, body)
      expect(done.status, JSON.stringify(done.body)).toBeLessThan(300)
      const steps = runs.flatMap((run) => run.steps)
      expect(applied(before, steps), title).toEqual(await state())
      if (created !== undefined) ids.set(created, String(done.body['id']))
      return steps
    }
    const ann = { userName: 'ann', title: 'Dr', active: true, emails: [{ value: 'ann@x.org', type: 'work' }] }
    await change('POST', '/Users', ann, 'ann')
    await change('POST', '/Users', { userName: 'bob', password: 'correct horse battery' }, 'bob')
    await change(
      'POST',
      '/Users',
      { userName: 'eve', [enterprise]: { manager: { value: ids.get('ann') ?? '' } } },
      'eve',
    )
    await change('PATCH', at('ann'), patchOf({ op: 'replace', path: 'title', value: 'Prof' }))
    await change(
      'PATCH',
      at('ann'),
      patchOf({ op: 'remove', path: 'title' }, { op: 'add', path: 'nickName', value: 'A' }),
    )
    await change('PATCH', at('ann'), patchOf({ op: 'replace', path: 'active', value: 'False' }))
    await change('PUT', at('ann'), { userName: 'anna', title: 'Dame', active: true })
    await change('PATCH', at('bob'), patchOf({ op: 'replace', path: 'password', value: 'staple horse battery' }))
    await change('POST', '/Groups', { displayName: 'crew', members: member('ann', 'bob') }, 'CREW')
    await change('POST', '/Groups', { displayName: 'staff' }, 'STAFF')
    await change('PATCH', at('CREW'), patchOf({ op: 'add', path: 'members', value: member('eve') }))
    await change('PATCH', at('CREW'), patchOf({ op: 'remove', path: `members[value eq "${ids.get('bob')}"]` }))
    await change('PUT', at('CREW'), { displayName: 'crew', members: member('bob') })
    await change('PATCH', at('CREW'), patchOf({ op: 'replace', path: 'displayName', value: 'team' }))
    const nested = await change('PATCH', at('STAFF'), patchOf({ op: 'add', path: 'members', value: member('CREW') }))
    expect(nested).toMatchObject([{ kind: 'group', action: 'change', target: 'people', name: 'staff' }])
    const gone = await change('DELETE', at('ann'))
    expect(gone.map((step) => [step.kind, 'name' in step && step.name, 'action' in step && step.action])).toEqual([
      ...both.map(() => ['user', 'anna', 'delete']),
      ...both.map(() => ['user', 'eve', 'change']),
    ])
    await change('DELETE', at('CREW'))
  })

  test('leave a deleted user deleted that the change would bring back as it is', async () => {
    const deactivate: TaskSpec[] = [
      { taskType: 'addAttribute', name: 'active', value: 'true', remove: true },
      { taskType: 'addAttribute', name: 'active', value: 'false', remove: false },
      { taskType: 'provision', target: 'people', sync: true, attributes: ['active'] },
    ]
    const { send, dump } = await open(await freshUrl(), {
      workflows: { 'sync-user': [provision('people')], 'delete-user': deactivate },
    })
    const { body } = await send('POST', '/Users', { userName: 'ann', active: true })
    const address = `/Users/${body['id']}`
    expect((await send('DELETE', address)).status).toBe(204)
    const before = await dump()
    const sent = { userName: 'ann', active: false }
    const shown = await send('POST', '/Users', sent, dry)
    expect([shown.status, shown.body]).toMatchObject([
      200,
      { complete: false, runs: [], detail: 'The deleted user would be shown again.' },
    ])
    expect(await dump()).toEqual(before)
    expect((await send('GET', address)).status).toBe(404)
    expect((await send('POST', '/Users', sent)).status).toBe(201)
    expect((await send('GET', address)).body).toMatchObject({ active: false })
  })

  test('have the errors of the change', async () => {
    const { send, dump, directory } = await open(await freshUrl())
    const { body } = await send('POST', '/Users', { userName: 'ann', title: 'Dr', active: true })
    await send('POST', '/Groups', { displayName: 'crew' })
    const [crew] = (await directory.searchGroups({ offset: 0, limit: 1 })).items
    const user = `/Users/${body['id']}`
    const noMember = patchOf({ op: 'add', path: 'members', value: [{ value: 'nobody' }] })
    for (const [method, path, sent, status, headers] of [
      ['POST', '/Users', { userName: 'ANN' }, 409],
      ['POST', '/Users', { title: 'x' }, 400],
      ['POST', '/Users', { userName: 'x', active: 'maybe' }, 400],
      ['POST', '/Users', { userName: 'x', [enterprise]: { manager: { value: 'nobody' } } }, 400],
      ['PUT', '/Users/nobody', { userName: 'x' }, 404],
      ['PATCH', user, patchOf({ op: 'move', path: 'title', value: 'x' }), 400],
      ['PATCH', user, patchOf({ op: 'replace', path: 'titel', value: 'x' }), 400],
      ['PATCH', user, patchOf({ op: 'replace', path: 'title', value: 'x' }), 412, { 'if-match': 'W/"other"' }],
      ['DELETE', user, undefined, 412, { 'if-match': 'W/"other"' }],
      ['DELETE', '/Users/nobody', undefined, 404],
      ['POST', '/Groups', { displayName: 'Crew' }, 409],
      ['POST', '/Groups', { displayName: 'new', members: [{ value: 'nobody' }] }, 400],
      ['PATCH', `/Groups/${crew?.id}`, noMember, 400],
      [
        'PATCH',
        `/Groups/${crew?.id}`,
        patchOf({ op: 'add', path: 'members', value: [{ value: crew?.id ?? '' }] }),
        400,
      ],
      ['DELETE', '/Groups/nobody', undefined, 404],
      ['POST', '/Bulk', { schemas: [], Operations: 'none' }, 400],
      ['PUT', '/Users', undefined, 405],
      ['POST', '/Nothing', {}, 404],
    ] as readonly (readonly [string, string, JsonObject | undefined, number, Record<string, string>?])[]) {
      const rows = await dump()
      const shown = await send(method, path, sent, { ...headers, ...dry })
      const title = `${method} ${path} ${JSON.stringify(sent)}`
      expect([shown.status, await dump()], `${title} ${JSON.stringify(shown.body)}`).toEqual([status, rows])
      expect((await send(method, path, sent, headers)).body, title).toEqual(shown.body)
    }
  })

  test('are refused what a target would refuse, and remember nothing of it', async () => {
    const { send, dump, second, state } = await open(await freshUrl())
    second.put({ userID: 'taken', attributes: { title: ['Sir'] } })
    const { body } = await send('POST', '/Users', { userName: 'ann' })
    const before = await dump()
    const rename = patchOf({ op: 'replace', path: 'userName', value: 'taken' })
    const shown = await send('PATCH', `/Users/${body['id']}`, rename, dry)
    expect([shown.status, shown.body['scimType']], JSON.stringify(shown.body)).toEqual([409, 'uniqueness'])
    second.before = () => {
      throw new GatewayError('TARGET_UNREACHABLE', 'down')
    }
    const crew = { displayName: 'crew', members: [{ value: String(body['id']) }] }
    expect((await send('POST', '/Groups', crew, dry)).status).toBe(503)
    second.before = () => {}
    expect(await dump()).toEqual(before)
    expect((await send('POST', '/Groups', { displayName: 'crew' })).status).toBe(201)
    // A creation that failed part way could be continued.
    expect((await send('POST', '/Groups', { displayName: 'crew' })).status).toBe(409)
    expect((await state())['second']?.user['ann']?.groups).toEqual([])
  })

  test('do not try an unfinished change again', async () => {
    const { send, dump, second } = await open(await freshUrl())
    const { body } = await send('POST', '/Users', { userName: 'ann' })
    const address = `/Users/${body['id']}`
    second.before = ({ method }) => {
      if (method !== 'findUser') throw new GatewayError('TARGET_UNREACHABLE', 'down')
    }
    const title = patchOf({ op: 'replace', path: 'title', value: 'Dr' })
    expect((await send('PATCH', address, title)).status).toBe(503)
    second.before = () => {}
    const before = await dump()
    const shown = await send('PATCH', address, title, dry)
    expect([shown.status, shown.headers['retry-after'] ?? shown.body['detail']]).toEqual([
      503,
      'An earlier change of the same user or group is unfinished. Try again.',
    ])
    expect((await send('DELETE', address, undefined, dry)).status).toBe(503)
    expect((await send('POST', '/Users', { userName: 'ann' }, dry)).status).toBe(503)
    expect(await dump()).toEqual(before)
  })

  test('name what is unknown, and what would wait', async () => {
    const approval: TaskSpec = {
      taskType: 'approval',
      label: 'Delete it',
      emailTemplate: 'Please decide.',
      mailAttr: 'mail',
      failureEmailSubject: 'No',
      failureEmailMsg: 'No',
      approvers: [{ scope: 'filter', constraint: '(uid=boss)' }],
      onSuccess: [{ taskType: 'delete', target: 'people' }],
    }
    let ran = 0
    const { send, dump } = await open(await freshUrl(), {
      workflows: {
        'sync-user': [provision('people'), { taskType: 'own' }],
        'delete-user': [approval],
      },
      tasks: {
        own: () => {
          ran++
          return { kind: 'next' }
        },
      },
    })
    const { body } = await send('POST', '/Users', { userName: 'ann' })
    expect([ran, typeof body['id']]).toEqual([1, 'string'])
    const before = await dump()
    const changed = await send('PATCH', `/Users/${body['id']}`, patchOf({ op: 'add', path: 'title', value: 'Dr' }), dry)
    expect(changed.body).toMatchObject({
      complete: false,
      waits: false,
      runs: [{ workflow: 'sync-user', subject: 'ann', steps: [{ kind: 'user' }, { kind: 'unforeseen', task: 'own' }] }],
    })
    const removed = await send('DELETE', `/Users/${body['id']}`, undefined, dry)
    expect(removed.body).toMatchObject({
      complete: true,
      waits: true,
      runs: [
        {
          steps: [
            { kind: 'approval', label: 'Delete it' },
            { kind: 'user', action: 'delete', name: 'ann' },
          ],
        },
      ],
    })
    expect([ran, await dump()]).toEqual([1, before])
  })

  test('preview each operation of a bulk request', async () => {
    const { send, dump, entries } = await open(await freshUrl(), { params: { journal: '10' } })
    const { body } = await send('POST', '/Users', { userName: 'ann' })
    const before = await dump()
    const post = (bulkId: string, path: string, data: JsonObject) => ({ method: 'POST', path, bulkId, data })
    const title = patchOf({ op: 'add', path: 'title', value: 'Dr' })
    const request = {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
      Operations: [
        post('b', '/Users', { userName: 'bob' }),
        post('c', '/Groups', { displayName: 'crew', members: [{ value: 'bulkId:b' }] }),
        post('d', '/Users', { userName: 'ann' }),
        { method: 'PATCH', path: '/Users/bulkId:d', data: title },
        { method: 'PATCH', path: '/Users/bulkId:x', data: title },
        { method: 'PATCH', path: `/Users/${body['id']}`, data: title },
        { method: 'DELETE', path: `/Users/${body['id']}` },
        { method: 'DELETE', path: `/Users/${body['id']}?dryRun=false` },
      ],
    }
    const shown = await send('POST', '/Bulk', request, dry)
    const outcomes = (shown.body['Operations'] as JsonObject[]).map(({ status, response, ...rest }) => [
      status,
      (response as JsonObject)['complete'],
      rest['location'] === undefined ? '' : 'at',
    ])
    expect(outcomes).toEqual([
      ['200', true, ''],
      ['200', false, ''],
      ['409', undefined, ''],
      ['409', undefined, ''],
      ['400', undefined, ''],
      ['200', true, 'at'],
      ['200', false, 'at'],
      ['404', undefined, 'at'],
    ])
    const first = await send('POST', '/Bulk', { ...request, failOnErrors: 1 }, dry)
    expect(first.body['Operations']).toHaveLength(3)
    expect(await dump()).toEqual(before)
    expect(entries.map(({ dryRun, workflows: runs }) => [dryRun, runs.length])).toEqual([
      [undefined, 1],
      [true, 0],
      [true, 0],
    ])
  })

  test('show at most what has room, and say so', async () => {
    const { send, dump } = await open(await freshUrl(), {
      workflows: { 'change-members': workflows['change-members'] ?? [] },
    })
    const users: JsonObject[] = []
    for (let n = 0; n < 4; n++) users.push((await send('POST', '/Users', { userName: `user${n}` })).body)
    const members = users.map(({ id }) => ({ value: id ?? '' }))
    const before = await dump()
    const shown = await send('POST', '/Groups', { displayName: 'crew', members }, dry)
    const { runs, complete } = shown.body as unknown as Message
    expect([runs.map(({ subject }) => subject), complete]).toEqual([
      ['group crew', 'user0', 'user1', 'user2', 'user3'],
      true,
    ])
    const { body } = await send('POST', '/Groups', { displayName: 'inner' }, dry)
    expect(body).toMatchObject({ complete: true })
    expect(await dump()).toEqual(before)
    const inner = (await send('POST', '/Groups', { displayName: 'inner' })).body
    const outer = await send('POST', '/Groups', { displayName: 'outer', members: [{ value: inner['id'] ?? '' }] }, dry)
    expect(outer.body).toMatchObject({ complete: false, detail: expect.stringMatching(/does not exist yet/) })
  })

  test('are refused where the gateway does not offer them', async () => {
    const { send, dump } = await open(await freshUrl(), { params: { dryRun: 'refuse' } })
    const before = await dump()
    for (const [path, headers] of [
      ['/Users', dry],
      ['/Users?dryRun=true', {}],
    ] as const) {
      const { status, body } = await send('POST', path, { userName: 'ann' }, headers)
      expect([status, body['scimType']]).toEqual([400, 'invalidValue'])
    }
    expect(await dump()).toEqual(before)
    expect((await send('POST', '/Users?dryRun=false', { userName: 'ann' })).status).toBe(201)
  })

  test('are not requested in a body, even with `ignoreUnmapped`', async () => {
    const { send, dump } = await open(await freshUrl(), { params: { ignoreUnmapped: ['dryRun'] } })
    const user = (await send('POST', '/Users', { userName: 'ann' })).body
    const group = (await send('POST', '/Groups', { displayName: 'crew' })).body
    const before = await dump()
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:BulkRequest']
    const post = { method: 'POST', path: '/Users', bulkId: 'b', data: { userName: 'bob' } }
    const title = { op: 'add', path: 'title', value: 'Dr' }
    for (const [method, path, body] of [
      ['POST', '/Bulk', { schemas, dryRun: true, Operations: [post] }],
      ['POST', '/Bulk', { schemas, 'Dry-Run': false, Operations: [post] }],
      ['POST', '/Bulk', { schemas, Operations: [post, { ...post, bulkId: 'c', dry_run: 'true' }] }],
      ['PATCH', `/Users/${user['id']}`, { ...patchOf(title), dryRun: true }],
      ['PATCH', `/Users/${user['id']}`, patchOf({ ...title, dryrun: true })],
      [
        'PATCH',
        `/Groups/${group['id']}`,
        { ...patchOf({ op: 'replace', path: 'displayName', value: 'x' }), dryRun: true },
      ],
      ['POST', '/Users', { userName: 'bob', dryRun: true }],
      ['POST', '/Users', { userName: 'bob', [enterprise]: { 'X-Dry-Run': true } }],
      ['PUT', `/Users/${user['id']}`, { userName: 'ann', title: 'Dr', dry_run: 'true' }],
      ['PATCH', `/Users/${user['id']}`, patchOf({ op: 'add', value: { title: 'Dr', dryRun: true } })],
      ['PATCH', `/Users/${user['id']}`, patchOf(title, { op: 'add', path: 'dryRun', value: true })],
      ['POST', '/Groups', { displayName: 'staff', dryRun: true }],
      ['PUT', `/Groups/${group['id']}`, { displayName: 'staff', dryRun: true }],
      ['PATCH', `/Groups/${group['id']}`, patchOf({ op: 'replace', value: { displayName: 'x', dryRun: true } })],
    ] as const) {
      const { status, body: answer } = await send(method, path, body)
      expect([status, answer['scimType'], answer['detail']], JSON.stringify(body)).toEqual([
        400,
        'invalidValue',
        expect.stringMatching(/has no effect in a body\. Nothing was changed\./),
      ])
    }
    const data = { ...patchOf(title), dryRun: true }
    const operation = { method: 'PATCH', path: `/Users/${user['id']}`, data }
    const create = { ...post, data: { ...post.data, dryRun: true } }
    const { body } = await send('POST', '/Bulk', { schemas, Operations: [operation, create] })
    const refused = { status: '400', response: { scimType: 'invalidValue' } }
    expect(body['Operations']).toMatchObject([refused, refused])
    expect(await dump()).toEqual(before)
  })

  test('do nothing for a value that is not understood', async () => {
    const { send, dump } = await open(await freshUrl())
    const before = await dump()
    for (const [value, query] of [
      ['yes', ''],
      ['', ''],
      ['TRUE', ''],
      ['true, true', ''],
      ['true', 'dryRun=false'],
      ['false', 'dryRun=true'],
      [undefined, 'dryRun'],
      [undefined, 'dryrun=True'],
      [undefined, 'dryRun=false&dryRun=true'],
      [undefined, 'dryRun=true&dry-run=all'],
    ] as const) {
      const headers: Record<string, string> = value === undefined ? {} : { 'dry-run': value }
      const { status, body } = await send('POST', `/Users?${query}`, { userName: 'ann' }, headers)
      const { scimType, detail } = body
      expect([status, scimType, detail], `${value} ${query}`).toEqual([
        400,
        'invalidValue',
        expect.stringMatching(/^Dry-Run: /),
      ])
    }
    expect(await dump()).toEqual(before)
  })
})

describe('a dry run is recognized', () => {
  const read = (headers: Record<string, string | string[]>, query = '') =>
    isDryRun({ headers, query: new URLSearchParams(query) })

  test.each([
    [{ 'dry-run': 'true' }, ''],
    [{ 'x-dry-run': 'true' }, ''],
    [{ dryrun: 'true' }, ''],
    [{ dry_run: 'true' }, ''],
    [{}, 'dryRun=true'],
    [{}, 'DRYRUN=true'],
    [{}, 'dry-run=true'],
    [{}, 'attributes=id&%64ryRun=true'],
    [{ 'dry-run': ['true', 'true'] }, 'dryRun=true'],
  ])('in %j and %j', (headers, query) => {
    expect(read(headers, query)).toBe(true)
  })

  test.each([
    [{}, ''],
    [{ 'dry-run': 'false' }, 'dryRun=false'],
    [{ prefer: 'dry-run' }, 'filter=dryRun'],
  ])('not in %j and %j', (headers, query) => {
    expect(read(headers, query)).toBe(false)
  })

  test('never by half', () => {
    expect(() => read({ 'dry-run': ['true', 'false'] })).toThrow('differ')
    expect(() => read({ 'x-dry-run': 'no' }, 'dryRun=true')).toThrow('neither true nor false')
  })
})
