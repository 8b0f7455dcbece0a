import type { Dn } from '#identity/dn.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'

type TasksOf = (workflow: string) => readonly PreparedTask[] | undefined

/** Where the last task that names a part of the directory reads the user again, in this workflow or in one it calls. */
export function reloadRoot(tasksOf: TasksOf, workflow: string, seen: ReadonlySet<string> = new Set()): Dn | undefined {
  if (seen.has(workflow)) return undefined
  const inner = new Set([...seen, workflow])
  const lastOf = (tasks: readonly PreparedTask[]): Dn | undefined =>
    tasks.reduceRight<Dn | undefined>((found, task) => found ?? rootOf(task), undefined)
  const rootOf = ({ flow, calls, onSuccess, onFailure }: PreparedTask): Dn | undefined =>
    lastOf([...onFailure, ...onSuccess]) ??
    calls.reduceRight<Dn | undefined>((found, name) => found ?? reloadRoot(tasksOf, name, inner), undefined) ??
    flow.reloadsFrom
  return lastOf(tasksOf(workflow) ?? [])
}
