import type {
  DeleteOptions,
  EntryChange,
  GroupChange,
  MemberGroupChange,
  SyncOptions,
} from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import { changesOf, unaudited } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { inParallel } from '#kernel/in-parallel.ts'

export const user = (userID: string, attributes: Record<string, string[]> = {}, groups: string[] = []): User => ({
  userID,
  attributes: Attributes.from(attributes),
  groups,
})

/** Of these attributes. Memberships stay, unless `groups` are given. */
export const sync = (
  userID: string,
  attributes: Record<string, string[]>,
  { groups, ...options }: Partial<SyncOptions> & { readonly groups?: string[] } = {},
): { readonly user: User; readonly options: SyncOptions } => ({
  user: user(userID, attributes, groups),
  options: { addOnly: false, attributes: Object.keys(attributes), keepGroups: groups === undefined, ...options },
})

type Changes = Promise<readonly EntryChange[]>

/** Throws CONFLICT if the login is taken. */
export const createUser = (directory: UserDirectory, user: User): Changes =>
  changesOf((request) => directory.createUser(user, user.attributes.names(), request, { mustBeNew: true }))

export const syncUser = (directory: UserDirectory, { user, options }: ReturnType<typeof sync>): Changes =>
  changesOf((request) => directory.syncUser(user, options, request))

export const deleteUser = (directory: UserDirectory, userID: string, options?: DeleteOptions): Changes =>
  changesOf((request) => directory.deleteUser(user(userID), request, options))

/** Throws CONFLICT if the name is taken. */
export async function createGroup(
  directory: UserDirectory,
  name: string,
  attributes: Record<string, string[]> = {},
): Promise<Group> {
  await directory.createGroup(name, attributes, unaudited, { mustBeNew: true })
  const group = await directory.lookupGroupByName(name)
  if (group === undefined) throw new Error(`the group ${name} was not created`)
  return group
}

export const updateGroup = (directory: UserDirectory, name: string, change: GroupChange): Changes =>
  changesOf((request) => directory.updateGroup(name, change, request))

export const deleteGroup = (directory: UserDirectory, name: string, options?: DeleteOptions): Changes =>
  changesOf((request) => directory.deleteGroup(name, request, options))

export const changeMemberGroups = (directory: UserDirectory, group: string, change: MemberGroupChange): Changes =>
  changesOf((request) => directory.changeMemberGroups(group, change, request))

/** How many users join or leave a group at the same time: each change waits for the row of the group. */
const width = 8

export const joinGroup = async (directory: UserDirectory, group: string, logins: readonly string[]): Changes =>
  (
    await inParallel(logins, width, (login) => syncUser(directory, sync(login, {}, { groups: [group], addOnly: true })))
  ).flat()

export const leaveGroup = async (directory: UserDirectory, group: string, logins: readonly string[]): Changes =>
  (
    await inParallel(logins, width, async (login) => {
      const { groups = [] } = (await directory.lookupUserByLogin(login)) ?? {}
      return syncUser(directory, sync(login, {}, { groups: groups.filter((name) => name !== group) }))
    })
  ).flat()
