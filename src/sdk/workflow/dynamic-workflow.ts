import type { Subject } from '#identity/subject.ts'
import type { Closable } from '#kernel/scope.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'
import type { LookupHost } from '#sdk/target/target.ts'

/** Finds the sets of parameters that one workflow can be asked for with, such as one for each group. */
export interface DynamicWorkflowSource extends Closable {
  /** At most 1,000 of them; each is what the caller may ask for at this moment. */
  parameterSets(subject: Subject): Promise<readonly ParameterSet[]>
}

/** Request parameters by name. */
export type ParameterSet = Readonly<Record<string, string>>

export type PreparedDynamicWorkflowSource = Prepared<DynamicWorkflowSource, LookupHost>
export type DynamicWorkflowModule = Module<DynamicWorkflowSource, LookupHost>

export const defineDynamicWorkflow = <C>(
  definition: ModuleDefinition<C, DynamicWorkflowSource, LookupHost>,
): DynamicWorkflowModule => defineModule(definition)

/** A workflow that stands for one row per set of parameters, ready to be asked. */
export interface DynamicWorkflows {
  /** What a row is told apart by: the annotation's name, and the parameter it takes its value from. */
  readonly annotations: readonly { readonly name: string; readonly parameter: string }[]
  parameterSets(subject: Subject): Promise<readonly ParameterSet[]>
}
