import { renderName } from '#adapters/workflow-tasks/shared/task-template.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Template } from '#kernel/template.ts'
import { type ClusterApi, isCluster } from '#sdk/target/kubernetes-cluster.ts'
import type { Target, TargetRequest } from '#sdk/target/target.ts'
import {
  type CustomTaskPlaces,
  next,
  type TaskContext,
  type TaskHost,
  type TaskOutcome,
  type WorkflowTask,
} from '#sdk/workflow/workflow-task.ts'

/** The cluster of a step, and the options for its changes. */
export interface StepCluster {
  readonly target: string
  readonly api: ClusterApi
  readonly request: TargetRequest
}

type Act = (cluster: StepCluster, context: TaskContext) => Promise<TaskOutcome | undefined>

/** Reports a fixed name of a target that does not exist. */
export function referToCluster(target: Template, parameter: string, { context, pathOf }: CustomTaskPlaces): void {
  if (target.keys.length === 0 && target.text !== '') context.refer('target', target.text, pathOf(parameter))
}

/** A task that uses a cluster: the real one, or that of the preview. Without an outcome, the next task follows. */
export const onCluster = (target: Template, { targets }: Pick<TaskHost, 'targets'>, act: Act): WorkflowTask => {
  const run = async (context: TaskContext, find: (name: string) => Target): Promise<TaskOutcome> => {
    const name = renderName(target, context, 'target')
    return (await act({ target: name, api: clusterOf(name, find), request: context.forTarget(name) }, context)) ?? next
  }
  return {
    run: (context) => run(context, (name) => targets.get(name)),
    preview: (context) => run(context, (name) => context.target(name)),
  }
}

/** A name from the request may be that of any target, or of none. */
function clusterOf(name: string, find: (name: string) => Target): ClusterApi {
  let target: Target
  try {
    target = find(name)
  } catch (cause) {
    throw new GatewayError('WORKFLOW_FAILED', `there is no target ${JSON.stringify(name.slice(0, 100))}`, { cause })
  }
  if (isCluster(target)) return target.objects
  throw new GatewayError('WORKFLOW_FAILED', `target "${name}" is not a Kubernetes cluster`)
}
