import { withBoundSubject } from '#engine/workflow/bound-subject.ts'
import { withTimeLimit } from '#engine/workflow/time-limit.ts'
import type { Scope } from '#kernel/scope.ts'
import type { TimeSpan } from '#kernel/time-span.ts'
import type { WorkflowConfig } from '#sdk/module/configuration.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import type { AccessEndOffer } from '#sdk/workflow/access-end.ts'
import type { PreparedTask, WorkflowTask } from '#sdk/workflow/workflow-task.ts'

/** One task of a definition, created and ready to run. */
export interface Step {
  readonly taskType: string
  /** Which one it is, where the task type alone does not say so. */
  readonly name?: string
  readonly task: WorkflowTask
}

/** A workflow, created once per configuration. Every list of tasks in its tree is known by its place. */
export interface Definition {
  readonly name: string
  /** A run is pinned to this. */
  readonly hash: string
  /** Whoever calls chooses when the access ends. */
  readonly accessEnds?: AccessEndOffer
  /** How long a run may take. */
  readonly deadline?: TimeSpan
  /** By place: `''` is the workflow's own list, `2/onSuccess` the list in the third task's branch, and so on. */
  readonly lists: ReadonlyMap<string, readonly Step[]>
}

/** The place of the list in a branch of the `index`-th task of the list at `place`. */
export function branchPlace(place: string, index: number, branch: 'onSuccess' | 'onFailure'): string {
  return place === '' ? `${index}/${branch}` : `${place}/${index}/${branch}`
}

/** Creates the tasks of a workflow; they are closed with the scope. */
export async function createDefinition(config: WorkflowConfig, host: ModuleHost, scope: Scope): Promise<Definition> {
  const lists = new Map<string, readonly Step[]>()
  const pending: { place: string; tasks: readonly PreparedTask[] }[] = [{ place: '', tasks: config.tasks }]
  for (let list = pending.shift(); list !== undefined; list = pending.shift()) {
    const steps: Step[] = []
    for (const [index, prepared] of list.tasks.entries()) {
      const { taskType, name, timeoutMillis, flow } = prepared
      const created = scope.own(await prepared.create(host))
      const task = flow.runsCode === true || flow.setsValues === true ? withBoundSubject(created) : created
      const limited = timeoutMillis === undefined ? task : withTimeLimit(task, timeoutMillis)
      steps.push({ taskType, ...(name === undefined ? {} : { name }), task: limited })
      for (const branch of ['onSuccess', 'onFailure'] as const) {
        if (prepared[branch].length === 0) continue
        pending.push({ place: branchPlace(list.place, index, branch), tasks: prepared[branch] })
      }
    }
    lists.set(list.place, steps)
  }
  const { name, hash, accessEnds, deadline } = config
  return {
    name,
    hash,
    lists,
    ...(accessEnds === undefined ? {} : { accessEnds }),
    ...(deadline === undefined ? {} : { deadline }),
  }
}
