import { createHash } from 'node:crypto'
import type { Filter } from '#identity/filter/ast.ts'
import type { Group } from '#identity/group.ts'
import { pageInMemory } from '#identity/page-in-memory.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#sdk/keyed-queue.ts'
import type { ClusterObject, ClusterObjects, ClusterResource } from '#sdk/kubernetes-cluster.ts'
import { requireVersion } from '#sdk/require-version.ts'
import type {
  CreateOptions,
  LookupTarget,
  SearchPage,
  SearchQuery,
  StorableAttributes,
  SyncOptions,
  TargetChange,
  TargetRequest,
} from '#sdk/target.ts'
import { changesOfDelete, changesOfSync } from '#sdk/target-changes.ts'
import { groupCollection, userCollection } from '#sdk/target-collections.ts'
import { foldLogin, objectName } from './object-name.ts'
import { syncedUser } from './synced-user.ts'
import { ownAttributes, readUser, userApi, writeUser } from './user-object.ts'

/** How many users a search reads at most, and how often a change is tried again that someone else's came before. */
const mostUsers = 20_000
const mostAttempts = 10

const storable: StorableAttributes = { users: 'any', groups: new Set() }

/**
 * Users kept as User objects in one namespace. The groups are names that users hold: one that nobody holds is not there.
 * `objects` is asked for at each call, since the cluster is another target.
 */
export class KubernetesUsersTarget implements LookupTarget {
  readonly groupMembersAreIds = false
  readonly userIdIsLogin = true
  readonly groupHasOwnId = false
  readonly keepsVersions = true
  readonly #objects: () => ClusterObjects
  readonly #resource: ClusterResource & { readonly namespace: string }
  readonly #queue = new KeyedQueue()

  constructor(objects: () => ClusterObjects, namespace: string) {
    this.#objects = objects
    this.#resource = { ...userApi, namespace }
  }

  findUser(userID: string): Promise<User | undefined> {
    return this.lookupUserByLogin(userID)
  }

