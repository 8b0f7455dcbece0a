import type { Subject } from '#identity/subject.ts'
import type { Closable } from '#kernel/scope.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'
import type { LookupHost } from '#sdk/target/target.ts'

/** Finds the sets of parameters with which one workflow can be requested, such as one for each group. */
export interface DynamicWorkflowSource extends Closable {
  /** At most 1,000 of them; each is what the caller may request now. */
  parameterSets(subject: Subject): Promise<readonly ParameterSet[]>
}

/** Request parameters by name. */
export type ParameterSet = Readonly<Record<string, string>>

/** A source of dynamic workflows whose parameters are checked. */
export type PreparedDynamicWorkflowSource = Prepared<DynamicWorkflowSource, LookupHost>
/** A kind of source, as the catalog lists it. */
export type DynamicWorkflowModule = Module<DynamicWorkflowSource, LookupHost>

/** Describes a kind of source of dynamic workflows. */
export const defineDynamicWorkflow = <C>(
  definition: ModuleDefinition<C, DynamicWorkflowSource, LookupHost>,
): DynamicWorkflowModule => defineModule(definition)

/** A workflow with one row per set of parameters, ready to be read. */
export interface DynamicWorkflows {
  /** What distinguishes a row: the annotation's name, and the parameter of its value. */
  readonly annotations: readonly { readonly name: string; readonly parameter: string }[]
  parameterSets(subject: Subject): Promise<readonly ParameterSet[]>
}
