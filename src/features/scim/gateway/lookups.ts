import { type EntryType, userType } from '#features/scim/types/entry-type.ts'
import type { ContainingGroup, GroupReadOptions } from '#identity/account-store.ts'
import type { Group, MembersPage, NamedGroup } from '#identity/group.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { type Awaitable, andThen, firstResult, settle } from '#kernel/awaitable.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { MemberType } from '#protocols/scim/patch/member-change.ts'
import { hasLookups, type LookupTarget, nestsGroups, type ServedTimes, type Target } from '#sdk/target/target.ts'
import { noVersion, type ReadVersion } from '#sdk/workflow/workflow.ts'
import type { GatewayConfig } from './gateway-config.ts'

export interface FoundUser {
  /** The SCIM id. */
  readonly id: string
  readonly user: User
  /** The direct groups of the user, with SCIM ids, if they were looked up. */
  readonly groups?: readonly NamedGroup[]
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
  readonly display?: string | undefined
}

/** Reads users and groups, from a target or the virtual directory. */
export interface Lookups {
  userById(id: string): Awaitable<FoundUser | undefined>
  userByLogin(login: string): Awaitable<FoundUser | undefined>
  searchUsers(query: SearchQuery): Promise<SearchPage<FoundUser>>
  /** Without `members`, the members need not be read, since there may be many. */
  groupById(id: string, members: boolean): Promise<FoundGroup | undefined>
  /** By the name that workflows use, without members. */
  groupByName(name: string): Promise<FoundGroup | undefined>
  searchGroups(query: SearchQuery): Promise<SearchPage<FoundGroup>>
  /** The group was read with its members. With `names`, missing display names are looked up if they are few. */
  members(found: FoundGroup, names: boolean): Promise<readonly Member[]>
  /** The same members in parts, as they are read, without looking up missing display names. */
  memberPages(found: FoundGroup): AsyncIterable<readonly Member[]>
  isMember(found: FoundGroup, member: FoundUser): Promise<boolean>
  groupsOf(member: FoundUser): Promise<readonly FoundGroup[]>
  readonly ids: ResourceIds
  /** Groups can be members of groups. */
  readonly nestsGroups: boolean
  /** For each of these groups, the groups that contain it, if any. All ids are SCIM ids. */
  containing(ids: readonly string[]): Promise<ReadonlyMap<string, readonly ContainingGroup[]>>
  /** The direct groups of the user, with SCIM ids: in a directory those of the named entries, if names are given. */
  memberships(found: FoundUser, names?: readonly string[]): Awaitable<readonly NamedGroup[]>
  /** Adds the groups, and those that contain them, with one query for all users; none if groups are not shown. */
  withIndirectGroups(users: readonly FoundUser[]): Awaitable<readonly FoundUser[]>
  /** The id of a group is its name, so to clients a renamed group would be another one. */
  readonly groupIdIsName: boolean
  /** The attribute with the ids of users, if these are neither the store's own nor logins. Without a value it is the login. */
  readonly userIdAttribute: string | undefined
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
  /** Values come back as this gateway writes them, and in that order. */
  readonly ownsValues: boolean
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
  /** Before the ids of a type that is neither users nor groups. */
  readonly #typeMark: string | undefined

  constructor(idsAreUnique: boolean, type: EntryType = userType) {
    this.#marks = !idsAreUnique
    this.#typeMark = this.#marks && type.isCustom ? `${type.name.toLowerCase()}:` : undefined
  }

  /** The store cannot evaluate conditions on parts of SCIM ids of users. */
  get marksUsers(): boolean {
    return this.#typeMark !== undefined
  }

  /** SCIM ids differ from those of the store, so the store cannot evaluate conditions on parts of them. */
  get areMarked(): boolean {
    return this.#marks
  }

  ofGroup(stored: string): string {
    return this.#marks ? groupMark + stored : stored
  }

