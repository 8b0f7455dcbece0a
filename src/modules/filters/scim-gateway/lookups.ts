import type { Filter } from '#identity/filter/ast.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { NamedGroup, SortOrder } from '#identity/user-directory.ts'
import { errorCodes, GatewayError } from '#kernel/errors.ts'
import type { MemberType } from '#protocols/scim/patch/member-change.ts'
import type { ContainingGroup, SearchPage, ServedTimes } from '#sdk/target.ts'
import type { ReadVersion } from '#sdk/workflow.ts'

export interface FoundUser {
  /** As SCIM knows the user. */
  readonly id: string
  readonly user: User
  /** The groups that contain groups of the user, where they were asked for; their ids are those of SCIM. */
  readonly indirectGroups?: readonly NamedGroup[]
}

export interface FoundGroup {
  /** As SCIM knows the group. */
  readonly id: string
  readonly group: Group
}

export interface Member {
  /** As SCIM knows the user or group. */
  readonly id: string
  readonly type: MemberType
  /** The name that people know it by, where that is known. */
  readonly display?: string
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
  /** The group was read with its members. `names`: worth a few look-ups where the store did not read them along. */
  members(found: FoundGroup, names: boolean): Promise<readonly Member[]>
  isMember(found: FoundGroup, member: FoundUser): Promise<boolean>
  groupsOf(member: FoundUser): Promise<readonly FoundGroup[]>
  readonly ids: ResourceIds
  /** Groups can be members of groups. */
  readonly nestsGroups: boolean
  /** For each of these groups that others contain: those. All ids are those of SCIM. */
  containing(ids: readonly string[]): Promise<ReadonlyMap<string, readonly ContainingGroup[]>>
  /** With the groups that contain theirs, by one question for all of them; none where groups are not shown. */
  withIndirectGroups(users: readonly FoundUser[]): Promise<readonly FoundUser[]>
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

const groupMark = 'group:'
const userMark = 'user:'

/**
 * How ids of the store are shown as ids of SCIM, which no two resources share. Where a user and a group of the store may
 * have the same id, groups are shown with a mark before it, and so are the few users whose ids look like marked ones.
 */
export class ResourceIds {
  readonly #marks: boolean

  constructor(idsAreUnique: boolean) {
    this.#marks = !idsAreUnique
  }

  /** Ids of the store aren't those of SCIM, so a store can't be asked for a part of them. */
  get areMarked(): boolean {
    return this.#marks
  }

  ofGroup(stored: string): string {
    return this.#marks ? groupMark + stored : stored
  }

  ofUser(stored: string): string {
    return this.#marks && this.typeOf(stored) !== undefined ? userMark + stored : stored
  }

  /** The ids of the store that this may mean, the likelier first. Unmarked ids of groups were given out in the past. */
  storedGroup(id: string): readonly string[] {
    return this.#marks && id.startsWith(groupMark) ? [id.slice(groupMark.length), id] : [id]
  }

  storedUser(id: string): readonly string[] {
    return this.#marks && id.startsWith(userMark) ? [id.slice(userMark.length), id] : [id]
  }

  /** What the mark says; undefined without one. */
  typeOf(id: string): MemberType | undefined {
    if (!this.#marks) return undefined
    return id.startsWith(groupMark) ? 'Group' : id.startsWith(userMark) ? 'User' : undefined
  }

  /** The one form of an id of a group that may be given in two. */
  groupForm(id: string): string {
    return this.ofGroup(this.storedGroup(id)[0] ?? id)
  }
}

const failures = new WeakSet<object>()

/**
 * The same look-ups, whose failures say that reading failed: a target's own words are about changes. Details stay in the
 * log.
 */
export function withReadFailures<T extends object>(lookups: T): T {
  return new Proxy(lookups, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return (...args: unknown[]): unknown => {
        const result: unknown = member.apply(target, args)
        return result instanceof Promise ? result.catch(failed) : result
      }
    },
  })
}

function failed(error: unknown): never {
  const isPlain = error instanceof GatewayError && error.publicText === errorCodes.TARGET_FAILED.text
  if (!isPlain || error.code !== 'TARGET_FAILED') throw error
  throw readFailure(
    error,
    'Reading from the target failed. The log of the gateway has the reason, under the id of this request.',
  )
}

/** Says of a failed read that it came after a workflow had ended, so that the change may be made. */
export function afterWorkflow(error: unknown): unknown {
  if (!(error instanceof GatewayError) || !failures.has(error)) return error
  const remedy = 'A workflow of this request had ended before: read the resource before you repeat the request.'
  return readFailure(error, `${error.publicText} ${remedy}`)
}

function readFailure(cause: GatewayError, publicText: string): GatewayError {
  const error = new GatewayError('TARGET_FAILED', `a read failed: ${cause.message}`, { cause, publicText })
  failures.add(error)
  return error
}
