import type { Group, NamedGroup } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import {
  type ContainingGroup,
  hasLookups,
  type LookupTarget,
  nestsGroups,
  type ServedTimes,
  type Target,
} from '#sdk/target/target.ts'
import { noVersion, type ReadVersion } from '#sdk/workflow/workflow.ts'
import { displayNameAttribute } from './filter-translation.ts'
import type { GatewayConfig } from './gateway-config.ts'
import {
  type FoundGroup,
  type FoundUser,
  type Lookups,
  lookupWidth,
  type Member,
  type Query,
  ResourceIds,
} from './lookups.ts'

/** Throws INTERNAL if the target has no lookups. */
export function targetLookups(target: Target, config: GatewayConfig): Lookups {
  if (!hasLookups(target)) throw new GatewayError('INTERNAL', 'the lookupTarget has no look-ups')
  return new TargetLookups(target, config)
}

class TargetLookups implements Lookups {
  readonly #target: LookupTarget
  readonly #config: GatewayConfig
  /** A user's SCIM id is the login. */
  readonly #loginIsId: boolean
  /** The attribute of a user's SCIM id, if that is neither the target's own id nor the login. */
  readonly #idAttribute: string | undefined
  readonly names: Lookups['names']
  readonly groupIdIsName: boolean
  readonly renamesUsers: boolean
  readonly ids: ResourceIds
  /** The attributes of the display names of members. */
  readonly #display: { readonly users: string; readonly groups: string }

