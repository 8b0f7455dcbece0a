import type { Filter } from '#identity/filter/ast.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { SortOrder } from '#identity/user-directory.ts'
import type { SearchPage, ServedTimes } from '#sdk/target.ts'
import type { ReadVersion } from '#sdk/workflow.ts'

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

export interface Member {
  /** As SCIM knows the user. */
  readonly id: string
}

export interface Query {
  readonly filter?: Filter
  readonly offset: number
  readonly limit: number
  readonly sort?: SortOrder
  /** The `next` of a page of the same filter and order, instead of an offset. BAD_REQUEST when no page gave it. */
  readonly after?: string
}

/** Where the gateway reads users and groups: a target, or the virtual directory. Nothing here writes. */
export interface Lookups {
  userById(id: string): Promise<FoundUser | undefined>
  userByLogin(login: string): Promise<FoundUser | undefined>
  searchUsers(query: Query): Promise<SearchPage<FoundUser>>
  /** `members` are not owed unless asked for, since they may be many. */
  groupById(id: string, members: boolean): Promise<FoundGroup | undefined>
  /** By the name that workflows know it by, without members. */
  groupByName(name: string): Promise<FoundGroup | undefined>
  searchGroups(query: Query): Promise<SearchPage<FoundGroup>>
  /** The group was read with its members. */
  members(found: FoundGroup): Promise<readonly Member[]>
  isMember(found: FoundGroup, member: FoundUser): Promise<boolean>
  groupsOf(member: FoundUser): Promise<readonly FoundGroup[]>
  /** A group has no id but its name, so under another name it would be another group to clients. */
  readonly groupIdIsName: boolean
  /** Users and groups carry a version, and changes can be bound to it. */
  readonly keepsVersions: boolean
  /** A user can have another login and stay the same to clients. */
  readonly renamesUsers: boolean
  /**
   * What a change that was computed from this user, or from there being none, is to be bound to, where the store can do
   * that; for a change of membership, to the group as well.
   */
  readVersion(found: FoundUser | undefined, joinedOrLeft?: FoundGroup): ReadVersion | undefined
  /** The times that searches can filter and sort by. */
  readonly servedTimes: ServedTimes
  /** Attributes that hold the login, the user's id and the group's name and id in filters; the store's own name first. */
  readonly names: {
    readonly login: readonly string[]
    readonly userId: readonly string[]
    readonly groupName: readonly string[]
    readonly groupId: readonly string[]
  }
}

export const lookupWidth = 8
