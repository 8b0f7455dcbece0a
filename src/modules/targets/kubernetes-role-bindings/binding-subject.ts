import { GatewayError } from '#kernel/errors.ts'
import type { ClusterObject } from '#sdk/kubernetes-cluster.ts'

type Json = Readonly<Record<string, unknown>>

/** How the users of a target stand in a binding's `subjects`. */
export interface SubjectKind {
  /** BAD_REQUEST for a login that can be none. */
  write(login: string): Json
  /** Undefined for subjects of another kind. */
  read(subject: Json): string | undefined
}

const rbac = 'rbac.authorization.k8s.io'

export const people: SubjectKind = {
  write(login) {
    if (login === '' || !login.isWellFormed()) {
      throw new GatewayError('BAD_REQUEST', `${JSON.stringify(login)} is no name of a user`)
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
