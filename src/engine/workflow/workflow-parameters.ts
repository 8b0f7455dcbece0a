import type { Configuration, WorkflowConfig } from '#sdk/configuration.ts'
import type { PreparedTask } from '#sdk/workflow-task.ts'

/** The request parameters of a workflow and of all that it calls; undefined when there is no workflow of that name. */
export function workflowParameters(
  { workflows }: Pick<Configuration, 'workflows'>,
  name: string,
): ReadonlySet<string> | undefined {
  if (!workflows.has(name)) return undefined
  return new Set(withCalled(workflows, name).flatMap(({ parameters }) => parameters))
}

/**
 * The attributes that the workflow, what it calls or starts, or any target makes logins of; `any` where a mapper may read anything
 * for one. A caller who chooses such an attribute chooses the account.
 */
export function loginAttributes(
  { workflows, targets }: Pick<Configuration, 'workflows' | 'targets'>,
  name: string,
): ReadonlySet<string> | 'any' {
  const ofTasks = withCalled(workflows, name, startsOf).flatMap(({ tasks }) => loginReadsOf(tasks))
  const ofTargets = Array.from(targets.values(), ({ mapping }) =>
    mapping === undefined ? [] : (mapping.loginReads ?? ('any' as const)),
  )
  const all = [...ofTasks, ...ofTargets]
  return all.includes('any') ? 'any' : new Set(all.flatMap((names) => (names === 'any' ? [] : names)))
}

function withCalled(
  workflows: Configuration['workflows'],
  name: string,
  more: (tasks: readonly PreparedTask[]) => readonly (readonly string[] | 'any')[] = () => [],
): readonly WorkflowConfig[] {
  const found = new Map<string, WorkflowConfig>()
  const pending = [name]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const config: WorkflowConfig | undefined = workflows.get(next)
    if (config === undefined || found.has(next)) continue
    found.set(next, config)
    const others = more(config.tasks).flatMap((names) => (names === 'any' ? [...workflows.keys()] : names))
    pending.push(...callsOf(config.tasks), ...others)
  }
  return [...found.values()]
}

const startsOf = (tasks: readonly PreparedTask[]): (readonly string[] | 'any')[] =>
  tasks.flatMap(({ flow, onSuccess, onFailure }) => [flow.starts ?? [], ...startsOf(onSuccess), ...startsOf(onFailure)])

const loginReadsOf = (tasks: readonly PreparedTask[]): (readonly string[] | 'any')[] =>
  tasks.flatMap(({ flow, onSuccess, onFailure }) => [
    flow.loginReads ?? [],
    ...loginReadsOf(onSuccess),
    ...loginReadsOf(onFailure),
  ])

const callsOf = (tasks: readonly PreparedTask[]): string[] =>
  tasks.flatMap(({ calls, onSuccess, onFailure }) => [...calls, ...callsOf(onSuccess), ...callsOf(onFailure)])
