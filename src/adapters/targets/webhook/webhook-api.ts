import { Attributes } from '#identity/attributes.ts'
import { readTime } from '#identity/entry-times.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { JsonPath } from '#kernel/text/json-path.ts'
import type { TargetRequest } from '#sdk/target/target.ts'
import type { ApiCaller, Call } from './api-caller.ts'
import type { RequestTemplate, SingleValues } from './templates.ts'
import type { EntryPaths, Operation, OperationName, WebhookConfig } from './webhook-config.ts'

/** Reads users and groups from answers of the API. Throws TARGET_FAILED, by name, for an invalid answer. */
class EntryReader {
  readonly #target: string

  constructor(target: string) {
    this.#target = target
  }

  /** The matches of the path; lists count as their elements. */
  items(document: JsonValue, path: JsonPath): JsonValue[] {
    let found: readonly JsonValue[]
    try {
      found = path(document)
    } catch (cause) {
      throw this.#malformed('nested too deep to be read', cause)
    }
    return found
      .flatMap((item) => (Array.isArray(item) ? (item as JsonValue[]) : [item]))
      .filter((item) => item !== null)
  }

  texts(document: JsonValue, path: JsonPath, what: string): string[] {
    return this.items(document, path).map((value) => {
      if (typeof value === 'object') throw this.#malformed(`"${what}" is not a text`)
      return String(value)
    })
  }

  user(document: JsonValue, paths: EntryPaths): User {
    const groups = paths.links === undefined ? [] : this.texts(document, paths.links, 'groups')
    const groupIds = paths.linkIds === undefined ? undefined : this.texts(document, paths.linkIds, 'groupIds')
    if (groupIds !== undefined && groupIds.length !== groups.length) {
      throw this.#malformed(`"groupIds" has ${groupIds.length} values for ${groups.length} groups`)
    }
    return {
      userID: this.#one(document, paths.name, 'userID'),
      attributes: this.#attributes(document, paths),
      groups,
      groupIds,
      ...this.#optional('id', document, paths.id),
      ...this.#optional('version', document, paths.version),
      ...this.#times(document, paths),
    }
  }

  group(document: JsonValue, paths: EntryPaths): Group {
    const name = this.#one(document, paths.name, 'name')
    const attributes = this.#attributes(document, paths)
    const description = attributes.first('description')
    return {
      id: name,
      name,
      members: paths.links === undefined ? [] : this.texts(document, paths.links, 'members'),
      attributes,
      description,
      ...this.#optional('id', document, paths.id),
      ...this.#optional('version', document, paths.version),
      ...this.#times(document, paths),
    }
  }

  /** An entry may lack them; values other than times are malformed. */
  #times(
    document: JsonValue,
    { created, modified }: EntryPaths,
  ): { readonly created?: Date | undefined; readonly modified?: Date | undefined } {
    const time = (path: JsonPath | undefined, what: string): Date | undefined => {
      const [text] = path === undefined ? [] : this.texts(document, path, what)
      if (text === undefined) return undefined
      const read = readTime(text)
      if (read === undefined) throw this.#malformed(`"${what}" is not a time such as 2026-01-31T08:00:00Z`)
      return read
    }
    const times = { created: time(created, 'created'), modified: time(modified, 'modified') }
    return {
      created: times.created,
      modified: times.modified,
    }
  }

  #attributes(document: JsonValue, { attributes }: EntryPaths): Attributes {
    return Attributes.from(Array.from(attributes, ([name, path]) => [name, this.texts(document, path, name)] as const))
  }

  #one(document: JsonValue, path: JsonPath, what: string): string {
    const [value, other] = this.texts(document, path, what)
    if (value === undefined || value === '' || other !== undefined) throw this.#malformed(`it has not one "${what}"`)
    return value
  }

  #optional<K extends string>(
    what: K,
    document: JsonValue,
    path: JsonPath | undefined,
  ): { readonly [P in K]?: string } {
    if (path === undefined) return {}
    return { [what]: this.#one(document, path, what) } as { readonly [P in K]: string }
  }

  #malformed(reason: string, cause?: unknown): GatewayError {
    return new GatewayError('TARGET_FAILED', `the answer of target "${this.#target}" cannot be used: ${reason}`, {
      cause,
    })
  }
}

