import { Dn } from '#identity/dn.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { ClusterObject, ClusterResource } from '#protocols/kubernetes/cluster.ts'
import { defineAuthorization } from '#sdk/auth/authorization.ts'
import { isMailName, unverifiedMail } from '#sdk/login/linked-subject.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import { objectsOf } from '#sdk/target/kubernetes-cluster.ts'
import type { TargetSource } from '#sdk/target/target.ts'

const api = { group: 'rbac.authorization.k8s.io', version: 'v1' }
const mostBindings = 5_000
const mostUsers = 500
const usersAtOnce = 50

/**
 * Allows users whom a RoleBinding or ClusterRoleBinding of a cluster names for a role. The rule names target, kind and
 * name of the role, attribute, base and, for RoleBindings, the namespace.
 */
export default defineAuthorization({
  className: 'authorizations.RBACBinding',
  aliases: ['com.tremolosecurity.az.RBACBindingAuthorization'],
  ...withParameters({}),
  create: (_, { targets, directory }) => ({
    async isAuthorized({ dn, otherNames = [], attributes }, params) {
      const binding = readBinding(params)
      if (![dn, ...otherNames].some((name) => name.isWithin(binding.base))) return false
      const { attribute } = binding
      const values = attributes.values(attribute)
      if (values.length === 0) return false
      // At many issuers users choose their mail address.
      if (attributes.isClaim(attribute) && isMailName(attribute) && unverifiedMail([attribute], attributes))
        return false
      const users = await boundUsers(binding, targets)
      return values.some((value) => users.has(value))
    },
    async listPossibleApprovers(params) {
      const binding = readBinding(params)
      const { base, attribute } = binding
      const users = [...(await boundUsers(binding, targets))]
      if (users.length > mostUsers) throw new Error(`the bindings name more than ${mostUsers} users`)
      const names: string[] = []
      for (let at = 0; at < users.length; at += usersAtOnce) {
        const filters = users.slice(at, at + usersAtOnce).map((value) => ({ kind: 'equal', attribute, value }) as const)
        const filter = { kind: 'or', filters } as const
        const found = await directory.search({ base, scope: 'sub', filter, limit: 1_000 })
        names.push(...found.map(({ dn }) => dn.toString()))
      }
      return names
    },
  }),
})

interface Binding {
  readonly target: string
  readonly role: { readonly kind: string; readonly name: string }
  readonly attribute: string
  readonly base: Dn
  readonly resource: ClusterResource
}

const roleKinds = ['ClusterRole', 'Role']
const namespaceForm = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Throws an Error for anything that the rule doesn't say. */
function readBinding(params: readonly string[]): Binding {
  const [target = '', kind = '', name = '', attribute = '', base = '', namespace, ...more] = params
  if ([target, kind, name, attribute, base, namespace].includes('') || more.length > 0) {
    throw new Error('the constraint must be name!target!kind!role!attribute!base, and !namespace for a RoleBinding')
  }
  if (!roleKinds.includes(kind)) throw new Error(`the kind of the role must be ClusterRole or Role, not "${kind}"`)
  if (namespace === undefined && kind === 'Role') throw new Error('a Role needs a namespace')
  if (namespace !== undefined && !namespaceForm.test(namespace)) throw new Error(`"${namespace}" is not a namespace`)
  const resource: ClusterResource =
    namespace === undefined ? { ...api, plural: 'clusterrolebindings' } : { ...api, plural: 'rolebindings', namespace }
  return { target, role: { kind, name }, attribute, base: Dn.parse(base), resource }
}

async function boundUsers({ target, role, resource }: Binding, targets: TargetSource): Promise<ReadonlySet<string>> {
  const bindings = await objectsOf(targets, target).list(resource, mostBindings)
  return new Set(bindings.flatMap((binding) => usersOf(binding, role)))
}

function usersOf({ content }: ClusterObject, { kind, name }: Binding['role']): readonly string[] {
  const { roleRef, subjects } = content
  if (!isJsonObject(roleRef) || roleRef['kind'] !== kind || roleRef['name'] !== name) return []
  if (!Array.isArray(subjects)) return []
  return subjects.flatMap((one) =>
    isJsonObject(one) && one['kind'] === 'User' && typeof one['name'] === 'string' ? [one['name']] : [],
  )
}
