import { type MappedValue, toTexts, userIdName } from '#identity/mapping/mapped-value.ts'
import type { User } from '#identity/user.ts'
import type { Expiry } from '#sdk/target/expiry.ts'
import type { ReadVersion } from '#sdk/workflow/workflow.ts'
import type { WorkflowUser } from '#sdk/workflow/workflow-task.ts'

/** A copy of a user that can be changed independently. */
export function copyUser(user: WorkflowUser): WorkflowUser {
  return { ...user, attributes: user.attributes.clone(), groups: [...user.groups] }
}

/** The password for a run that another one starts; none after a task has set it. */
export const unusedPassword = ({ password, passwordTargets }: WorkflowUser): string | undefined =>
  passwordTargets === undefined ? password : undefined

/** The attribute's values, or the login for `TREMOLO_USER_ID`. */
export function userValues(user: User, name: string): readonly string[] {
  return name === userIdName ? [user.userID] : user.attributes.values(name)
}

/** The name by which a store knows the user: the attribute's first value, or the login if the user has none. */
export function lookupName(user: User, attribute: string): string {
  return userValues(user, attribute)[0] ?? user.userID
}

/** Writes mapped values into the user. `TREMOLO_USER_ID` sets the login; a document becomes its JSON text. */
export function assignMapped(
  user: Pick<WorkflowUser, 'userID' | 'attributes'>,
  mapped: Iterable<readonly [string, MappedValue]>,
): void {
  for (const [name, value] of mapped) {
    const values = toTexts(value)
    if (name !== userIdName) user.attributes.set(name, values)
    else if (values[0] !== undefined && values[0] !== '') user.userID = values[0]
  }
}

/** Groups of `first`, then those of `second` that it lacks, without regard to letter case. */
export function unionOfGroups(first: readonly string[], second: readonly string[]): string[] {
  const seen = new Set<string>()
  return [...first, ...second].filter((name) => {
    const key = name.toLowerCase()
    return !seen.has(key) && seen.add(key)
  })
}

/** Groups of `first` that are not in `second`. */
export function withoutGroups(first: readonly string[], second: readonly string[]): string[] {
  const dropped = new Set(second.map((name) => name.toLowerCase()))
  return first.filter((name) => !dropped.has(name.toLowerCase()))
}

/** The membership expires; without an expiry, an earlier one is removed. */
export function timeGroup(user: WorkflowUser, name: string, expiry: Expiry | undefined): void {
  const others = (user.timedGroups ?? []).filter((timed) => timed.name.toLowerCase() !== name.toLowerCase())
  user.timedGroups = expiry === undefined ? others : [...others, { name, expiry }]
}

/**
 * While the memberships are unknown, only the change is recorded, so that provisioning applies it to those of the
 * target.
 */
export function changeGroups(user: WorkflowUser, add: readonly string[], remove: readonly string[]): void {
  if (!user.keepGroups) {
    user.groups = unionOfGroups(withoutGroups(user.groups, remove), add)
    return
  }
  const noted = user.groupChanges ?? { add: [], remove: [] }
  user.groupChanges = {
    add: unionOfGroups(withoutGroups(noted.add, remove), add),
    remove: unionOfGroups(withoutGroups(noted.remove, add), remove),
  }
}

/** Sets the memberships, which are known from here on. */
export function setGroups(user: WorkflowUser, groups: readonly string[]): void {
  user.groups = [...groups]
  user.keepGroups = false
  delete user.groupChanges
}

/** The user's future memberships, given those at the target; undefined keeps them. */
export function wantedGroups(
  user: Pick<WorkflowUser, 'groups' | 'keepGroups' | 'groupChanges'>,
  present: readonly string[],
): readonly string[] | undefined {
  if (!user.keepGroups) return user.groups
  if (user.groupChanges === undefined) return undefined
  return unionOfGroups(withoutGroups(present, user.groupChanges.remove), user.groupChanges.add)
}

/** Group names without regard to letter case. */
export const isGroupIn = (names: readonly string[], group: string): boolean =>
  names.some((name) => name.toLowerCase() === group.toLowerCase())

/** A copy of the user with the same memberships of these groups; all others are left to the target. */
export function limitGroups(user: WorkflowUser, names: readonly string[]): WorkflowUser {
  const listed = (groups: readonly string[]): string[] => groups.filter((group) => isGroupIn(names, group))
  const { groupChanges: noted, ...rest } = user
  const add = listed(user.keepGroups ? (noted?.add ?? []) : user.groups)
  const remove = user.keepGroups ? listed(noted?.remove ?? []) : withoutGroups(names, add)
  const limited = { ...rest, groups: [], keepGroups: true }
  return add.length + remove.length === 0 ? limited : { ...limited, groupChanges: { add, remove } }
}

/**
 * From here on the memberships are known: those of the user and those of a store. With `inverse`, only those of the
 * store that the user does not have, which expresses a removal.
 */
export function takeLoadedGroups(user: WorkflowUser, loaded: readonly string[], inverse: boolean): void {
  const named = user.keepGroups ? (user.groupChanges?.add ?? []) : user.groups
  const removed = user.groupChanges?.remove ?? []
  if (inverse) setGroups(user, withoutGroups(loaded, named))
  else setGroups(user, withoutGroups(unionOfGroups(named, loaded), removed))
}

/** Renames or drops groups. While the memberships are unknown, this affects only recorded changes. */
export function rewriteGroups(user: WorkflowUser, rewrite: (groups: readonly string[]) => string[]): void {
  user.groups = rewrite(user.groups)
  const { groupChanges, timedGroups } = user
  if (timedGroups !== undefined) {
    user.timedGroups = timedGroups.flatMap(({ name, expiry }) =>
      rewrite([name]).map((other) => ({ name: other, expiry })),
    )
  }
  if (groupChanges === undefined) return
  user.groupChanges = { add: rewrite(groupChanges.add), remove: rewrite(groupChanges.remove) }
}

/** What a task read is the base of writes to that target, unless a version was read, or named by the caller, before. */
export function noteVersion(user: WorkflowUser, target: string, found: User | undefined): void {
  if (found?.version === undefined) return
  user.basedOn ??= new Map()
  if (user.basedOn.has(target)) return
  user.basedOn.set(target, { target, version: found.version, userID: found.userID })
}

/** The expected version of the first write to the target; the logins are those there. */
export function takeVersion(user: WorkflowUser, target: string, logins: readonly string[]): ReadVersion | undefined {
  const read: ReadVersion | undefined = user.basedOn?.get(target)
  if (read === undefined) return undefined
  const { userID } = read
  if (userID !== undefined && !logins.some((login) => sameLogin(login, userID))) return undefined
  user.basedOn?.delete(target)
  return read
}

/** Whether the logins differ at most in letter case. */
export const sameLogin = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()