  async createUser(
    user: User,
    attributes: readonly string[],
    request: TargetRequest,
    { mustBeNew = false }: CreateOptions = {},
  ): Promise<void> {
    const touched = ownAttributes(user, attributes)
    const wanted = { ...user, attributes: user.attributes.pick(touched), groups: [...new Set(user.groups)] }
    const options = { addOnly: false, attributes: touched }
    await this.#inTurn(user.userID, async () => {
      const found = await this.#stored(user.userID)
      if (found !== undefined) {
        const stored = readUser(found)
        const isSame = stored.userID === user.userID && changesOfSync(stored, wanted, options).length === 0
        if (isSame && !mustBeNew) return
        throw new GatewayError('CONFLICT', `there is a user "${user.userID}" already`, { keyword: 'uniqueness' })
      }
      const object = writeUser(wanted, this.#resource.namespace)
      await this.#told(request, changesOfSync(undefined, wanted, options), () =>
        this.#objects().create(this.#resource, object),
      )
    })
  }

  async syncUser(user: User, options: SyncOptions, request: TargetRequest): Promise<void> {
    const attributes = ownAttributes(user, options.attributes)
    if (options.newUserID !== undefined && options.newUserID !== user.userID) {
      throw new GatewayError('NOT_SUPPORTED', 'the login of a User object cannot be changed')
    }
    await this.#inTurn(
      user.userID,
      async () => {
        const found = await this.#stored(user.userID)
        const before = found === undefined ? undefined : readUser(found)
        requireVersion(before, options.expectedVersion)
        if (found === undefined || before === undefined) throw new GatewayError('NOT_FOUND', `no user "${user.userID}"`)
        const after = syncedUser(before, user, { ...options, attributes })
        const changes = changesOfSync(before, after, { addOnly: false, attributes })
        if (changes.length === 0) return
        const object = writeUser(after, this.#resource.namespace, found)
        await this.#told(request, changes, () => this.#objects().replace(this.#resource, found.metadata.name, object))
      },
      options.expectedVersion,
    )
  }

  async deleteUser(user: User, request: TargetRequest, options?: { readonly expectedVersion?: string }): Promise<void> {
    const expectedVersion = options?.expectedVersion
    await this.#inTurn(
      user.userID,
      async () => {
        const found = await this.#stored(user.userID)
        if (found === undefined) return
        const before = readUser(found)
        requireVersion(before, expectedVersion)
        const { name, uid, resourceVersion } = found.metadata
        const still = { uid, ...(expectedVersion === undefined ? {} : { resourceVersion }) }
        await this.#told(request, changesOfDelete(before), () => this.#objects().remove(this.#resource, name, still))
      },
      expectedVersion,
    )
  }

  /** Groups are what users say that they are in. */
  async storable(): Promise<StorableAttributes> {
    return storable
  }

  async lookupUserByLogin(login: string): Promise<User | undefined> {
    const found = await this.#stored(login)
    return found === undefined ? undefined : readUser(found)
  }

  lookupUserById(id: string): Promise<User | undefined> {
    return this.lookupUserByLogin(id)
  }

  async searchUsers(query: SearchQuery): Promise<SearchPage<User>> {
    const login = loginIn(query.filter)
    const one = login === undefined ? undefined : await this.lookupUserByLogin(login)
    const users = login === undefined ? await this.#all() : one === undefined ? [] : [one]
    const page = pageInMemory(users, query, userCollection)
    const { attributes } = query
    if (attributes === undefined) return page
    return { ...page, items: page.items.map((user) => ({ ...user, attributes: user.attributes.pick(attributes) })) }
  }

  async lookupGroupByName(name: string): Promise<Group | undefined> {
    return groupsOf(await this.#all()).find((group) => group.name === name)
  }

  lookupGroupById(id: string): Promise<Group | undefined> {
    return this.lookupGroupByName(id)
  }

  async searchGroups(query: SearchQuery): Promise<SearchPage<Group>> {
    return pageInMemory(groupsOf(await this.#all()), query, groupCollection)
  }

  async #all(): Promise<User[]> {
    return (await this.#objects().list(this.#resource, mostUsers)).map(readUser)
  }

  /** An object of that name which says that it is of someone else is not this user's. */
  async #stored(login: string): Promise<ClusterObject | undefined> {
    if (!login.isWellFormed()) return undefined
    const found = await this.#objects().get(this.#resource, objectName(login))
    return found !== undefined && foldLogin(readUser(found).userID) === foldLogin(login) ? found : undefined
  }

  async #told(request: TargetRequest, changes: readonly TargetChange[], write: () => Promise<unknown>): Promise<void> {
    await request.intend?.(changes)
    if ((await write()) === false) return
    for (const change of changes) request.audit(change)
  }

  /**
   * Changes to one user follow one another. One that another writer came before is decided anew, unless a version was
   * expected, which that other has replaced.
   */
  #inTurn(login: string, change: () => Promise<void>, expectedVersion?: string): Promise<void> {
    return this.#queue.run(objectName(login), async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await change()
        } catch (error) {
          const isStale = error instanceof GatewayError && error.code === 'VERSION_MISMATCH'
          if (!isStale || expectedVersion !== undefined) throw error
          if (attempt < mostAttempts) continue
          throw new GatewayError('TARGET_UNREACHABLE', `"${login}" is changed by others all the time`, {
            cause: error,
            retryAfter: 1,
          })
        }
      }
    })
  }
}

/**
 * The login that alone can match, so that nobody else needs to be read. Filters fold the letter case of all scripts and
 * names of objects that of ASCII, so it is known in ASCII only.
 */
function loginIn(filter: Filter | undefined): string | undefined {
  if (filter?.kind === 'and') return filter.filters.map(loginIn).find((login) => login !== undefined)
  if (filter?.kind !== 'equal' || !/^[\x20-\x7e]+$/.test(filter.value)) return undefined
  return ['userid', 'sub'].includes(filter.attribute.toLowerCase()) ? filter.value : undefined
}

function groupsOf(users: readonly User[]): Group[] {
  const members = new Map<string, string[]>()
  for (const user of users) {
    for (const name of user.groups) members.set(name, [...(members.get(name) ?? []), user.userID])
  }
  return Array.from(members, ([name, logins]) => {
    const version = createHash('sha256')
      .update(JSON.stringify([name, logins]))
      .digest('base64url')
    return { id: name, name, members: logins, version }
  })
}