  constructor(target: LookupTarget, config: GatewayConfig) {
    this.#target = target
    this.#config = config
    this.groupIdIsName = !target.groupHasOwnId
    this.ids = new ResourceIds(target.idsAreUnique === true)
    this.#display = { users: displayNameAttribute(config), groups: config.groups.displayAttribute ?? '' }
    const { loginAttribute, lookupAttribute, idAttribute } = config.users
    const idName = idAttribute?.toLowerCase()
    this.#loginIsId =
      target.userIdIsLogin || idName === loginAttribute.toLowerCase() || idName === lookupAttribute.toLowerCase()
    this.#idAttribute = this.#loginIsId || idName === 'id' ? undefined : idAttribute
    this.renamesUsers = target.renamesUsers === true && !this.#loginIsId
    const login = ['userID', lookupAttribute]
    const { displayAttribute } = config.groups
    this.names = {
      login,
      userId: this.#loginIsId ? login : [this.#idAttribute ?? 'id'],
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

  async userById(id: string): Promise<FoundUser | undefined> {
    for (const stored of this.ids.storedUser(id)) {
      const found = await this.#userByStoredId(stored)
      if (found !== undefined) return found
    }
    return undefined
  }

  async #userByStoredId(id: string): Promise<FoundUser | undefined> {
    if (this.#idAttribute !== undefined) return this.#userWith(this.#idAttribute, id)
    const user = await (this.#loginIsId && !this.#target.userIdIsLogin
      ? this.#target.lookupUserByLogin(id)
      : this.#target.lookupUserById(id))
    return user && this.#found(user)
  }

  /** If two users have the value, neither is found: it is better to fail than to change the wrong one. */
  async #userWith(attribute: string, value: string): Promise<FoundUser | undefined> {
    const filter = { kind: 'equal', attribute, value, caseExact: true } as const
    const { items } = await this.#target.searchUsers({ filter, offset: 0, limit: 2 })
    const [found] = items
    return found === undefined || items.length > 1 ? undefined : this.#found(found)
  }

  async userByLogin(login: string): Promise<FoundUser | undefined> {
    const user = await this.#target.lookupUserByLogin(login)
    return user && this.#found(user)
  }

  async searchUsers(query: Query) {
    const page = await this.#target.searchUsers(query)
    return { ...page, items: page.items.map((user) => this.#found(user)) }
  }

  async groupById(id: string, members: boolean): Promise<FoundGroup | undefined> {
    for (const stored of this.ids.storedGroup(id)) {
      const group = await this.#target.lookupGroupById(
        stored,
        members ? { members, display: this.#display } : { members },
      )
      if (group !== undefined) return this.#foundGroup(group)
    }
    return undefined
  }

  async groupByName(name: string): Promise<FoundGroup | undefined> {
    const group = await this.#target.lookupGroupByName(name, { members: false })
    return group && this.#foundGroup(group)
  }

  async searchGroups(query: Query) {
    const page = await this.#target.searchGroups(query)
    return { ...page, items: page.items.map((group) => this.#foundGroup(group)) }
  }

  async members({ group }: FoundGroup, names: boolean): Promise<readonly Member[]> {
    const groups = (group.memberGroups ?? []).map(
      ({ id, name, display }): Member => ({
        id: this.ids.ofGroup(this.groupIdIsName ? name : id),
        type: 'Group',
        display: display ?? name,
      }),
    )
    return [...(await this.#memberUsers(group, names)), ...groups]
  }

  async #memberUsers(group: Group, names: boolean): Promise<readonly Member[]> {
    const { groupMembersAreIds } = this.#target
    const { members, memberIds, memberDisplays } = group
    const isOwnId = this.#idAttribute === undefined
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
      groupMembersAreIds ? this.#target.lookupUserById(one) : this.#target.lookupUserByLogin(one),
    )
    return found.flatMap((user, i) => {
      const given = members[i]
      if (user === undefined)
        return idsAreKnown && given !== undefined ? [member(this.ids.ofUser(given), undefined)] : []
      return [member(this.#found(user).id, user.attributes.first(this.#display.users) ?? user.userID)]
    })
  }

  async containing(ids: readonly string[]): Promise<ReadonlyMap<string, readonly ContainingGroup[]>> {
    const stored = ids.map((id) => this.ids.storedGroup(id)[0] ?? id)
    const found = ids.length === 0 ? undefined : await this.#target.containingGroups?.(stored)
    const shown = new Map<string, readonly ContainingGroup[]>()
    for (const [id, groups] of found ?? []) {
      shown.set(
        this.ids.ofGroup(id),
        groups.map((group) => ({ ...group, id: this.#groupId(group) })),
      )
    }
    return shown
  }

  async withIndirectGroups(users: readonly FoundUser[]): Promise<readonly FoundUser[]> {
    if (this.#target.containingGroups === undefined || this.#config.users.mapping.isEmpty) return users
    const groupsOf = ({ user }: FoundUser): readonly string[] =>
      user.groupsAreNested === false ? [] : ((this.groupIdIsName ? user.groups : user.groupIds) ?? [])
    const ids = new Set(users.flatMap(groupsOf).map((id) => this.ids.ofGroup(id)))
    if (ids.size === 0) return users
    const containing = await this.containing([...ids])
    if (containing.size === 0) return users
    return users.map((found) => {
      const direct = new Set(groupsOf(found).map((id) => this.ids.ofGroup(id)))
      const indirect = new Map<string, NamedGroup>()
      for (const id of direct) {
        for (const group of containing.get(id) ?? []) if (!direct.has(group.id)) indirect.set(group.id, group)
      }
      return indirect.size === 0 ? found : { ...found, indirectGroups: [...indirect.values()] }
    })
  }

  async isMember({ group }: FoundGroup, { user }: FoundUser): Promise<boolean> {
    const name = group.name.toLowerCase()
    return user.groups.some((held) => held.toLowerCase() === name)
  }

  async groupsOf({ user }: FoundUser): Promise<readonly FoundGroup[]> {
    const groups = await inParallel(user.groups, lookupWidth, (name) =>
      this.#target.lookupGroupByName(name, { members: false }),
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
    const own = this.#idAttribute === undefined ? user.id : user.attributes.first(this.#idAttribute)
    return { id: this.ids.ofUser(own ?? user.userID), user }
  }

  #foundGroup(group: Group): FoundGroup {
    return { id: this.#groupId(group), group }
  }

  #groupId({ id, name }: NamedGroup): string {
    return this.ids.ofGroup(this.groupIdIsName ? name : id)
  }
}

/** The most members of a group that are looked up only for their names. */
const maxNamed = 100

const member = (id: string, display: string | undefined): Member => ({
  id,
  type: 'User',
  ...(display === undefined ? {} : { display }),
})
