import { findTemplateKey, parseTemplate } from '#kernel/template.ts'
import type { RunHead } from './run-head.ts'

/** A label. That of a dynamic workflow has places such as `$name$` for the parameters of a request. */
interface WorkflowLabel {
  readonly label: string
  readonly dynamic?: unknown
  /** What the label of a run says besides, with places for its parameters. */
  readonly runDetails?: string | undefined
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
  const templates = runs.filter(({ workflow: name }) => {
    const workflow = workflowOf(name)
    return workflow?.dynamic !== undefined || workflow?.runDetails !== undefined
  })
  const parameters = templates.length === 0 ? undefined : await parametersOf(templates.map(({ id }) => id))
  return ({ id, workflow: name }) => {
    const workflow = workflowOf(name)
    if (workflow === undefined) return name
    const given = parameters?.get(id)
    const label = filledLabel(workflow, given)
    const { runDetails } = workflow
    return runDetails === undefined ? label : `${label}: ${readableTemplate(runDetails, given)}`
  }
}
