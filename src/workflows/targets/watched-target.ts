import type { ArgoCd } from '#sdk/target/argocd.ts'
import type { KubernetesCluster } from '#sdk/target/kubernetes-cluster.ts'
import type { QueryTarget } from '#sdk/target/query-target.ts'
import type { RemoteGateway } from '#sdk/target/remote-gateway.ts'
import type { GroupTarget, LookupTarget, PasswordTarget, Target } from '#sdk/target/target.ts'
import type { AccountTokenVerifier } from '#sdk/target/token-review.ts'
import { guardedWrites } from './new-accounts.ts'

/** A target with everything that one may offer. */
type EveryTarget = LookupTarget &
  GroupTarget &
  PasswordTarget &
  QueryTarget &
  KubernetesCluster &
  RemoteGateway &
  ArgoCd &
  AccountTokenVerifier

/** Makes a call of this method, and answers with its result. */
type CallMethod = (method: string, call: () => unknown) => unknown

/** A target has the members that its system offers. */
const members: { readonly [Name in keyof Required<EveryTarget>]: 'method' | 'fact' } = {
  findUser: 'method',
  createUser: 'method',
  syncUser: 'method',
  deleteUser: 'method',
  storedAt: 'method',
  storable: 'method',
  requirePlaces: 'method',
  checkPlaces: 'method',
  defaultValue: 'method',
  close: 'method',
  renamesUsers: 'fact',
  keepsDeleted: 'fact',
  auditsWithin: 'fact',
  keepsVersions: 'fact',

  setUserPassword: 'method',

  lookupUserByLogin: 'method',
  lookupUserById: 'method',
  searchUsers: 'method',
  lookupGroupByName: 'method',
  lookupGroupById: 'method',
  searchGroups: 'method',
  containingGroups: 'method',
  groupMembersAreIds: 'fact',
  showsGroups: 'fact',
  userIdIsLogin: 'fact',
  groupHasOwnId: 'fact',
  servedTimes: 'fact',
  ownsValues: 'fact',
  sortsLogins: 'fact',
  idsAreUnique: 'fact',

  findGroup: 'method',
  createGroup: 'method',
  updateGroup: 'method',
  deleteGroup: 'method',
  changeMemberGroups: 'method',

  readRows: 'method',
  stopsReads: 'fact',
  objects: 'fact',
  calls: 'fact',
  watches: 'fact',
  label: 'fact',
  callWorkflow: 'method',
  hasRepository: 'method',
  putRepository: 'method',
  reviewToken: 'method',
  verifyAccountToken: 'method',
  hasKeys: 'method',
}

/**
 * The target as tasks and gateways see it: with the same abilities, with `around` for each of its calls, and without
 * writes to existing accounts for runs that may only create accounts.
 */
export function watchedTarget(target: Target, around: CallMethod): Target {
  const watched: Partial<Record<string, unknown>> = {}
  for (const [name, kind] of Object.entries(members)) {
    if (!(name in target)) continue
    if (kind === 'fact') {
      // Read each time: a target may only know it once its system has answered.
      Object.defineProperty(watched, name, { get: () => Reflect.get(target, name, target), enumerable: true })
    } else {
      const method: unknown = Reflect.get(target, name, target)
      if (typeof method !== 'function') continue
      watched[name] = (...args: readonly unknown[]) => around(name, () => Reflect.apply(method, target, args))
    }
  }
  const plain = watched as Partial<Target> as Target
  return Object.assign(plain, guardedWrites(plain))
}
