import type { Configuration, WorkflowConfig } from '#config/configuration/configuration.ts'
import type { TaskFlow } from '#sdk/flow/flow.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'

/** The request parameters of a workflow and of all that it calls; undefined for an unknown workflow. */
export function workflowParameters(
  { workflows }: Pick<Configuration, 'workflows'>,
  name: string,
): ReadonlySet<string> | undefined {
  if (!workflows.has(name)) return undefined
  return new Set(withCalled(workflows, name).flatMap(({ parameters }) => parameters))
}

/**
 * The attributes from which the workflow, what it calls or starts, or any target makes logins or finds accounts,
 * and the attributes from which mapping tasks make those; `any` if a mapper may read any attribute. A caller who
 * chooses such an attribute chooses the account.
 */
export function loginAttributes(
  { workflows, targets }: Pick<Configuration, 'workflows' | 'targets'>,
  name: string,
): ReadonlySet<string> | 'any' {
  const flows = withCalled(workflows, name, startsOf).flatMap(({ tasks }) => flowsOf(tasks))
  const ofTargets = Array.from(targets.values(), ({ mapping }) =>
    mapping === undefined ? [] : (mapping.loginReads ?? ('any' as const)),
  )
  const found = new Set<string>()
  const pending = [...flows.map(({ loginReads }) => loginReads ?? []), ...ofTargets]
  for (let names = pending.pop(); names !== undefined; names = pending.pop()) {
    if (names === 'any') return 'any'
    for (const one of names) {
      if (found.has(one)) continue
      found.add(one)
      pending.push(...flows.map(({ sources }) => sources?.get(one.toLowerCase()) ?? []))
    }
  }
  return found
}

/** The groups whose members decide about the workflow and all that it calls, each once. */
export function approverGroups({ workflows }: Pick<Configuration, 'workflows'>, name: string): readonly string[] {
  const flows = withCalled(workflows, name).flatMap(({ tasks }) => flowsOf(tasks))
  return [...new Set(flows.flatMap((flow) => flow.approverGroups ?? []))]
}

/** Whether an approval of the workflow, or of one that it calls, refuses a decision without a comment. */
export const needsComment = ({ workflows }: Pick<Configuration, 'workflows'>, name: string): boolean =>
  withCalled(workflows, name).some(({ tasks }) => flowsOf(tasks).some((flow) => flow.commentRequired === true))

/** The workflow and all that it calls; `more` returns further ones by their tasks. */
export function withCalled(
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

const flowsOf = (tasks: readonly PreparedTask[]): TaskFlow[] =>
  tasks.flatMap(({ flow, onSuccess, onFailure }) => [flow, ...flowsOf(onSuccess), ...flowsOf(onFailure)])

const callsOf = (tasks: readonly PreparedTask[]): string[] =>
  tasks.flatMap(({ calls, onSuccess, onFailure }) => [...calls, ...callsOf(onSuccess), ...callsOf(onFailure)])
