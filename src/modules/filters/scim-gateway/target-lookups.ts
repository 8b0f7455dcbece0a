import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { hasLookups, type LookupTarget, type Target } from '#sdk/target.ts'
import { noVersion, type ReadVersion } from '#sdk/workflow.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { type FoundGroup, type FoundUser, type Lookups, lookupWidth, type Member, type Query } from './lookups.ts'

/** Throws INTERNAL when the target cannot be asked. */
export function targetLookups(target: Target, config: GatewayConfig): Lookups {
  if (!hasLookups(target)) throw new GatewayError('INTERNAL', 'the lookupTarget has no look-ups')
  return new TargetLookups(target, config)
}

class TargetLookups implements Lookups {
  readonly #target: LookupTarget
  readonly #config: GatewayConfig
  /** A user's SCIM id is the login. */
  readonly #loginIsId: boolean
  /** The attribute that holds a user's SCIM id, where that is neither the target's own id nor the login. */
  readonly #idAttribute: string | undefined
  readonly names: Lookups['names']
  readonly groupIdIsName: boolean
  readonly renamesUsers: boolean

  constructor(target: LookupTarget, config: GatewayConfig) {
    this.#target = target
    this.#config = config
    this.groupIdIsName = !target.groupHasOwnId
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

  /** Asked each time: a target may come to know it when its system answers. */
  get keepsVersions(): boolean {
    return this.#target.keepsVersions === true
  }

  async userById(id: string): Promise<FoundUser | undefined> {
    if (this.#idAttribute !== undefined) return this.#userWith(this.#idAttribute, id)
    const user = await (this.#loginIsId && !this.#target.userIdIsLogin
      ? this.#target.lookupUserByLogin(id)
      : this.#target.lookupUserById(id))
    return user && this.#found(user)
  }

  /** A value that two users have names neither: acting on the wrong one would be worse. */
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
    const group = await this.#target.lookupGroupById(id, { members })
    return group && this.#foundGroup(group)
  }

  async groupByName(name: string): Promise<FoundGroup | undefined> {
    const group = await this.#target.lookupGroupByName(name, { members: false })
    return group && this.#foundGroup(group)
  }

  async searchGroups(query: Query) {
    const page = await this.#target.searchGroups(query)
    return { ...page, items: page.items.map((group) => this.#foundGroup(group)) }
  }

  async members({ group }: FoundGroup): Promise<readonly Member[]> {
    const { groupMembersAreIds } = this.#target
    const isOwnId = this.#idAttribute === undefined
    if (isOwnId && groupMembersAreIds !== this.#loginIsId) return group.members.map((id) => ({ id }))
    const { memberIds } = group
    if (isOwnId && !this.#loginIsId && memberIds !== undefined) {
      return group.members.map((login, i) => ({ id: memberIds[i] ?? login }))
    }
    const found = await inParallel(group.members, lookupWidth, (member) =>
      groupMembersAreIds ? this.#target.lookupUserById(member) : this.#target.lookupUserByLogin(member),
    )
    return found.flatMap((user) => (user === undefined ? [] : [{ id: this.#found(user).id }]))
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
    if (this.#loginIsId) return { id: user.userID, user }
    const own = this.#idAttribute === undefined ? user.id : user.attributes.first(this.#idAttribute)
    return { id: own ?? user.userID, user }
  }

  #foundGroup(group: Group): FoundGroup {
    return { id: this.#target.groupHasOwnId ? group.id : group.name, group }
  }
}
