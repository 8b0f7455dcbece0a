import type { Configuration, WorkflowConfig } from '#config/configuration/configuration.ts'
import { filledLabel, type LabelParameters, readableTemplate } from '#sdk/workflow/workflow-label.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'
import type { RunState } from '#workflows/record/run.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { branchPlace } from './definitions.ts'

/** A task of a definition as administrators see it. Has no values that the task writes. */
export interface ShownTask {
  /** As the steps of runs name it: `join:0/onSuccess/1`. */
  readonly place: string
  readonly taskType: string
  /** Which one it is: `label`, `name`, `target` or `className`, as far as the task has them. */
  readonly details: Readonly<Record<string, string>>
  /** The maximum duration of one execution, if the task has one. */
  readonly timeoutMillis?: number
  /** The workflows that it calls. */
  readonly calls: readonly string[]
  readonly onSuccess: readonly ShownTask[]
  readonly onFailure: readonly ShownTask[]
}

/** A configured workflow. */
export interface ShownWorkflow {
  readonly name: string
  readonly label: string
  readonly description: string
  readonly org?: string
  /** Users can request it in the portal. */
  readonly inList: boolean
  /** The hash of its definition. */
  readonly definition: string
}

/** A definition with its tasks: that of the configuration, or an earlier one. */
export interface ShownDefinition extends ShownWorkflow {
  /** It is the one of the configuration: new runs follow it. */
  readonly current: boolean
  readonly tasks: readonly ShownTask[]
}

type Workflows = Pick<Configuration, 'workflows' | 'restoreWorkflow'>
type Definitions = Pick<RunStore, 'definition' | 'openByWorkflow'>

/** The workflows of a configuration, for administrators. */
export class WorkflowCatalog {
  readonly #configuration: Workflows
  readonly #store: Definitions

  constructor(configuration: Workflows, store: Definitions) {
    this.#configuration = configuration
    this.#store = store
  }

  /** By name, with how many open runs they have in each state. */
  async list(): Promise<readonly (ShownWorkflow & { readonly open: Readonly<Partial<Record<RunState, number>>> })[]> {
    const { workflows } = this.#configuration
    const names = [...workflows.keys()].sort()
    const open = new Map<string, Partial<Record<RunState, number>>>()
    for (const { name, state, count } of await this.#store.openByWorkflow(names)) {
      open.set(name, { ...open.get(name), [state]: count })
    }
    return names.flatMap((name) => {
      const config = workflows.get(name)
      return config === undefined ? [] : [{ ...shown(config), open: open.get(name) ?? {} }]
    })
  }

  /**
   * The definition with this hash, as a stored run follows it, or the one of the configuration. Undefined if there is
   * none, or if the configuration can't read an earlier one any more. With the parameters of a run, its tasks have the
   * names that they have in the run.
   */
  async get(name: string, definition?: string, parameters?: LabelParameters): Promise<ShownDefinition | undefined> {
    const config = await this.#read(name, definition)
    if (config === undefined) return undefined
    const current = this.#configuration.workflows.get(name)?.hash === config.hash
    return { ...shown(config), current, tasks: shownTasks(config.name, '', config.tasks, parameters) }
  }

  async #read(name: string, definition: string | undefined): Promise<WorkflowConfig | undefined> {
    const { workflows, restoreWorkflow } = this.#configuration
    const configured = workflows.get(name)
    if (definition === undefined || configured?.hash === definition) return configured
    const stored = await this.#store.definition(definition)
    if (stored?.name !== name || typeof stored.body !== 'string') return undefined
    const restored = restoreWorkflow({ name, hash: definition, source: stored.body })
    return 'config' in restored ? restored.config : undefined
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
