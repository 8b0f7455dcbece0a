import type { Catalog } from '#config/configuration/catalog.ts'
import type { TargetConfig } from '#config/configuration/configuration.ts'
import type { BuildContext, LoadState } from '#config/context/build-context.ts'
import type { Environment } from '#config/context/substitute.ts'
import type { Issues } from '#kernel/issues.ts'

/** Names of targets that exist without an object. */
export const builtInNames = ({ builtInTargets }: Catalog): Iterable<string> => builtInTargets?.keys() ?? []

const runsInCluster = (environment: Environment): boolean => (environment['KUBERNETES_SERVICE_HOST'] ?? '') !== ''

/**
 * The targets of the configuration, and those built in that it uses. A Target of the same name takes precedence, also
 * if it is set aside: `own` has the names of all.
 */
export function withBuiltInTargets(
  targets: ReadonlyMap<string, TargetConfig>,
  own: ReadonlySet<string>,
  { catalog, references, draft }: Pick<LoadState, 'catalog' | 'references' | 'draft'>,
  environment: Environment,
): Map<string, TargetConfig> {
  const all = new Map(targets)
  for (const [name, target] of catalog.builtInTargets ?? []) {
    const isNamed = references.some((one) => one.kind === 'target' && one.name === name)
    // The name may also come from a request.
    const isReachable = runsInCluster(environment) && draft.workflows.size > 0
    if (own.has(name) || !(isNamed || isReachable)) continue
    all.set(name, { name, namespace: undefined, at: 'built in', target, mapping: undefined })
  }
  return all
}

/** Warns once in each document that uses the cluster of this process where there is none. */
export function checkBuiltInTargets(
  { catalog, references }: Pick<LoadState, 'catalog' | 'references'>,
  own: ReadonlySet<string>,
  environment: Environment,
  issues: Issues,
): void {
  if (runsInCluster(environment)) return
  const warned = new Set<BuildContext['document']>()
  for (const { kind, name, path, document } of references) {
    if (kind !== 'target' || own.has(name) || catalog.builtInTargets?.has(name) !== true || warned.has(document))
      continue
    warned.add(document)
    const text = `"${name}" is the cluster that Gatehouse runs in, and this process runs in none: what uses it fails here. Add a Target "${name}" for another cluster`
    issues.for(document).warning(path, text)
  }
}
