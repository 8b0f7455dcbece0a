import type { ConfigDocument } from '#config/config-document.ts'
import type { Path } from '#kernel/issues.ts'
import type { WorkflowSpec } from '#model/workflow.ts'

/** A definition as YAML in one line, with its values put in; numbers stay as they were written, so that 1.10 is not 1.1. */
export const workflowSource = (spec: WorkflowSpec, document: ConfigDocument): string =>
  `{"spec": ${flow(spec, ['spec'], document)}}`

function flow(value: unknown, path: Path, document: ConfigDocument): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'string') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map((item, i) => flow(item, [...path, i], document)).join(', ')}]`
  if (typeof value !== 'object') return document.yaml.scalarText(path) ?? String(value)
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return `{${entries.map(([name, item]) => `${JSON.stringify(name)}: ${flow(item, [...path, name], document)}`).join(', ')}}`
}
