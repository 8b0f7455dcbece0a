import type { Configuration, WorkflowConfig } from '#config/configuration/configuration.ts'
import { filledLabel, type LabelParameters, readableTemplate } from '#sdk/workflow/workflow-label.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'
import type { RunState } from '#workflows/record/run.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { branchPlace } from './definitions.ts'
import type { ShownTask, ShownWorkflow, WorkflowCatalog } from './workflow-catalog-view.ts'

/** The workflows of a configuration as administrators see them. */
export function createWorkflowCatalog(
  { workflows, restoreWorkflow }: Pick<Configuration, 'workflows' | 'restoreWorkflow'>,
  store: Pick<RunStore, 'definition' | 'openByWorkflow'>,
): WorkflowCatalog {
  const read = async (name: string, definition: string | undefined): Promise<WorkflowConfig | undefined> => {
    const configured = workflows.get(name)
    if (definition === undefined || configured?.hash === definition) return configured
    const stored = await store.definition(definition)
    if (stored?.name !== name || typeof stored.body !== 'string') return undefined
    const restored = restoreWorkflow({ name, hash: definition, source: stored.body })
    return 'config' in restored ? restored.config : undefined
  }
  return {
    async list() {
      const names = [...workflows.keys()].sort()
      const open = new Map<string, Partial<Record<RunState, number>>>()
      for (const { name, state, count } of await store.openByWorkflow(names)) {
        open.set(name, { ...open.get(name), [state]: count })
      }
      return names.flatMap((name) => {
        const config = workflows.get(name)
        return config === undefined ? [] : [{ ...shown(config), open: open.get(name) ?? {} }]
      })
    },
    async get(name, definition, parameters) {
      const config = await read(name, definition)
      if (config === undefined) return undefined
      const current = workflows.get(name)?.hash === config.hash
      return { ...shown(config), current, tasks: shownTasks(config.name, '', config.tasks, parameters) }
    },
  }
}

const shown = ({ name, label, description, dynamic, orgId, inList, hash }: WorkflowConfig): ShownWorkflow => ({
  name,
  label: filledLabel({ label, dynamic }),
  description: filledLabel({ label: description, dynamic }),
  ...(orgId === undefined ? {} : { org: orgId }),
  inList,
  definition: hash,
})

/** The tasks of the list at `place`; the parser bounds their number and depth. */
const shownTasks = (
  workflow: string,
  place: string,
  tasks: readonly PreparedTask[],
  parameters: LabelParameters | undefined,
): readonly ShownTask[] =>
  tasks.map(({ taskType, details, timeoutMillis, calls, onSuccess, onFailure }, index) => ({
    place: `${workflow}:${place === '' ? '' : `${place}/`}${index}`,
    taskType,
    details: Object.fromEntries(
      Object.entries(details ?? {}).map(([key, text]) => [key, readableTemplate(text, parameters)]),
    ),
    ...(timeoutMillis === undefined ? {} : { timeoutMillis }),
    calls,
    onSuccess: shownTasks(workflow, branchPlace(place, index, 'onSuccess'), onSuccess, parameters),
    onFailure: shownTasks(workflow, branchPlace(place, index, 'onFailure'), onFailure, parameters),
  }))
