import type { Issues, Path } from '#kernel/issues.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import { type Parameter, type ParameterOptions, parsed } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, type ParsedParameters, readFields } from '#sdk/module/parameters.ts'
import type { PreparedTask, TaskModule, TaskParseContext, TaskPlan } from '#sdk/workflow/workflow-task.ts'

const noTemplate = parseTemplate('', { keys: false, attributes: false })

/** A text in which `$key$` and `${attribute}` are replaced; an empty one if absent. */
export const template = (options: ParameterOptions): Parameter<Template> =>
  parsed('template', (value) => parseTemplate(value, { keys: true, attributes: true }), {
    ...options,
    fallback: noTemplate,
  })

/** A text in which only `$key$` is replaced, as in the name of an attribute. */
export const nameTemplate = (options: ParameterOptions): Parameter<Template> =>
  parsed('template', (value) => parseTemplate(value, { keys: true, attributes: false }), {
    ...options,
    fallback: noTemplate,
  })

export interface TaskPlaces<F> {
  /** The path of the task. */
  readonly path: Path
  readonly issues: Issues
  readonly context: TaskParseContext
  pathOf(field: keyof F & string): Path
}

interface TaskDefinition<F extends ParameterTable> {
  readonly taskType: string
  /** Whether it has subtasks. */
  readonly branches?: boolean
  readonly fields: F
  /** Pure. Reads the `fields`; a missing or invalid one is reported and gets its fallback. */
  prepare(fields: ParsedParameters<F>, places: TaskPlaces<F>): TaskPlan & Partial<Pick<PreparedTask, 'name' | 'calls'>>
}

export const defineTask = <F extends ParameterTable>(definition: TaskDefinition<F>): TaskModule => ({
  branches: false,
  ...definition,
  prepare: (given, path, issues, context) => {
    const fields = readFields(definition.fields, given, path, issues, context) as ParsedParameters<F>
    const places = { path, issues, context, pathOf: (field: string) => [...path, field] }
    const plan = definition.prepare(fields, places)
    return { flow: noFlow, calls: [], ...plan, create: async (host) => plan.create(host) }
  },
})
