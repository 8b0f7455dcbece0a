import { clustersOf } from './kubernetes-cluster.ts'
import type { TargetSource } from './target.ts'

/**
 * The groups that count in one cluster. `k8s-cluster-<target>-<role>`, `k8s-namespace-<role>-<target>-<namespace>` and
 * `approvers-k8s-<target>-<namespace>` count only if that target is the cluster, by its name with or without `k8s-`, or
 * by its label. All other groups count everywhere.
 */
export function groupsInCluster(groups: readonly string[], cluster: string, targets: TargetSource): readonly string[] {
  // `k8s-prod` isn't a role or a namespace of `k8s`.
  const known = [...clustersOf(targets), ...[cluster, `k8s-${cluster}`].map((name) => ({ name, label: cluster }))]
  const clusters = known.toSorted((one, other) => other.name.length - one.name.length)
  return groups.filter((group) => {
    const places = placesOf(group)
    if (places === undefined) return true
    const found = places.flatMap((place) => clusters.find(({ name }) => place.startsWith(`${name}-`)) ?? [])
    const isIt = ({ name, label }: (typeof found)[number]): boolean =>
      name === cluster || name === `k8s-${cluster}` || label === cluster
    return found.length > 0 && found.every(isIt)
  })
}

/** The texts of which one begins with the name of the target; undefined for a group of no cluster. */
function placesOf(group: string): readonly string[] | undefined {
  const [, kind, rest = ''] = /^(k8s-cluster|k8s-namespace|approvers(?=-k8s-))-(.+)$/.exec(group) ?? []
  if (kind === undefined) return undefined
  if (kind === 'approvers') return [rest.replace(/^k8s-(?=k8s-)/, '')]
  // The name of a role may have dashes.
  return kind === 'k8s-cluster' ? [rest] : Array.from(rest.matchAll(/-/g), ({ index }) => rest.slice(index + 1))
}
