import { GatewayError } from '#kernel/errors.ts'
import type { ClusterObject, ClusterResource } from '#sdk/kubernetes-cluster.ts'

export interface BindingPlace {
  readonly resource: ClusterResource
  readonly name: string
}

const api = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const
export const clusterRoleBindings: ClusterResource = { ...api, plural: 'clusterrolebindings' }
/** Those of all namespaces. */
export const roleBindings: ClusterResource = { ...api, plural: 'rolebindings' }

/**
 * Where the binding is that a group stands for: `crb:<name>` or `rb:<namespace>:<name>`. Undefined for groups that are
 * not of this target; BAD_REQUEST for those that begin like one and are none. Names may hold colons themselves.
 */
export function bindingPlace(group: string): BindingPlace | undefined {
  if (group.startsWith('crb:')) return { resource: clusterRoleBindings, name: named(group, group.slice('crb:'.length)) }
  if (!group.startsWith('rb:')) return undefined
  const rest = group.slice('rb:'.length)
  const end = rest.indexOf(':')
  const namespace = named(group, end < 0 ? '' : rest.slice(0, end))
  return { resource: { ...roleBindings, namespace }, name: named(group, rest.slice(end + 1)) }
}

export const groupOf = ({ metadata }: ClusterObject): string =>
  metadata.namespace === undefined ? `crb:${metadata.name}` : `rb:${metadata.namespace}:${metadata.name}`

function named(group: string, part: string): string {
  if (part !== '') return part
  throw new GatewayError('BAD_REQUEST', `"${group}" is neither crb:<name> nor rb:<namespace>:<name>`)
}
