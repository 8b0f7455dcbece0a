import type { Filter } from '#identity/filter/ast.ts'
import type { Group, NamedGroup } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { SortOrder } from '#identity/user-directory.ts'
import { errorCodes, GatewayError } from '#kernel/errors.ts'
import type { MemberType } from '#protocols/scim/patch/member-change.ts'
import type { ContainingGroup, SearchPage, ServedTimes } from '#sdk/target/target.ts'
import type { ReadVersion } from '#sdk/workflow/workflow.ts'

export interface FoundUser {
  /** The SCIM id. */
  readonly id: string
  readonly user: User
  /** The groups that contain groups of the user, with SCIM ids, if they were read. */
  readonly indirectGroups?: readonly NamedGroup[]
}

export interface FoundGroup {
  /** The SCIM id. */
  readonly id: string
  readonly group: Group
}

export interface Member {
  /** The SCIM id. */
  readonly id: string
  readonly type: MemberType
  /** The display name, if it is known. */
  readonly display?: string
}

export interface Query {
  readonly filter?: Filter
  readonly offset: number
  readonly limit: number
  readonly sort?: SortOrder
  /** The `next` of a page of the same filter and order, instead of an offset. Any other value is a BAD_REQUEST. */
  readonly after?: string
}

/** Reads users and groups, from a target or the virtual directory. */
export interface Lookups {
  userById(id: string): Promise<FoundUser | undefined>
  userByLogin(login: string): Promise<FoundUser | undefined>
  searchUsers(query: Query): Promise<SearchPage<FoundUser>>
  /** Without `members`, the members need not be read, since there may be many. */
  groupById(id: string, members: boolean): Promise<FoundGroup | undefined>
  /** By the name that workflows use, without members. */
  groupByName(name: string): Promise<FoundGroup | undefined>
  searchGroups(query: Query): Promise<SearchPage<FoundGroup>>
  /** The group was read with its members. With `names`, missing display names are looked up if they are few. */
  members(found: FoundGroup, names: boolean): Promise<readonly Member[]>
  isMember(found: FoundGroup, member: FoundUser): Promise<boolean>
  groupsOf(member: FoundUser): Promise<readonly FoundGroup[]>
  readonly ids: ResourceIds
  /** Groups can be members of groups. */
  readonly nestsGroups: boolean
  /** For each of these groups, the groups that contain it, if any. All ids are SCIM ids. */
  containing(ids: readonly string[]): Promise<ReadonlyMap<string, readonly ContainingGroup[]>>
  /** Adds the groups that contain the users' groups, with one query for all; none if groups are not shown. */
  withIndirectGroups(users: readonly FoundUser[]): Promise<readonly FoundUser[]>
  /** The id of a group is its name, so to clients a renamed group would be another one. */
  readonly groupIdIsName: boolean
  /** Users and groups have versions, and changes can be bound to them. */
  readonly keepsVersions: boolean
  /** The login of a user can change without changing its id. */
  readonly renamesUsers: boolean
  /**
   * The version that a change of this user, or of an absent one, is to be bound to, if the store supports that; for a
   * change of membership, with the group.
   */
  readVersion(found: FoundUser | undefined, joinedOrLeft?: FoundGroup): ReadVersion | undefined
  /** The times that searches can filter and sort by. */
  readonly servedTimes: ServedTimes
  /** The attributes of login, user id, group name and group id in filters; the store's own name first. */
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
 * Converts ids of the store to SCIM ids, which are unique across resources. If a user and a group of the store may have
 * the same id, groups get a prefix, and so do the few users whose ids look like prefixed ones.
 */
export class ResourceIds {
  readonly #marks: boolean

  constructor(idsAreUnique: boolean) {
    this.#marks = !idsAreUnique
  }

  /** SCIM ids differ from those of the store, so the store cannot evaluate conditions on parts of them. */
  get areMarked(): boolean {
    return this.#marks
  }

  ofGroup(stored: string): string {
    return this.#marks ? groupMark + stored : stored
  }

  ofUser(stored: string): string {
    return this.#marks && this.typeOf(stored) !== undefined ? userMark + stored : stored
  }

  /** The ids of the store that this may be, the likelier first. Older versions used group ids without prefix. */
  storedGroup(id: string): readonly string[] {
    return this.#marks && id.startsWith(groupMark) ? [id.slice(groupMark.length), id] : [id]
  }

  storedUser(id: string): readonly string[] {
    return this.#marks && id.startsWith(userMark) ? [id.slice(userMark.length), id] : [id]
  }

  /** The type by the prefix; undefined without one. */
  typeOf(id: string): MemberType | undefined {
    if (!this.#marks) return undefined
    return id.startsWith(groupMark) ? 'Group' : id.startsWith(userMark) ? 'User' : undefined
  }

  /** The current form of a group id, for one that may be in the older form. */
  groupForm(id: string): string {
    return this.ofGroup(this.storedGroup(id)[0] ?? id)
  }
}

const failures = new WeakSet<object>()

/**
 * The same lookups, but a failure says that reading failed, since the general text of a target is about changes. The log
 * has the details.
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

/** Adds to a failed read that it came after a workflow had ended, so the change may be made. */
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
