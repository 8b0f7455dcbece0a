import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { UserChange, UserDirectory } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { GroupTarget, LookupTarget, SearchPage, SearchQuery, SyncOptions, TargetRequest } from '#sdk/target.ts'

/** A UserDirectory as a target. The directory does the work, in one transaction a call, and tells what it changed. */
export class DatabaseTarget implements LookupTarget, GroupTarget {
  readonly groupMembersAreIds = false
  readonly userIdIsLogin = false
  readonly groupHasOwnId = true
  readonly #users: UserDirectory

  constructor(users: UserDirectory) {
    this.#users = users
  }

  findUser(userID: string): Promise<User | undefined> {
    return this.#users.findByLogin(userID)
  }

  async createUser(user: User, attributes: readonly string[], request: TargetRequest): Promise<void> {
    try {
      report(await this.#users.create({ ...user, attributes: user.attributes.pick(attributes) }), request)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      await this.syncUser(user, { addOnly: false, attributes, keepGroups: false }, request)
    }
  }

  async syncUser(user: User, options: SyncOptions, request: TargetRequest): Promise<void> {
    const { addOnly, attributes, keepGroups, expectedVersion } = options
    const changes = await this.#users.sync({
      userID: user.userID,
      attributes: new Map(attributes.map((name) => [name, user.attributes.values(name)])),
      groups: keepGroups ? undefined : user.groups,
      addOnly,
      ...(expectedVersion === undefined ? {} : { expectedVersion }),
    })
    report(changes, request)
  }

  async deleteUser(user: User, request: TargetRequest): Promise<void> {
    report(await this.#users.delete(user.userID), request)
  }

  lookupUserByLogin(login: string): Promise<User | undefined> {
    return this.#users.findByLogin(login)
  }

  lookupUserById(id: string): Promise<User | undefined> {
    return this.#users.findById(id)
  }

  searchUsers(query: SearchQuery): Promise<SearchPage<User>> {
    return this.#users.searchUsers(query)
  }

  lookupGroupByName(name: string, options?: { readonly members: boolean }): Promise<Group | undefined> {
    return this.#users.findGroupByName(name, options)
  }

  lookupGroupById(id: string, options?: { readonly members: boolean }): Promise<Group | undefined> {
    return this.#users.findGroupById(id, options)
  }

  searchGroups(query: SearchQuery): Promise<SearchPage<Group>> {
    return this.#users.searchGroups(query)
  }

  findGroup(name: string): Promise<Group | undefined> {
    return this.#users.findGroupByName(name, { members: false })
  }

  async createGroup(
    name: string,
    attributes: Readonly<Record<string, readonly string[]>>,
    request: TargetRequest,
  ): Promise<void> {
    await this.#users.createGroup(name, new Map(Object.entries(attributes)))
    request.audit({ subject: 'entry', action: 'add', attribute: 'name', value: name })
  }

  async deleteGroup(name: string, request: TargetRequest): Promise<void> {
    if (await this.#users.deleteGroup(name)) {
      request.audit({ subject: 'entry', action: 'delete', attribute: 'name', value: name })
    }
  }

  close(): Promise<void> {
    return this.#users.close()
  }
}

function report(changes: readonly UserChange[], request: TargetRequest): void {
  for (const change of changes) request.audit(change)
}
