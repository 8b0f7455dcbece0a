import { Issues } from '#kernel/issues.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

/** How groups of clusters are named, as the mechanism `auth.AddPortalRoles` says. */
export const clusterGroupParameters = {
  extSuffix: text({ about: 'The end of the names of groups of other systems.', fallback: '-external' }),
  intSuffix: text({ about: 'The end of the names of own groups.', fallback: '-internal' }),
  role2label: text({
    about: 'What users call the roles of namespaces: `administrators=Administrators,viewers=Viewers`.',
  }),
  k8sTargetName: text({ about: 'Not needed: all Kubernetes targets are clusters.' }),
} satisfies ParameterTable

export interface ClusterGroupNames {
  readonly suffixes: readonly string[]
  /** Labels by role. */
  readonly roles: ReadonlyMap<string, string>
}

/** From the `init` of the mechanism, where its problems are reported. Without one, there are only the usual suffixes. */
export function readClusterGroupNames(init: Params | undefined, context: ParseContext): ClusterGroupNames {
  const given = readParameters(clusterGroupParameters, init ?? nothing, new Issues(), context)
  const roles = (given.role2label ?? '').split(',').flatMap((entry): [string, string][] => {
    const cut = entry.indexOf('=')
    return cut <= 0 ? [] : [[entry.slice(0, cut).trim(), entry.slice(cut + 1).trim()]]
  })
  return { suffixes: [given.extSuffix, given.intSuffix].filter((suffix) => suffix !== ''), roles: new Map(roles) }
}

const nothing: Params = { names: () => [], values: () => [], pathOf: () => [], isSecret: () => false }

/** A row of the table of groups, with the columns of OpenUnison's portal. */
export interface ClusterGroup {
  readonly Cluster: string
  readonly Namespace: string
  readonly Name: string
}

interface Cluster {
  readonly name: string
  readonly label: string
}

/** In OpenUnison's order. */
export const clusterGroupColumns = ['Cluster', 'Namespace', 'Name'] as const satisfies readonly (keyof ClusterGroup)[]

/** What a column has where a group has no cluster or no namespace. */
const none = 'N/A'

/**
 * What the names of groups mean, sorted by their columns: `k8s-cluster-<cluster>-<role>`,
 * `k8s-namespace-<role>-<cluster>-<namespace>` and `approvers-k8s-<cluster>-<namespace>`, with or without a suffix. Others
 * are shown by their names.
 */
export function clusterGroups(
  groups: readonly string[],
  names: ClusterGroupNames,
  clusters: readonly Cluster[],
): ClusterGroup[] {
  const rows = groups.map(
    (group): ClusterGroup => readGroup(group, names, clusters) ?? { Cluster: none, Namespace: none, Name: group },
  )
  const byKey = new Map(rows.map((row) => [JSON.stringify([row.Cluster, row.Namespace, row.Name]), row]))
  return [...byKey.values()].sort(
    (a, b) => clusterGroupColumns.map((column) => compare(a[column], b[column])).find((order) => order !== 0) ?? 0,
  )
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function readGroup(group: string, names: ClusterGroupNames, clusters: readonly Cluster[]): ClusterGroup | undefined {
  const suffix = names.suffixes.find((one) => group.endsWith(one)) ?? ''
  const [, kind, rest = ''] = /^(k8s-cluster-|k8s-namespace-|approvers-(?=k8s-))(.+)$/.exec(group) ?? []
  if (kind === undefined) return undefined
  const plain = rest.endsWith(suffix) ? rest.slice(0, rest.length - suffix.length) : rest
  if (kind === 'k8s-cluster-') {
    const found = afterCluster(plain, clusters)
    return found && { Cluster: found.label, Namespace: none, Name: capitalized(found.rest) }
  }
  if (kind === 'k8s-namespace-') {
    const [role, label] = longest(Array.from(names.roles).filter(([role]) => plain.startsWith(`${role}-`)))
    const found = role === undefined ? undefined : afterCluster(plain.slice(role.length + 1), clusters)
    return found && { Cluster: found.label, Namespace: found.rest, Name: label ?? '' }
  }
  // The cluster named k8s has the prefix twice.
  const found = afterCluster(rest.replace(/^k8s-(?=k8s-)/, ''), clusters)
  return found && { Cluster: found.label, Namespace: found.rest, Name: 'Approver' }
}

/** The cluster that the text begins with, and what comes after it. */
function afterCluster(text: string, clusters: readonly Cluster[]): { label: string; rest: string } | undefined {
  const begun = clusters.filter(({ name }) => text.startsWith(`${name}-`) && text.length > name.length + 1)
  const [name, label] = longest(begun.map((cluster) => [cluster.name, cluster.label] as const))
  return name === undefined || label === undefined ? undefined : { label, rest: text.slice(name.length + 1) }
}

const longest = (pairs: readonly (readonly [string, string])[]): readonly [string?, string?] =>
  pairs.reduce<readonly [string?, string?]>((best, pair) => (pair[0].length > (best[0]?.length ?? 0) ? pair : best), [])

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
