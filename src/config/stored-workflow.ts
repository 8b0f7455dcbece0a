import { buildWorkflow } from '#config/build/provisioning.ts'
import { BuildContext, type LoadState } from '#config/build-context.ts'
import { ConfigDocument } from '#config/config-document.ts'
import { Draft } from '#config/draft.ts'
import { readYaml } from '#config/locate.ts'
import { checkReferences, type Reference } from '#config/references.ts'
import { readSchema } from '#config/schema-issues.ts'
import { Issues } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { workflowSchema } from '#model/workflow.ts'
import type { RestoredWorkflow, StoredWorkflow } from '#sdk/module/configuration.ts'
import type { ReferenceKind } from '#sdk/module/parse-context.ts'

/** Told of names that the stored workflow refers to, so that those that are gone are found. */
export type KnownNames = (references: readonly Reference[]) => ReadonlyMap<ReferenceKind, ReadonlySet<string>>

/**
 * Reads a definition that a run was started with against the modules and objects of the present configuration. It reads
 * no file but those that tasks name, and says every problem instead of throwing.
 */
export function restoreWorkflow(stored: StoredWorkflow, state: LoadState, known: KnownNames): RestoredWorkflow {
  const { name, hash, source } = stored
  const issues = new Issues()
  const { documents, problems } = readYaml(source)
  const [yaml] = documents
  if (yaml === undefined || documents.length > 1 || problems.length + yaml.problems.length > 0) {
    return { problems: ['its stored text is damaged'] }
  }
  const document = new ConfigDocument(`stored workflow ${name}`, yaml)
  const own: LoadState = { ...state, issues, references: [], draft: new Draft(), ignoreLater: () => {} }
  const filed = issues.for(document)
  const value = yaml.toValue({ text: (text) => text, report: (path, message) => filed.error(path, message) })
  const spec = readSchema(workflowSchema, isJsonObject(value) ? value['spec'] : undefined, ['spec'], filed)
  if (spec !== undefined) {
    buildWorkflow(spec, new BuildContext(own, document, name, undefined))
    checkReferences(own.references, known(own.references), issues)
  }
  const config = own.draft.workflows.get(name)?.config
  const errors = issues.list.filter(({ level }) => level === 'error')
  if (config === undefined || errors.length > 0) {
    return { problems: errors.map(({ path, message }) => `${path.join('.')}: ${message}`) }
  }
  return { config: { ...config, hash, source } }
}
