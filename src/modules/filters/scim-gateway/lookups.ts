import type { Filter } from '#identity/filter/ast.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { SearchPage } from '#sdk/target.ts'

export interface FoundUser {
  /** As SCIM knows the user. */
  readonly id: string
  readonly user: User
}

export interface FoundGroup {
  /** As SCIM knows the group. */
  readonly id: string
  readonly group: Group
}

export interface Query {
  readonly filter?: Filter
  readonly offset: number
  readonly limit: number
}

/** Where the gateway reads users and groups: a target, or the virtual directory. Nothing here writes. */
export interface Lookups {
  userById(id: string): Promise<FoundUser | undefined>
  userByLogin(login: string): Promise<FoundUser | undefined>
  searchUsers(query: Query): Promise<SearchPage<FoundUser>>
  /** `members` are not owed unless asked for, since they may be many. */
  groupById(id: string, members: boolean): Promise<FoundGroup | undefined>
  searchGroups(query: Query): Promise<SearchPage<FoundGroup>>
  /** The SCIM ids of a group's members; the group was read with them. */
  memberIds(found: FoundGroup): Promise<readonly string[]>
  isMember(found: FoundGroup, member: FoundUser): Promise<boolean>
  groupsOf(member: FoundUser): Promise<readonly FoundGroup[]>
  /** Attributes that hold the login, the user's id and the group's name and id in filters. */
  readonly names: {
    readonly login: readonly string[]
    readonly userId: readonly string[]
    readonly groupName: readonly string[]
    readonly groupId: readonly string[]
  }
}

export const lookupWidth = 8
