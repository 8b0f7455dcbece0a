import { timeAttributes } from '#identity/entry-times.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type {
  ContainingGroup,
  CreateOptions,
  GroupChange,
  GroupReadOptions,
  GroupTarget,
  LookupTarget,
  MemberGroupChange,
  PasswordTarget,
  SearchPage,
  SearchQuery,
  ServedTimes,
  StorableAttributes,
  SyncOptions,
  TargetRequest,
} from '#sdk/target.ts'
import { GroupAccounts } from './group-accounts.ts'
import { GroupLookups, withoutMembers } from './group-lookups.ts'
import { GroupNesting } from './group-nesting.ts'
import { Memberships } from './memberships.ts'
import { requiredPath } from './resource-address.ts'
import { patchSchema, send } from './resource-writer.ts'
import { modelOf, type ScimService } from './service-model.ts'
import { UserAccounts } from './user-accounts.ts'
import { UserLookups } from './user-lookups.ts'

/** Another SCIM 2.0 server: logins are its userNames, ids are its ids, and groups go by their displayNames. */
export class ScimTarget implements LookupTarget, GroupTarget {
  readonly groupMembersAreIds = true
  readonly userIdIsLogin = false
  readonly groupHasOwnId = true
  /** As RFC 7643 3.1 demands of every service. */
  readonly idsAreUnique = true
  readonly renamesUsers = true
  protected readonly service: ScimService
  protected readonly users: UserLookups
  readonly #groups: GroupLookups
  readonly #accounts: UserAccounts
  readonly #groupAccounts: GroupAccounts
  readonly #nesting: GroupNesting
  readonly #close: () => void

  constructor(service: ScimService, clock: Clock, close: () => void) {
    this.service = service
    this.#groups = new GroupLookups(service)
    this.users = new UserLookups(service, this.#groups)
    const memberships = new Memberships(service, this.#groups)
    this.#accounts = new UserAccounts(service, this.users, memberships, clock)
    this.#nesting = new GroupNesting(service, this.#groups, memberships)
    this.#groupAccounts = new GroupAccounts(service, this.#groups)
    this.#close = close
  }

  /** As the server says; false until it has. */
  get keepsVersions(): boolean {
    return this.service.discovery.known?.etag === true
  }

  /** Those of servers that filter, which are asked; of others, as many as can be read are looked at. */
  get servedTimes(): ServedTimes {
    const served = this.service.discovery.known?.filter === true ? timeAttributes : []
    return { users: served, groups: served }
  }

  findUser(userID: string): Promise<User | undefined> {
    return this.lookupUserByLogin(userID)
  }

  createUser(
    user: User,
    attributes: readonly string[],
    request: TargetRequest,
    options?: CreateOptions,
  ): Promise<void> {
    return this.#accounts.create(user, attributes, request, options?.mustBeNew)
  }

  syncUser(user: User, options: SyncOptions, request: TargetRequest): Promise<void> {
    return this.#accounts.sync(user, options, request)
  }

  deleteUser(user: User, request: TargetRequest, options?: { readonly expectedVersion?: string }): Promise<void> {
    return this.#accounts.delete(user, request, options?.expectedVersion)
  }

  async lookupUserByLogin(login: string): Promise<User | undefined> {
    return (await this.users.byLogin(login))?.entry
  }

  async lookupUserById(id: string): Promise<User | undefined> {
    return (await this.users.byId(id))?.entry
  }

  async searchUsers(query: SearchQuery): Promise<SearchPage<User>> {
    const page = await this.users.search.page(query, await modelOf(this.service))
    const { attributes } = query
    if (attributes === undefined) return page
    return { ...page, items: page.items.map((user) => ({ ...user, attributes: user.attributes.pick(attributes) })) }
  }

  async lookupGroupByName(name: string, options: GroupReadOptions = { members: true }): Promise<Group | undefined> {
    return asked((await this.#groups.byName(name, options.members))?.entry, options)
  }

  async lookupGroupById(id: string, options: GroupReadOptions = { members: true }): Promise<Group | undefined> {
    return asked((await this.#groups.byId(id, options.members))?.entry, options)
  }

  async searchGroups(query: SearchQuery): Promise<SearchPage<Group>> {
    const page = await this.#groups.search.page(query, await modelOf(this.service))
    return { ...page, items: page.items.map(withoutMembers) }
  }

  containingGroups(ids: readonly string[]): Promise<ReadonlyMap<string, readonly ContainingGroup[]>> {
    return this.#nesting.containing(ids)
  }

  findGroup(name: string): Promise<Group | undefined> {
    return this.lookupGroupByName(name, { members: false })
  }

  createGroup(
    name: string,
    attributes: Readonly<Record<string, readonly string[]>>,
    request: TargetRequest,
  ): Promise<void> {
    return this.#groupAccounts.create(name, attributes, request)
  }

  updateGroup(name: string, change: GroupChange, request: TargetRequest): Promise<void> {
    return this.#groupAccounts.update(name, change, request)
  }

  deleteGroup(name: string, request: TargetRequest, options?: { readonly expectedVersion?: string }): Promise<void> {
    return this.#groupAccounts.delete(name, request, options?.expectedVersion)
  }

  async storable(): Promise<StorableAttributes> {
    return (await modelOf(this.service)).storable
  }

  changeMemberGroups(name: string, change: MemberGroupChange, request: TargetRequest): Promise<void> {
    return this.#nesting.change(name, change, request)
  }

  close(): void {
    this.#close()
  }
}

/** Members are shown as the server shows them, whichever attribute is asked for: it tells no other. */
function asked(group: Group | undefined, { members, display }: GroupReadOptions): Group | undefined {
  if (group === undefined || !members) return group && withoutMembers(group)
  const { memberDisplays, ...rest } = group
  const isTold = display !== undefined && memberDisplays?.some((name) => name !== undefined) === true
  return isTold && memberDisplays !== undefined ? { ...rest, memberDisplays } : rest
}

/** A server that takes passwords. */
export class ScimPasswordTarget extends ScimTarget implements PasswordTarget {
  async setUserPassword(user: User, password: string, request: TargetRequest): Promise<void> {
    const stored = await this.users.byLogin(user.userID)
    const { name } = this.service
    if (stored === undefined) throw new GatewayError('NOT_FOUND', `target "${name}" has no user "${user.userID}"`)
    const { features } = await modelOf(this.service)
    if (!features.patch) throw new GatewayError('NOT_SUPPORTED', `target "${name}" has no PATCH to set a password by`)
    const Operations = [{ op: 'replace', path: 'password', value: password }]
    const path = requiredPath(this.service, '/Users', stored.entry.id)
    const body = { schemas: [patchSchema], Operations }
    await send(this.service, { method: 'PATCH', path, body, secret: true }, request)
    request.audit({ subject: 'attribute', action: 'replace', attribute: 'password' })
  }
}
