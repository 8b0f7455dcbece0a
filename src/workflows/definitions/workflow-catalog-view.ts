import type { LabelParameters } from '#sdk/workflow/workflow-label.ts'
import type { RunState } from '#workflows/record/run.ts'

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

/** The workflows of the configuration, for administrators. */
export interface WorkflowCatalog {
  /** By name, with how many open runs they have in each state. */
  list(): Promise<readonly (ShownWorkflow & { readonly open: Readonly<Partial<Record<RunState, number>>> })[]>
  /**
   * The definition with this hash, as a stored run follows it, or the one of the configuration. Undefined if there is
   * none, or if the configuration can't read an earlier one any more. With the parameters of a run, its tasks have the
   * names that they have in the run.
   */
  get(name: string, definition?: string, parameters?: LabelParameters): Promise<ShownDefinition | undefined>
}
