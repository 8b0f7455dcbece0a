import type { Configuration, WorkflowConfig } from '#sdk/configuration.ts'
import type { PreparedTask } from '#sdk/workflow-task.ts'

/** The request parameters of a workflow and of all that it calls; undefined when there is no workflow of that name. */
export function workflowParameters(
  { workflows }: Pick<Configuration, 'workflows'>,
  name: string,
): ReadonlySet<string> | undefined {
  if (!workflows.has(name)) return undefined
  const names = new Set<string>()
  const seen = new Set<string>()
  const pending = [name]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const config: WorkflowConfig | undefined = workflows.get(next)
    if (config === undefined || seen.has(next)) continue
    seen.add(next)
    for (const parameter of config.parameters) names.add(parameter)
    pending.push(...callsOf(config.tasks))
  }
  return names
}

const callsOf = (tasks: readonly PreparedTask[]): string[] =>
  tasks.flatMap(({ calls, onSuccess, onFailure }) => [...calls, ...callsOf(onSuccess), ...callsOf(onFailure)])