/** The most pages that are read. */
const maxPages = 10_000

/** Narrows a list to the entries that have this value in an attribute. */
export interface Narrowing {
  readonly template: RequestTemplate
  readonly value: string
}

/** The users and groups of the API, by the configured requests and answers. */
export class WebhookApi {
  readonly config: WebhookConfig
  readonly #target: string
  readonly #caller: ApiCaller
  readonly #reader: EntryReader

  constructor(config: WebhookConfig, target: string, caller: ApiCaller) {
    this.config = config
    this.#target = target
    this.#caller = caller
    this.#reader = new EntryReader(target)
  }

  /** The user with this login, even if the answer contains others. */
  findUser(userID: string, request?: TargetRequest): Promise<User | undefined> {
    return this.#user('findUser', { userID }, (user) => user.userID, userID, request)
  }

  findUserById(id: string): Promise<User | undefined> {
    return this.#user('findUserById', { id }, (user) => user.id, id)
  }

  async findGroup(group: string, request?: TargetRequest): Promise<Group | undefined> {
    return matching(await this.#groups('findGroup', { group }, request), ({ name }) => name, group)
  }

  async findGroupById(groupId: string): Promise<Group | undefined> {
    return matching(await this.#groups('findGroupById', { groupId }), ({ id }) => id, groupId)
  }

  /** Without groups that need a request of their own. */
  async listUsers(narrowing?: Narrowing): Promise<User[]> {
    const items = await this.#list(this.#operation('searchUsers'), { value: narrowing?.value }, narrowing?.template)
    return items.map((item) => this.#reader.user(item, this.config.user))
  }

  async listGroups(narrowing?: Narrowing): Promise<Group[]> {
    const items = await this.#list(this.#operation('searchGroups'), { value: narrowing?.value }, narrowing?.template)
    return items.map((item) => this.#reader.group(item, this.config.group))
  }

  async withGroups(user: User, request?: TargetRequest): Promise<User> {
    const { userGroups } = this.config.operations
    if (userGroups === undefined) return user
    const items = await this.#list(userGroups, { userID: user.userID, id: user.id }, undefined, request)
    const { groupIds: _, ...rest } = user
    return { ...rest, groups: items.flatMap((item) => this.#reader.texts(item, itself, 'groups')) }
  }

  async withMembers(group: Group): Promise<Group> {
    const { groupMembers } = this.config.operations
    if (groupMembers === undefined) return group
    const items = await this.#list(groupMembers, { group: group.name, groupId: group.id })
    return { ...group, members: items.flatMap((item) => this.#reader.texts(item, itself, 'members')) }
  }

  /** False if the API answers "not found". */
  async write(name: OperationName, places: Places, call: Pick<Call, 'body' | 'request'>): Promise<boolean> {
    const operation = this.#operation(name)
    return (await this.#caller.call({ operation, values: valuesOf(places), ...call })) !== undefined
  }

  close(): void {
    this.#caller.close()
  }

  #operation(name: OperationName): Operation {
    const operation = this.config.operations[name]
    if (operation === undefined) throw new GatewayError('NOT_SUPPORTED', `the target has no request "${name}"`)
    return operation
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

  async #groups(name: OperationName, places: Places, request?: TargetRequest): Promise<Group[]> {
    const items = await this.#find(name, places, request)
    return items.map((item) => this.#reader.group(item, this.config.group))
  }

  async #find(name: OperationName, places: Places, request: TargetRequest | undefined): Promise<JsonValue[]> {
    const operation = this.#operation(name)
    const answer = await this.#caller.call({ operation, values: valuesOf(places), request })
    return answer === undefined ? [] : this.#reader.items(answer.json(), operation.items)
  }

  /**
   * Reads a list to its end; an empty one for "not found". `template` replaces that of the operation. Throws
   * BAD_REQUEST, `tooMany`, for a list that is too long, and TARGET_FAILED for one with fewer entries than every page says,
   * so that no one who is missing counts as absent.
   */
  async #list(
    operation: Operation,
    places: Places,
    template = operation.request,
    request?: TargetRequest,
  ): Promise<JsonValue[]> {
    const { pageSize, firstPage, maxEntries } = this.config.limits
    const paged = template.places.includes('offset') || template.places.includes('page')
    const byCursor = template.places.includes('cursor')
    const items: JsonValue[] = []
    const cursors = new Set<string>()
    let cursor: string | undefined
    let total: number | undefined
    for (let page = 0; page < maxPages; page++) {
      const position = {
        offset: String(items.length),
        limit: String(pageSize),
        page: String(page + firstPage),
        cursor,
      }
      const values = valuesOf({ ...places, ...position })
      const answer = (await this.#caller.call({ operation, template, values, request }))?.json()
      const found = answer === undefined ? [] : this.#reader.items(answer, operation.items)
      items.push(...found)
      if (items.length > maxEntries) throw this.#tooMany(operation)
      total = least(total, answer === undefined ? undefined : this.#total(answer, operation))
      cursor = byCursor && answer !== undefined ? this.#text(answer, operation, 'next') : undefined
      // Without a total, only an empty page is the end: the server may return less than a full page.
      const isPart = byCursor ? cursor !== undefined && cursor !== '' : paged && found.length > 0
      if (!isPart || (!byCursor && items.length >= (total ?? Number.POSITIVE_INFINITY))) {
        if (items.length >= (total ?? 0)) return items
        throw this.#odd(operation, `ends after ${items.length} of ${total} entries`)
      }
      if (cursor === undefined) continue
      if (cursors.has(cursor)) throw this.#odd(operation, 'gives the same page again')
      cursors.add(cursor)
    }
    throw this.#tooMany(operation)
  }

  #total(answer: JsonValue, operation: Operation): number | undefined {
    const total = this.#text(answer, operation, 'total')
    if (total === undefined) return undefined
    if (!/^\d{1,15}$/.test(total)) throw this.#odd(operation, 'has a total that is not a number')
    return Number(total)
  }

  #text(answer: JsonValue, operation: Operation, what: 'total' | 'next'): string | undefined {
    const path = operation[what]
    return path === undefined ? undefined : this.#reader.texts(answer, path, what)[0]
  }

  #odd({ name }: Operation, reason: string): GatewayError {
    return new GatewayError('TARGET_FAILED', `the list of ${name} of target "${this.#target}" ${reason}`)
  }

  #tooMany({ name }: Operation): GatewayError {
    return new GatewayError(
      'BAD_REQUEST',
      `${name} of target "${this.#target}" gives more than ${this.config.limits.maxEntries} entries`,
      {
        publicText: 'Too many entries would have to be read; narrow the filter.',
        keyword: 'tooMany',
      },
    )
  }
}

export type Places = Readonly<Record<string, string | undefined>>

const least = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)

const itself = (document: unknown) => [document as never]

const valuesOf =
  (places: Places): SingleValues =>
  (name) =>
    Object.hasOwn(places, name) ? places[name] : undefined

/** Drops other results: an API that finds too much, or ignores letter case, must not make one user pass for another. */
function matching<T>(items: readonly T[], key: (item: T) => string | undefined, wanted: string): T | undefined {
  const folded = wanted.toLowerCase()
  return items.find((item) => key(item) === wanted) ?? items.find((item) => key(item)?.toLowerCase() === folded)
}
