import { findTemplateKey, parseTemplate } from '#kernel/template.ts'
import type { RunHead } from './run-head.ts'

/** A label. That of a dynamic workflow has places such as `$name$` for the parameters of a request. */
interface WorkflowLabel {
  readonly label: string
  readonly dynamic?: unknown
}

/** The text parameters of a request. */
export type LabelParameters = ReadonlyMap<string, string>

/** A template as people read it: each place with its value, or with its name in brackets. */
export const readableTemplate = (text: string, parameters: LabelParameters = new Map()): string =>
  parseTemplate(text, { keys: true, attributes: true }).render({
    key: (name) => findTemplateKey(parameters, name) ?? `[${name}]`,
    attribute: (name) => `[${name}]`,
  })

/** The label of a workflow as people read it. */
export const filledLabel = ({ label, dynamic }: WorkflowLabel, parameters?: LabelParameters): string =>
  dynamic === undefined ? label : readableTemplate(label, parameters)

/** With the label in the language of its reader. */
export const translatedWorkflow = (
  workflow: WorkflowLabel | undefined,
  translate: (text: string) => string,
): WorkflowLabel | undefined => workflow && { ...workflow, label: translate(workflow.label) }

type LabelledRun = Pick<RunHead, 'id' | 'workflow'>

interface LabelSources {
  workflowOf(name: string): WorkflowLabel | undefined
  /** By run. */
  parametersOf(runs: readonly string[]): Promise<ReadonlyMap<string, LabelParameters>>
}

/** The labels of these runs. A workflow that is not configured has its name. */
export async function runLabels(
  runs: readonly LabelledRun[],
  { workflowOf, parametersOf }: LabelSources,
): Promise<(run: LabelledRun) => string> {
  const dynamic = runs.filter(({ workflow }) => workflowOf(workflow)?.dynamic !== undefined)
  const parameters = dynamic.length === 0 ? undefined : await parametersOf(dynamic.map(({ id }) => id))
  return ({ id, workflow: name }) => {
    const workflow = workflowOf(name)
    return workflow === undefined ? name : filledLabel(workflow, parameters?.get(id))
  }
}