  ofUser(stored: string): string {
    if (this.#typeMark !== undefined) return this.#typeMark + stored
    return this.#marks && this.typeOf(stored) !== undefined ? userMark + stored : stored
  }

  /** The ids of the store that this may be, the likelier first. Older versions used group ids without prefix. */
  storedGroup(id: string): readonly string[] {
    return this.#marks && id.startsWith(groupMark) ? [id.slice(groupMark.length), id] : [id]
  }

  storedUser(id: string): readonly string[] {
    const mark = this.#typeMark
    if (mark !== undefined) return id.startsWith(mark) ? [id.slice(mark.length)] : []
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

/** The id of the group under this name: names that are ids may change their letter case. */
export function idUnderName({ groupIdIsName, ids }: Lookups, id: string, name: string) {
  const byName = ids.ofGroup(name)
  return groupIdIsName && byName.toLowerCase() === id.toLowerCase() ? byName : id
}

/** The user with the groups that contain its direct ones, given by their ids. */
export function withGroups(
  found: FoundUser,
  direct: ReadonlySet<string>,
  containing: readonly NamedGroup[],
): FoundUser {
  const indirect = new Map(containing.filter(({ id }) => !direct.has(id)).map((group) => [group.id, group]))
  return indirect.size === 0 ? found : { ...found, indirectGroups: [...indirect.values()] }
}

/** Throws INTERNAL if the target has no lookups. */
export function targetLookups(target: Target, config: GatewayConfig): Lookups {
  if (!hasLookups(target)) throw new GatewayError('INTERNAL', 'the lookupTarget has no look-ups')
  return new TargetLookups(target, config)
}

type TargetReads = ReturnType<typeof readsOf>

const readsOf = (target: LookupTarget) => ({
  lookupUserByLogin: (login: string) => reading(() => target.lookupUserByLogin(login)),
  lookupUserById: (id: string) => reading(() => target.lookupUserById(id)),
  searchUsers: async (query: SearchQuery) => reading(() => target.searchUsers(query)),
  lookupGroupByName: async (name: string, options: GroupReadOptions) =>
    reading(() => target.lookupGroupByName(name, options)),
  lookupGroupById: async (id: string, options: GroupReadOptions) => reading(() => target.lookupGroupById(id, options)),
  searchGroups: async (query: SearchQuery) => reading(() => target.searchGroups(query)),
  containingGroups: async (ids: readonly string[]) => reading(() => target.containingGroups?.(ids)),
})

class TargetLookups implements Lookups {
  readonly #target: LookupTarget
  readonly #reads: TargetReads
  readonly #config: GatewayConfig
  /** A user's SCIM id is the login. */
  readonly #loginIsId: boolean
  readonly userIdAttribute: string | undefined
  /** The attribute of a group's SCIM id, if that is neither the target's own id nor the name. A group without it has these. */
  readonly #groupIdAttribute: string | undefined
  readonly names: Lookups['names']
  readonly groupIdIsName: boolean
  readonly renamesUsers: boolean
  readonly ids: ResourceIds
  /** The attributes of the display names of members. */
  readonly #display: { readonly users: string; readonly groups: string }

  constructor(target: LookupTarget, config: GatewayConfig) {
    this.#target = target
    this.#reads = readsOf(target)
    this.#config = config
    this.#display = { users: config.users.displayAttribute, groups: config.groups.displayAttribute ?? '' }
    const { loginAttribute, idAttribute = 'id' } = config.users
    const isLogin = idAttribute.toLowerCase() === loginAttribute.toLowerCase()
    const isOwn = idAttribute.toLowerCase() === 'id'
    this.#loginIsId = isLogin || (isOwn && target.userIdIsLogin)
    this.userIdAttribute = isLogin || isOwn ? undefined : idAttribute
    this.renamesUsers = target.renamesUsers === true && !this.#loginIsId
    const { displayAttribute, lookupAttribute, idAttribute: groupId = 'id' } = config.groups
    const isName = ['name', lookupAttribute.toLowerCase()].includes(groupId.toLowerCase())
    this.groupIdIsName = isName || !target.groupHasOwnId
    this.#groupIdAttribute = isName || groupId.toLowerCase() === 'id' ? undefined : groupId
    const areOwn = isOwn && !this.groupIdIsName && this.#groupIdAttribute === undefined
    this.ids = new ResourceIds(areOwn && target.idsAreUnique === true, config.users.type)
    const login = ['userID', loginAttribute]
    this.names = {
      login,
      userId: this.#loginIsId ? login : [this.userIdAttribute ?? 'id'],
      groupName: ['name', ...(displayAttribute === undefined ? [] : [displayAttribute])],
      groupId: [target.groupHasOwnId ? 'id' : 'name'],
    }
  }

  /** Read each time: a target may only know it once its system has answered. */
  get keepsVersions(): boolean {
    return this.#target.keepsVersions === true
  }

  get nestsGroups(): boolean {
    return nestsGroups(this.#target)
  }

  get servedTimes(): ServedTimes {
    return this.#target.servedTimes ?? { users: [], groups: [] }
  }

  get ownsValues(): boolean {
    return this.#target.ownsValues === true
  }

  userById(id: string): Awaitable<FoundUser | undefined> {
    return firstResult(this.ids.storedUser(id), (stored) => this.#userByStoredId(stored))
  }

  #userByStoredId(id: string): Awaitable<FoundUser | undefined> {
    const attribute = this.userIdAttribute
    if (attribute !== undefined) return this.#userWith(attribute, id)
    if (this.#loginIsId && !this.#target.userIdIsLogin) return this.userByLogin(id)
    return andThen(this.#reads.lookupUserById(id), (user) => user && this.#found(user))
  }

  /** If two users have the value, neither is found: it is better to fail than to change the wrong one. */
  async #userWith(attribute: string, value: string): Promise<FoundUser | undefined> {
    const filter = { kind: 'equal', attribute, value, caseExact: true } as const
    const { items } = await this.#reads.searchUsers({ filter, offset: 0, limit: 2 })
    const [found] = items
    if (found !== undefined) return items.length > 1 ? undefined : this.#found(found)
    const user = await this.#reads.lookupUserByLogin(value)
    return user === undefined || user.attributes.has(attribute) ? undefined : this.#found(user)
  }

  userByLogin(login: string): Awaitable<FoundUser | undefined> {
    return andThen(this.#reads.lookupUserByLogin(login), (user) => user && this.#found(user))
  }

  async searchUsers(query: SearchQuery) {
    const page = await this.#reads.searchUsers(query)
    return { ...page, items: page.items.map((user) => this.#found(user)) }
  }

  async groupById(id: string, members: boolean): Promise<FoundGroup | undefined> {
    const options = members ? { members, inPages: true, display: this.#display } : { members }
    const group = await firstResult(this.ids.storedGroup(id), (stored) => this.#groupByStoredId(stored, options))
    return group && this.#foundGroup(group)
  }

  /** If two groups have the id, neither is found. */
  async #groupByStoredId(id: string, options: GroupReadOptions): Promise<Group | undefined> {
    const attribute = this.#groupIdAttribute
    if (attribute !== undefined) {
      const filter = { kind: 'equal', attribute, value: id, caseExact: true } as const
      const { items } = await this.#reads.searchGroups({ filter, offset: 0, limit: 2 })
      const [found] = items
      if (found !== undefined) return items.length > 1 ? undefined : this.#reads.lookupGroupByName(found.name, options)
    }
    const byName = this.groupIdIsName && this.#target.groupHasOwnId
    const group = await (byName ? this.#reads.lookupGroupByName(id, options) : this.#reads.lookupGroupById(id, options))
    return attribute !== undefined && group?.attributes?.has(attribute) === true ? undefined : group
  }

  async groupByName(name: string): Promise<FoundGroup | undefined> {
    const group = await this.#reads.lookupGroupByName(name, { members: false })
    return group && this.#foundGroup(group)
  }

  async searchGroups(query: SearchQuery) {
    const page = await this.#reads.searchGroups(query)
    return { ...page, items: page.items.map((group) => this.#foundGroup(group)) }
  }

  async members(found: FoundGroup, names: boolean): Promise<readonly Member[]> {
    const { group } = found
    if (group.memberPages !== undefined) return (await Array.fromAsync(this.memberPages(found))).flat()
    return [...(await this.#memberUsers(group, names)), ...(await this.#memberGroups(group))]
  }

  async *memberPages({ group }: FoundGroup): AsyncGenerator<readonly Member[]> {
    for await (const page of pagesOf(group))
      yield [...(await this.#memberUsers(page, false)), ...(await this.#memberGroups(page))]
    yield await this.#memberGroups(group)
  }

  async #memberGroups({ memberGroups = [] }: MembersPage): Promise<readonly Member[]> {
    const ids = await this.#groupIds(memberGroups)
    return memberGroups.flatMap(({ name, display }) => {
      const id = ids.get(name)
      return id === undefined ? [] : [{ id, type: 'Group', display: display ?? name }]
    })
  }

  /** The SCIM ids by name. A group without one is gone. */
  async #groupIds(groups: readonly NamedGroup[]): Promise<ReadonlyMap<string, string>> {
    if (this.#groupIdAttribute === undefined) return new Map(groups.map((group) => [group.name, this.#groupId(group)]))
    return this.#lookUpIds(groups.map(({ name }) => name))
  }

  async #lookUpIds(names: Iterable<string>): Promise<ReadonlyMap<string, string>> {
    const found = await inParallel([...new Set(names)], lookupWidth, async (name) => {
      const group = await this.#reads.lookupGroupByName(name, { members: false })
      return group === undefined ? [] : [[name, this.#groupId(group)] as const]
    })
    return new Map(found.flat())
  }

  memberships({ user, groups }: FoundUser): Awaitable<readonly NamedGroup[]> {
    const known = groups ?? this.#knownGroups(user)
    if (known !== undefined) return known
    return this.#lookUpIds(user.groups).then((ids) => namedGroups(user, ids))
  }

  /** Undefined if the user was read without the ids of its groups. */
  #knownGroups({ groups, groupIds }: User): readonly NamedGroup[] | undefined {
    if (groups.length === 0) return []
    const stored = this.groupIdIsName ? groups : groupIds
    if (stored === undefined || this.#groupIdAttribute !== undefined) return undefined
    return stored.map((id, i) => ({ id: this.ids.ofGroup(id), name: groups[i] ?? id }))
  }

  async #memberUsers(page: MembersPage, names: boolean): Promise<readonly Member[]> {
    const { groupMembersAreIds } = this.#target
    const { members, memberIds, memberDisplays } = page
    const isOwnId = this.userIdAttribute === undefined
    const idsAreKnown = isOwnId && groupMembersAreIds !== this.#loginIsId
    const isNamed = memberDisplays !== undefined || !names || members.length > maxNamed
    if (idsAreKnown && isNamed) {
      // The login serves as the display name if the store has none.
      const fallback = memberDisplays !== undefined && !groupMembersAreIds
      return members.map((id, i) => member(this.ids.ofUser(id), memberDisplays?.[i] ?? (fallback ? id : undefined)))
    }
    if (isOwnId && !this.#loginIsId && memberIds !== undefined && isNamed) {
      return members.map((login, i) => member(this.ids.ofUser(memberIds[i] ?? login), memberDisplays?.[i] ?? login))
    }
    const found = await inParallel(members, lookupWidth, (one) =>
      groupMembersAreIds ? this.#reads.lookupUserById(one) : this.#reads.lookupUserByLogin(one),
    )
    return found.flatMap((user, i) => {
      const given = members[i]
      if (user === undefined)
        return idsAreKnown && given !== undefined ? [member(this.ids.ofUser(given), undefined)] : []
      return [member(this.#found(user).id, user.attributes.first(this.#display.users) ?? user.userID)]
    })
  }

  async containing(ids: readonly string[]): Promise<ReadonlyMap<string, readonly ContainingGroup[]>> {
    const own = ids.length === 0 ? new Map<string, string>() : await this.#ownIds(ids)
    const found = own.size === 0 ? undefined : await this.#reads.containingGroups([...own.keys()])
    const shownIds = await this.#groupIds(Array.from(found?.values() ?? []).flat())
    const shown = new Map<string, readonly ContainingGroup[]>()
    for (const [id, groups] of found ?? []) {
      shown.set(
        own.get(id) ?? this.ids.ofGroup(id),
        groups.flatMap((group) => {
          const groupId = shownIds.get(group.name)
          return groupId === undefined ? [] : [{ ...group, id: groupId }]
        }),
      )
    }
    return shown
  }

  /** SCIM ids of groups by the target's own ids. */
  async #ownIds(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const areOwn = this.#groupIdAttribute === undefined && this.groupIdIsName !== this.#target.groupHasOwnId
    if (areOwn) return new Map(ids.map((id) => [this.ids.storedGroup(id)[0] ?? id, this.ids.groupForm(id)]))
    const found = await inParallel(ids, lookupWidth, (id) => this.groupById(id, false))
    return new Map(found.flatMap((group) => (group === undefined ? [] : [[group.group.id, group.id]])))
  }

  withIndirectGroups(users: readonly FoundUser[]): Awaitable<readonly FoundUser[]> {
    if (!this.#config.users.showsGroups) return users
    return andThen(this.#withGroups(users), (read) => this.#withIndirect(read))
  }

  #withGroups(users: readonly FoundUser[]): Awaitable<readonly FoundUser[]> {
    const unknown = users.filter(({ user }) => this.#knownGroups(user) === undefined)
    if (unknown.length === 0) return users
    return this.#lookUpIds(unknown.flatMap(({ user }) => user.groups)).then((ids) =>
      users.map((found) => ({ ...found, groups: this.#knownGroups(found.user) ?? namedGroups(found.user, ids) })),
    )
  }

  #withIndirect(users: readonly FoundUser[]): Awaitable<readonly FoundUser[]> {
    if (this.#target.containingGroups === undefined || this.#config.users.mapping.isEmpty) return users
    const groupsOf = ({ user, groups }: FoundUser): readonly NamedGroup[] =>
      user.groupsAreNested === false ? [] : (groups ?? this.#knownGroups(user) ?? [])
    const ids = new Set(users.flatMap(groupsOf).map(({ id }) => id))
    if (ids.size === 0) return users
    return this.containing([...ids]).then((containing) => {
      if (containing.size === 0) return users
      return users.map((found) => {
        const direct = new Set(groupsOf(found).map(({ id }) => id))
        return withGroups(
          found,
          direct,
          [...direct].flatMap((id) => containing.get(id) ?? []),
        )
      })
    })
  }

  async isMember({ group }: FoundGroup, { user }: FoundUser): Promise<boolean> {
    const name = group.name.toLowerCase()
    return user.groups.some((held) => held.toLowerCase() === name)
  }

  async groupsOf({ user }: FoundUser): Promise<readonly FoundGroup[]> {
    const groups = await inParallel(user.groups, lookupWidth, (name) =>
      this.#reads.lookupGroupByName(name, { members: false }),
    )
    return groups.flatMap((group) => (group === undefined ? [] : [this.#foundGroup(group)]))
  }

  readVersion(found: FoundUser | undefined, joinedOrLeft?: FoundGroup): ReadVersion | undefined {
    const { lookup } = this.#config
    const version = found === undefined ? noVersion : found.user.version
    if (this.#target.keepsVersions !== true || version === undefined || lookup.kind !== 'target') return undefined
    const group = this.#target.groupHasOwnId ? joinedOrLeft?.group : undefined
    if (group === undefined) return { target: lookup.name, version }
    return { target: lookup.name, version, group: { name: group.name, id: group.id } }
  }

  #found(user: User): FoundUser {
    if (this.#loginIsId) return { id: this.ids.ofUser(user.userID), user }
    const own = this.userIdAttribute === undefined ? user.id : user.attributes.first(this.userIdAttribute)
    return { id: this.ids.ofUser(own ?? user.userID), user }
  }

  #foundGroup(group: Group): FoundGroup {
    return { id: this.#groupId(group), group }
  }

  #groupId({ id, name, attributes }: NamedGroup & Pick<Group, 'attributes'>): string {
    const attribute = this.#groupIdAttribute
    const chosen = attribute === undefined ? undefined : attributes?.first(attribute)
    return this.ids.ofGroup(chosen ?? (this.groupIdIsName ? name : id))
  }
}

const namedGroups = ({ groups }: User, ids: ReadonlyMap<string, string>): readonly NamedGroup[] =>
  groups.flatMap((name) => {
    const id = ids.get(name)
    return id === undefined ? [] : [{ id, name }]
  })

/** The answer with a group of more members is written part by part. */
const membersPerPage = 1000

/** Whether the group, which was read with its members, has more than fit into one part. */
export const hasManyMembers = ({ group }: FoundGroup): boolean =>
  group.memberPages !== undefined || group.members.length > membersPerPage

/** The members of a group that was read with them, without its `memberGroups`. */
export async function* pagesOf(group: Group): AsyncGenerator<MembersPage> {
  const { members, memberIds, memberDisplays, memberPages } = group
  if (memberPages !== undefined) {
    yield* memberPages()
    return
  }
  for (let start = 0; start < members.length; start += membersPerPage) {
    const end = start + membersPerPage
    yield {
      members: members.slice(start, end),
      memberIds: memberIds?.slice(start, end),
      memberDisplays: memberDisplays?.slice(start, end),
    }
  }
}

/** The most members of a group that are looked up only for their names. */
const maxNamed = 100

const member = (id: string, display: string | undefined): Member => ({
  id,
  type: 'User',
  display,
})

/** A target's failure to be read, with a text about reading. */
class ReadFailure extends GatewayError {
  constructor(cause: GatewayError, publicText: string) {
    super('TARGET_FAILED', `a read failed: ${cause.message}`, { cause, publicText })
  }
}

/**
 * The result of reading, whose failure says that reading failed, since the general text of a target is about changes. The
 * log has the details.
 */
export const reading = <T>(read: () => Awaitable<T>): Awaitable<T> => settle(read, passed, failed)

const passed = <T>(result: T): T => result

function failed(error: unknown): never {
  const isPlain = error instanceof GatewayError && error.code === 'TARGET_FAILED' && error.ownText === undefined
  if (!isPlain) throw error
  throw new ReadFailure(
    error,
    'Reading from the target failed. The log of the gateway has the reason, under the id of this request.',
  )
}

/** Adds to a failed read that it came after a workflow had ended, so the change may be made. */
export function afterWorkflow(error: unknown): unknown {
  if (!(error instanceof ReadFailure)) return error
  const remedy = 'A workflow of this request had ended before: read the resource before you repeat the request.'
  return new ReadFailure(error, `${error.publicText} ${remedy}`)
}
