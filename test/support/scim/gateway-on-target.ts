import { onTestFinished } from 'vitest'
import scimGateway from '#features/scim/gateway/scim-gateway.ts'
import type { Target } from '#sdk/target/target.ts'
import { workflowWrites } from '#sdk/workflow/workflow-writes.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { openGateway } from '#testing/scim/scim-gateway-fixture.ts'
import { parseTasks, startWorkflows, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'

const tasks: Readonly<Record<string, readonly TaskSpec[]>> = {
  'sync-user': [{ taskType: 'provision', target: 'people', sync: true }],
  'delete-user': [{ taskType: 'delete', target: 'people' }],
  'update-group': [{ taskType: 'customTask', className: 'tasks.UpdateGroup', params: { target: 'people' } }],
}

/** A gateway with real workflows on the target `people`, until the test ends. */
export async function openGatewayOn(people: Target, params: ParamValues) {
  const { workflows } = await startWorkflows({ workflows: tasks, targets: { people } })
  onTestFinished(async () => workflows.close?.())
  const { targets } = fakeModuleHost({ targets: { people } })
  const source = { tasks: (name: string) => parseTasks(tasks[name] ?? []).tasks, mapping: () => undefined }
  const host = { targets, workflows, workflowWrites: (name: string) => workflowWrites(source, name) }
  return openGateway(scimGateway, { params, host })
}
