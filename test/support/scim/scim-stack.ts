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
import { openGateway } from '#testing/scim/scim-gateway-fixture.ts'
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

/** A gateway, its workflows and a database target together, on their own database. */
export async function openStack(
  module: FilterModule,
  options: {
    params?: ParamValues
    workflows?: Readonly<Record<string, readonly TaskSpec[]>>
    /** As many users as `insertPeople` makes. */
    people?: number
  } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-scim-'))
  if (options.people !== undefined) await insertPeople({ dataFolder: folder }, options.people)
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger })
  const directory = storage.userDirectory({ name: 'people' })
  const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }))
  const people = databaseTarget(directory, passwords)
  const all = { ...tasks, ...options.workflows }
  const { workflows, audit } = await startWorkflows({
    workflows: all,
    targets: { people },
  })
  const { targets } = fakeModuleHost({ targets: { people } })
  const openUserDirectory = async (wanted: UserDirectoryOptions) => storage.userDirectory(wanted)
  /** A gateway with its own locks, like another process. */
  const source = {
    tasks: (name: string) => parseTasks(all[name] ?? []).tasks,
    mapping: () => undefined,
  }
  const gateway = (params: ParamValues) =>
    openGateway(module, {
      params,
      host: { targets, workflows, openUserDirectory, workflowWrites: (name) => workflowWrites(source, name) },
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
      await people.close()
      await storage.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
