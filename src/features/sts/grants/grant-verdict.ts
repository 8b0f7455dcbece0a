import type { GrantLimits } from '#config/configuration/token-endpoint.ts'
import { compareCodePoints } from '#kernel/text/compare-texts.ts'
import type { GrantNamespace, TokenGrant } from './token-grant.ts'

/** A token endpoint, as far as grants name it. */
export interface GrantEndpoint {
  readonly name: string
  readonly clusters: readonly string[]
  readonly grants?: GrantLimits | undefined
}

/** For the condition `Accepted` of a TokenGrant. */
export interface GrantVerdict {
  readonly status: 'True' | 'False'
  readonly reason:
    | 'Accepted'
    | 'Invalid'
    | 'NamespaceEnds'
    | 'UnknownEndpoint'
    | 'GrantsNotHonored'
    | 'OtherCluster'
    | 'NamespaceNotAllowed'
    | 'ServiceAccountNotAllowed'
    | 'TooManyServiceAccounts'
    | 'TooManyGrants'
  readonly message: string
}

const refused = (reason: GrantVerdict['reason'], message: string): GrantVerdict => ({
  status: 'False',
  reason,
  message,
})

/** All grants of one namespace of a cluster, judged together: the oldest ones count where there are too many. */
export function judgeGrants<G extends TokenGrant>(
  grants: readonly G[],
  namespace: GrantNamespace | undefined,
  endpoints: ReadonlyMap<string, GrantEndpoint>,
  cluster: string,
): ReadonlyMap<G, GrantVerdict> {
  const accepted = new Map<string, number>()
  const ordered = grants.toSorted(
    (a, b) => compareCodePoints(a.created, b.created) || compareCodePoints(a.name, b.name),
  )
  return new Map(
    ordered.map((grant) => {
      const verdict = judge(grant, namespace, endpoints.get(grant.endpoint), cluster)
      if (verdict.status === 'False') return [grant, verdict]
      const most = endpoints.get(grant.endpoint)?.grants?.maxGrants ?? 0
      const count = (accepted.get(grant.endpoint) ?? 0) + 1
      if (count > most) {
        const message = `the namespace already has ${most} older grants of "${grant.endpoint}", which is the most`
        return [grant, refused('TooManyGrants', message)]
      }
      accepted.set(grant.endpoint, count)
      return [grant, verdict]
    }),
  )
}

function judge(
  { endpoint: name, serviceAccounts, namespace: place, problem }: TokenGrant,
  namespace: GrantNamespace | undefined,
  endpoint: GrantEndpoint | undefined,
  cluster: string,
): GrantVerdict {
  if (problem !== undefined) return refused('Invalid', problem)
  if (namespace === undefined || namespace.isEnding) {
    return refused('NamespaceEnds', `the namespace "${place}" is being deleted`)
  }
  if (endpoint === undefined) return refused('UnknownEndpoint', `no token endpoint "${name}" is served`)
  const limits = endpoint.grants
  if (limits === undefined) return refused('GrantsNotHonored', `the endpoint "${name}" honors no grants`)
  if (!endpoint.clusters.includes(cluster)) {
    return refused('OtherCluster', `the endpoint "${name}" takes no tokens of this cluster`)
  }
  if (!mayHaveGrants(limits, place, namespace)) {
    return refused('NamespaceNotAllowed', `the endpoint "${name}" honors no grants of the namespace "${place}"`)
  }
  const stranger = serviceAccounts.find((account) => !matchesSome(limits.serviceAccounts, account))
  if (stranger !== undefined) {
    const message = `the endpoint "${name}" honors no grants for service accounts named "${stranger}"`
    return refused('ServiceAccountNotAllowed', message)
  }
  if (serviceAccounts.length > limits.maxServiceAccounts) {
    const message = `${serviceAccounts.length} service accounts, and the endpoint "${name}" takes ${limits.maxServiceAccounts} in a grant`
    return refused('TooManyServiceAccounts', message)
  }
  const names = serviceAccounts.join(', ')
  return { status: 'True', reason: 'Accepted', message: `${names} may have tokens of "${name}"` }
}

/** Whether the namespace is within the limits. */
export const mayHaveGrants = (limits: GrantLimits, name: string, namespace: GrantNamespace): boolean =>
  matchesSome(limits.namespaces, name) &&
  Array.from(limits.namespaceLabels).every(
    ([label, value]) => Object.hasOwn(namespace.labels, label) && namespace.labels[label] === value,
  )

/** No patterns match everything. Each has at most one `*`. */
const matchesSome = (patterns: readonly string[], name: string): boolean =>
  patterns.length === 0 ||
  patterns.some((pattern) => {
    const [start = '', end] = pattern.split('*')
    if (end === undefined) return pattern === name
    return name.length >= start.length + end.length && name.startsWith(start) && name.endsWith(end)
  })
