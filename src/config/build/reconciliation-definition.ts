import { createHash } from 'node:crypto'
import type { ReconciliationConfig } from '#config/configuration/configuration.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import type { ConfigDocument } from '#config/context/config-document.ts'
import { placeholder } from '#config/context/substitute.ts'
import type { ReconciliationSpec } from '#config/kinds/reconciliation.ts'
import { isJsonObject, sortedKeys } from '#kernel/json.ts'
import { isSecretName } from '#kernel/text/redaction.ts'

/** What no comparison and no run depends on: when plans are made, how many changes they may have, and what people read. */
const unrelated: ReadonlySet<string> = new Set([
  ...['schedule', 'timeZone', 'apply', 'incremental', 'limits'],
  ...['description', 'label', 'inList', 'orgId', 'owner'],
])

/** Of an address. */
const credentials = /:\/\/[^/?#\s@]*@/g

/**
 * A hash of the objects that decide what a plan finds and does: the reconciliation, both systems, the mappings and the
 * workflows that it names, not those that these call. Of secrets it has the names only, so it stays the same when they are
 * renewed, and no one can guess them by it.
 */
export function reconciliationDefinition(
  { source: { gateway } }: Pick<ReconciliationSpec, 'source'>,
  { source, target, workflows }: Pick<ReconciliationConfig, 'source' | 'target' | 'workflows'>,
  context: BuildContext,
): string {
  const { draft } = context.state
  const isOutside = (name: string): boolean => draft.outsideDirectory.has(name) || draft.resourceTargets.has(name)
  // A tenant that an operator adds changes no directory.
  const sources =
    source.kind === 'target' ? [source.name] : [...draft.targets.keys()].filter((name) => !isOutside(name))
  const targets = new Set([...sources, target])
  const used = [
    context.document,
    ...Array.from(targets, (name) => draft.targets.get(name)?.document),
    ...Object.values(workflows).map((name) => draft.workflows.get(name)?.document),
    ...(source.kind === 'directory' ? draft.inserts.map(({ document }) => document) : []),
    ...draft.applications.flatMap(({ config, document }) => (config.name === gateway ? [document] : [])),
  ]
  const texts = [...new Set(used)].map((document) => (document === undefined ? '' : contentOf(document, context)))
  const scripts = [...draft.javaScripts].map(([name, { text }]) => `${name} ${text}`)
  return createHash('sha256')
    .update(JSON.stringify([texts.sort(), scripts.sort()]))
    .digest('base64url')
}

function contentOf({ yaml }: ConfigDocument, { state }: BuildContext): string {
  const shown = (written: string, name: string): string => {
    const value = state.shownValue(name)
    return value.kind === 'value' ? value.text : written
  }
  const text = (written: string): string => written.replace(placeholder, shown).replace(credentials, '://')
  const value = yaml.toValue({ text, report: () => {} })
  if (!isJsonObject(value)) return ''
  const { kind, metadata, spec } = value
  const name = isJsonObject(metadata) ? metadata['name'] : undefined
  const own = isJsonObject(spec) ? Object.entries(spec).filter(([key]) => !unrelated.has(key)) : []
  return JSON.stringify([kind, name, Object.fromEntries(own)], (key, part) =>
    sortedKeys(key, key === 'params' ? withoutSecrets(part) : part),
  )
}

/** Both forms of parameters. */
function withoutSecrets(params: unknown): unknown {
  if (Array.isArray(params)) return params.filter((one) => !(isJsonObject(one) && isSecretName(String(one['name']))))
  if (!isJsonObject(params)) return params
  return Object.fromEntries(Object.entries(params).filter(([name]) => !isSecretName(name)))
}
