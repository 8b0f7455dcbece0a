import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { expect, onTestFinished } from 'vitest'
import { databaseTarget } from '#adapters/targets/database/database.ts'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import { readAddress } from '#database/databases.ts'
import type { JournalEntry } from '#features/scim/journal/journal-entry.ts'
import { systemClock } from '#kernel/clock.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { FilterModule } from '#sdk/filter/filter.ts'
import { workflowWrites } from '#sdk/workflow/workflow-writes.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { openGateway, type ResourceTypes } from '#testing/scim/scim-gateway-fixture.ts'
import { MemoryGroups } from '#testing/targets/memory-groups.ts'
import { openDurable } from '#testing/workflows/durable-fixture.ts'
import { customTask, type OwnTasks, parseTasks, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'

/** The targets of the workflows. */
export const both = ['people', 'second']
export const provision = (target: string): TaskSpec => ({
  taskType: 'provision',
  target,
  sync: true,
  setPassword: true,
})
const onBoth = (className: string): TaskSpec[] => both.map((target) => customTask(className, { target }))
export const workflows: Readonly<Record<string, readonly TaskSpec[]>> = {
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
  dryRun: 'all',
}

export const patchOf = (...operations: JsonValue[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})
export const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
export const dry = { 'dry-run': 'true' }

interface Options {
  readonly types?: ResourceTypes
  readonly workflows?: Readonly<Record<string, readonly TaskSpec[]>>
  readonly tasks?: OwnTasks
  readonly params?: ParamValues
}

/** Users and groups of one target, by name. */
export interface State {
  readonly user: Record<string, { attributes: Record<string, readonly string[]>; groups: string[] }>
  readonly group: Record<string, Record<string, readonly string[]>>
}

/** A gateway in front of the database and of a second system, which both take every write. */
export async function openDryRuns(scimGateway: FilterModule, url: string, options: Options = {}) {
  const all = { ...workflows, ...options.workflows }
  const second = new MemoryGroups()
  const process = await openDurable(url, { workflows: {} })
  const { storage } = process
  const directory = storage.userDirectory({ name: 'people' })
  const people = databaseTarget(directory, new Passwords(storage.userDirectory({ name: 'people/passwords' })))
  onTestFinished(() => people.close())
  const others = Object.values(options.types ?? {}).map(({ target }) => {
    const passwords = new Passwords(storage.userDirectory({ name: `${target}/passwords` }))
    const own = databaseTarget(storage.userDirectory({ name: target }), passwords)
    onTestFinished(() => own.close())
    return [target, own] as const
  })
  const targets = { people, second, ...Object.fromEntries(others) }
  await process.reload({ workflows: all, targets, ...(options.tasks && { tasks: options.tasks }) })
  const entries: JournalEntry[] = []
  const source = {
    tasks: (name: string) => parseTasks(all[name] ?? [], options.tasks).tasks,
    mapping: () => undefined,
  }
  const { send } = await openGateway(scimGateway, {
    params: { ...gatewayParams, ...options.params },
    types: options.types ?? {},
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
  for (const endpoint of ['/Users', ...Object.values(options.types ?? {}).map((type) => type.endpoint)])
    expect((await send('GET', endpoint)).status).toBe(200)
  entries.length = 0
  const readTables = await openTables(url)
  /** Every row of every table, and all that the second system has and was asked to write. */
  const dump = async () => {
    const writes = second.calls.filter(({ method }) => method !== 'findUser').length
    return { rows: await readTables(), writes, groups: second.listed(), passwords: [...second.passwords] }
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

/** Reads all rows as texts, over one connection and on PostgreSQL with one statement: tests do so often. */
async function openTables(url: string): Promise<() => Promise<readonly string[]>> {
  const { dialect, address } = readAddress(url)
  if (dialect === 'sqlite') {
    const database = new DatabaseSync(address)
    onTestFinished(() => database.close())
    database.exec('pragma busy_timeout = 2000')
    const names = "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name"
    const tables = database.prepare(names).all()
    const read = tables.map(({ name }) => [name, database.prepare(`select * from "${name}"`)] as const)
    return async () => read.flatMap(([name, all]) => all.all().map((row) => `${name} ${JSON.stringify(row)}`)).sort()
  }
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  const { rows } = await client.query('select tablename as name from pg_tables where schemaname = current_schema()')
  const reads = rows.map(({ name }) => `select '${name} ' || one::text as row from "${name}" one`)
  const all = `${reads.join(' union all ')} order by 1`
  return async () => (await client.query(all)).rows.map(({ row }) => String(row))
}
