import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { databaseTarget } from '#adapters/targets/database/database.ts'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import type { UserDirectoryOptions } from '#identity/user-directory.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { FilterModule } from '#sdk/filter/filter.ts'
import { workflowWrites } from '#sdk/workflow/workflow-writes.ts'
import { openStorage } from '#server/composition/stores.ts'
import { insertPeople } from '#testing/databases/many-people.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { openGateway, type ResourceTypes } from '#testing/scim/scim-gateway-fixture.ts'
import { parseTasks, startWorkflows, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'

/** The smallest configuration. */
export const builtInParams: ParamValues = {
  mapping: 'scim',
  lookupTarget: 'people',
  workflowName: 'sync-user',
  deleteUserWorkflowName: 'delete-user',
  groupWorkflow: 'change-members',
}

const tasks: Readonly<Record<string, readonly TaskSpec[]>> = {
  'sync-user': [{ taskType: 'provision', target: 'people', sync: true }],
  'delete-user': [{ taskType: 'delete', target: 'people' }],
  'change-members': [
    { taskType: 'addGroup', name: '$groupname$', remove: '$removegroup$' },
    { taskType: 'provision', target: 'people', sync: true },
  ],
}

/** Two tasks for each type: one writes its resources, one deletes them. */
const typeTasks = (types: ResourceTypes): Record<string, readonly TaskSpec[]> =>
  Object.fromEntries(
    Object.values(types).flatMap(({ workflow, deleteWorkflow = '', target }) => [
      [workflow, [{ taskType: 'provision', target, sync: true }]],
      [deleteWorkflow, [{ taskType: 'delete', target }]],
    ]),
  )

/** A gateway, its workflows and a database target together, on their own database. */
export async function openStack(
  module: FilterModule,
  options: {
    params?: ParamValues
    workflows?: Readonly<Record<string, readonly TaskSpec[]>>
    /** As many users as `insertPeople` makes. */
    people?: number
    /** The database; a new file if absent. */
    url?: string
    /** Each is stored in a database target of its own. */
    types?: ResourceTypes
  } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-scim-'))
  if (options.people !== undefined) await insertPeople({ dataFolder: folder }, options.people)
  const { url, types = {} } = options
  const storage = openStorage({ url, dataFolder: folder, clock: systemClock, log: silentLogger })
  const directory = storage.userDirectory({ name: 'people' })
  const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }))
  const people = databaseTarget(directory, passwords)
  const others = Object.values(types).map(({ target }) => {
    const own = storage.userDirectory({ name: target })
    return [target, databaseTarget(own, new Passwords(storage.userDirectory({ name: `${target}/passwords` })))] as const
  })
  const targets = { people, ...Object.fromEntries(others) }
  const all = { ...tasks, ...typeTasks(types), ...options.workflows }
  const { workflows, audit } = await startWorkflows({
    workflows: all,
    targets,
  })
  const { targets: served } = fakeModuleHost({ targets })
  const openUserDirectory = async (wanted: UserDirectoryOptions) => storage.userDirectory(wanted)
  /** A gateway with its own locks, like another process. */
  const source = {
    tasks: (name: string) => parseTasks(all[name] ?? []).tasks,
    mapping: () => undefined,
  }
  const gateway = (params: ParamValues) =>
    openGateway(module, {
      params,
      types,
      host: { targets: served, workflows, openUserDirectory, workflowWrites: (name) => workflowWrites(source, name) },
    })
  const { send, respond } = await gateway(options.params ?? builtInParams)
  return {
    send,
    respond,
    gateway,
    directory,
    /** The directory in which gateways mark users that a delete workflow only deactivated. */
    marks: () => openUserDirectory({ name: 'scim-deleted/target/people' }),
    workflows,
    audit,
    async close(): Promise<void> {
      await workflows.close?.()
      for (const target of Object.values(targets)) await target.close()
      await storage.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
