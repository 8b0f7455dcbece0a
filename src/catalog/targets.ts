import { createRegistry } from '#kernel/registry.ts'
import database from '#modules/targets/database/database.ts'
import kubernetes from '#modules/targets/kubernetes/kubernetes.ts'
import kubernetesRoleBindings from '#modules/targets/kubernetes-role-bindings/kubernetes-role-bindings.ts'
import kubernetesUsers from '#modules/targets/kubernetes-users/kubernetes-users.ts'
import { activeDirectory, ldap } from '#modules/targets/ldap/ldap.ts'
import plugin from '#modules/targets/plugin/plugin.ts'
import scim from '#modules/targets/scim/scim.ts'
import sql from '#modules/targets/sql/sql.ts'
import webhook from '#modules/targets/webhook/webhook.ts'

/** To add a target, add one import above and one line below. */
export const targets = createRegistry('target', [
  database,
  kubernetes,
  kubernetesUsers,
  kubernetesRoleBindings,
  ldap,
  activeDirectory,
  plugin,
  scim,
  sql,
  webhook,
])
