import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { TargetRequest } from '#sdk/target.ts'
import type { ApiCaller, Call } from './api-caller.ts'
import type { EntryReader } from './entry-reader.ts'
import type { ListReader } from './list-reader.ts'
import type { OperationName } from './operations.ts'
import type { RequestTemplate, SingleValues } from './request-template.ts'
import type { WebhookConfig } from './webhook-config.ts'

/** How a list is narrowed: to those that have the value in some attribute, or not at all. */
export interface Narrowing {
  readonly template: RequestTemplate
  readonly value: string
}

/** The users and groups of the API, as its requests and answers are configured. */
export class WebhookApi {
  readonly config: WebhookConfig
  readonly #caller: ApiCaller
  readonly #reader: EntryReader
  readonly #lists: ListReader

  constructor(config: WebhookConfig, caller: ApiCaller, reader: EntryReader, lists: ListReader) {
    this.config = config
    this.#caller = caller
    this.#reader = reader
    this.#lists = lists
  }

  /** The user of this login: of all that the answer holds, nobody else. */
  findUser(userID: string, request?: TargetRequest): Promise<User | undefined> {
    return this.#user('findUser', { userID }, (user) => user.userID, userID, request)
  }

  findUserById(id: string): Promise<User | undefined> {
    return this.#user('findUserById', { id }, (user) => user.id, id)
  }

  findGroup(group: string, request?: TargetRequest): Promise<Group | undefined> {
    return this.#group('findGroup', { group }, ({ name }) => name, group, request)
  }

  findGroupById(groupId: string): Promise<Group | undefined> {
    return this.#group('findGroupById', { groupId }, ({ id }) => id, groupId)
  }

  /** Without the groups that only a request of its own tells. */
  async listUsers(narrowing?: Narrowing): Promise<User[]> {
    const items = await this.#list('searchUsers', narrowing)
    return items.map((item) => this.#reader.user(item, this.config.user))
  }

  async listGroups(narrowing?: Narrowing): Promise<Group[]> {
    const items = await this.#list('searchGroups', narrowing)
    return items.map((item) => this.#reader.group(item, this.config.group))
  }

  async withGroups(user: User, request?: TargetRequest): Promise<User> {
    const { userGroups: operation } = this.config.operations
    if (operation === undefined) return user
    const items = await this.#lists.readAll({
      operation,
      values: valuesOf({ userID: user.userID, id: user.id }),
      request,
    })
    return { ...user, groups: items.flatMap((item) => this.#reader.texts(item, itself, 'groups')) }
  }

  async withMembers(group: Group): Promise<Group> {
    const { groupMembers: operation } = this.config.operations
    if (operation === undefined) return group
    const values = valuesOf({ group: group.name, groupId: group.id })
    const items = await this.#lists.readAll({ operation, values })
    return { ...group, members: items.flatMap((item) => this.#reader.texts(item, itself, 'members')) }
  }

  /** False when the API says that there is none. */
  async write(name: OperationName, places: Places, call: Pick<Call, 'body' | 'request'>): Promise<boolean> {
    const operation = this.config.operations[name]
    if (operation === undefined) throw new GatewayError('NOT_SUPPORTED', `the target has no request "${name}"`)
    return (await this.#caller.call({ operation, values: valuesOf(places), ...call })) !== undefined
  }

  close(): void {
    this.#caller.close()
  }

  async #user(
    name: OperationName,
    places: Places,
    key: (user: User) => string | undefined,
    wanted: string,
    request?: TargetRequest,
  ): Promise<User | undefined> {
    const items = await this.#find(name, places, request)
    const users = items.map((item) => this.#reader.user(item, this.config.user))
    const found = matching(users, key, wanted)
    return found && this.withGroups(found, request)
  }

  async #group(
    name: OperationName,
    places: Places,
    key: (group: Group) => string,
    wanted: string,
    request?: TargetRequest,
  ): Promise<Group | undefined> {
    const items = await this.#find(name, places, request)
    return matching(
      items.map((item) => this.#reader.group(item, this.config.group)),
      key,
      wanted,
    )
  }

  async #find(name: OperationName, places: Places, request: TargetRequest | undefined) {
    const operation = this.config.operations[name]
    if (operation === undefined) throw new GatewayError('NOT_SUPPORTED', `the target has no request "${name}"`)
    const answer = await this.#caller.call({ operation, values: valuesOf(places), request })
    return answer === undefined ? [] : this.#reader.items(answer.json(), operation.items)
  }

  async #list(name: 'searchUsers' | 'searchGroups', narrowing: Narrowing | undefined) {
    const operation = this.config.operations[name]
    if (operation === undefined) throw new GatewayError('NOT_SUPPORTED', `the target has no request "${name}"`)
    if (narrowing === undefined) return this.#lists.readAll({ operation, values: valuesOf({}) })
    const { template, value } = narrowing
    return this.#lists.readAll({ operation, template, values: valuesOf({ value }) })
  }
}

export type Places = Readonly<Record<string, string | undefined>>

const itself = (document: unknown) => [document as never]

const valuesOf =
  (places: Places): SingleValues =>
  (name) =>
    Object.hasOwn(places, name) ? places[name] : undefined

/** An API that finds too much, or in another letter case, must not make one user pass for another. */
function matching<T>(items: readonly T[], key: (item: T) => string | undefined, wanted: string): T | undefined {
  const folded = wanted.toLowerCase()
  return items.find((item) => key(item) === wanted) ?? items.find((item) => key(item)?.toLowerCase() === folded)
}
