import { GatewayError } from '#kernel/errors.ts'
import type { ClusterObject, ClusterResource } from '#sdk/target/kubernetes-cluster.ts'

export interface BindingPlace {
  readonly resource: ClusterResource
  readonly name: string
}

const api = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const
export const clusterRoleBindings: ClusterResource = { ...api, plural: 'clusterrolebindings' }
/** Of all namespaces. */
export const roleBindings: ClusterResource = { ...api, plural: 'rolebindings' }

/**
 * The binding of the group `crb:<name>` or `rb:<namespace>:<name>`. Undefined for groups of other targets; BAD_REQUEST for
 * a group with such a prefix and no name. Names may contain colons.
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

type Json = Readonly<Record<string, unknown>>

/** How a binding's `subjects` represent the users of a target. */
export interface SubjectKind {
  /** BAD_REQUEST for a login that cannot be a subject. */
  write(login: string): Json
  /** Undefined for subjects of another kind. */
  read(subject: Json): string | undefined
}

const rbac = 'rbac.authorization.k8s.io'

export const people: SubjectKind = {
  write(login) {
    if (login === '' || !login.isWellFormed()) {
      throw new GatewayError('BAD_REQUEST', `${JSON.stringify(login)} is not a valid user name`)
    }
    return { apiGroup: rbac, kind: 'User', name: login }
  },
  read: ({ kind, name }) => (kind === 'User' && typeof name === 'string' ? name : undefined),
}

/** Logins are `<name>:<namespace>`. */
export const serviceAccounts: SubjectKind = {
  write(login) {
    const [, name, namespace] = /^([^:]+):([^:]+)$/.exec(login) ?? []
    if (name === undefined || namespace === undefined) {
      throw new GatewayError('BAD_REQUEST', `"${login}" is not <service account>:<namespace>`)
    }
    return { kind: 'ServiceAccount', name, namespace }
  },
  read: ({ kind, name, namespace }) =>
    kind === 'ServiceAccount' && typeof name === 'string' && typeof namespace === 'string'
      ? `${name}:${namespace}`
      : undefined,
}

export function subjectsOf({ content }: ClusterObject): Json[] {
  const { subjects } = content
  return Array.isArray(subjects) ? subjects.filter((one) => typeof one === 'object' && one !== null) : []
}

export const membersOf = (binding: ClusterObject, kind: SubjectKind): string[] => [
  ...new Set(subjectsOf(binding).flatMap((subject) => kind.read(subject) ?? [])),
]
