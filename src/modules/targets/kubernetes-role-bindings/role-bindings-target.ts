import { Attributes } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import { pageInMemory } from '#identity/paging.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { groupCollection, userCollection } from '#modules/shared/targets/collections.ts'
import { hasCode } from '#modules/shared/targets/user-reconciler.ts'
import type { ClusterObject, ClusterObjects, ClusterResource } from '#sdk/target/kubernetes-cluster.ts'
import type {
  CreateOptions,
  LookupTarget,
  SearchPage,
  SearchQuery,
  StorableAttributes,
  SyncOptions,
  TargetChange,
  TargetRequest,
} from '#sdk/target/target.ts'

/** The most bindings of each kind that a search reads. */
const maxBindings = 20_000
/** Attempts of a change while other writers change the same binding. */
const maxAttempts = 10

const storable: StorableAttributes = { users: new Set(), groups: new Set() }

/**
 * RoleBindings and ClusterRoleBindings as groups. A user exists while a binding names it, and has no attributes. The
 * target does not create bindings, since they grant rights. Users have no entries to compare or lock besides the
 * bindings, so this target does not use the user reconciler.
 */
export class RoleBindingsTarget implements LookupTarget {
  readonly groupMembersAreIds = false
  readonly userIdIsLogin = true
  readonly groupHasOwnId = false
  readonly #objects: () => ClusterObjects
  readonly #kind: SubjectKind
  readonly #queue = new KeyedQueue()

  constructor(objects: () => ClusterObjects, kind: SubjectKind) {
    this.#objects = objects
    this.#kind = kind
  }

  async findUser(userID: string): Promise<User | undefined> {
    const groups = (await this.#bindings()).filter((binding) => membersOf(binding, this.#kind).includes(userID))
    return groups.length === 0 ? undefined : userOf(userID, groups.map(groupOf))
  }

  async createUser(
    user: User,
    _attributes: readonly string[],
    request: TargetRequest,
    options?: CreateOptions,
  ): Promise<void> {
    if (options?.mustBeNew === true && (await this.findUser(user.userID)) !== undefined) {
      throw new GatewayError('CONFLICT', `a binding already names "${user.userID}"`, { keyword: 'uniqueness' })
    }
    await this.#change(user.userID, ownGroups(user), [], request)
  }

  async syncUser(user: User, { addOnly, keepGroups }: SyncOptions, request: TargetRequest): Promise<void> {
    if (keepGroups) return
    const wanted = ownGroups(user)
    const held = addOnly ? [] : ((await this.findUser(user.userID))?.groups ?? [])
    const left = held.filter((group) => !wanted.includes(group))
    await this.#change(user.userID, wanted, left, request)
  }

  async deleteUser({ userID }: User, request: TargetRequest): Promise<void> {
    const found = await this.findUser(userID)
    await this.#change(userID, [], found?.groups ?? [], request)
  }

  /** Bindings contain logins only. */
  async storable(): Promise<StorableAttributes> {
    return storable
  }

  lookupUserByLogin(login: string): Promise<User | undefined> {
    return this.findUser(login)
  }

  lookupUserById(id: string): Promise<User | undefined> {
    return this.findUser(id)
  }

  async searchUsers(query: SearchQuery): Promise<SearchPage<User>> {
    const groupsOf = new Map<string, string[]>()
    for (const binding of await this.#bindings()) {
      for (const login of membersOf(binding, this.#kind)) {
        const groups = groupsOf.get(login)
        if (groups === undefined) groupsOf.set(login, [groupOf(binding)])
        else groups.push(groupOf(binding))
      }
    }
    const users = Array.from(groupsOf, ([login, groups]) => userOf(login, groups))
    return pageInMemory(users, query, userCollection)
  }

  async lookupGroupByName(name: string): Promise<Group | undefined> {
    const place = bindingPlace(name)
    if (place === undefined) return undefined
    const binding = await this.#objects().get(place.resource, place.name)
    return binding === undefined ? undefined : this.#group(binding)
  }

  lookupGroupById(id: string): Promise<Group | undefined> {
    return this.lookupGroupByName(id)
  }

  async searchGroups(query: SearchQuery): Promise<SearchPage<Group>> {
    const groups = (await this.#bindings()).map((binding) => this.#group(binding))
    return pageInMemory(groups, query, groupCollection)
  }

  async #bindings(): Promise<ClusterObject[]> {
    const kinds = [clusterRoleBindings, roleBindings]
    return (await Promise.all(kinds.map((kind) => this.#objects().list(kind, maxBindings)))).flat()
  }

  #group(binding: ClusterObject): Group {
    const name = groupOf(binding)
    return { id: name, name, members: membersOf(binding, this.#kind), version: binding.metadata.resourceVersion }
  }

  /**
   * Changes one binding after the other: the API server can't change several at once. After a failure, the next attempt
   * finishes the rest. All groups are checked before the first change.
   */
  async #change(
    login: string,
    join: readonly string[],
    leave: readonly string[],
    request: TargetRequest,
  ): Promise<void> {
    const subject = this.#kind.write(login)
    for (const group of join) {
      if ((await this.lookupGroupByName(group)) === undefined) throw noBinding(group)
    }
    for (const group of join) await this.#inBinding(group, login, subject, request)
    for (const group of leave) await this.#inBinding(group, login, undefined, request)
  }

  /** Adds the subject, or removes the login if there is none. A missing binding has nothing to remove. */
  #inBinding(group: string, login: string, subject: object | undefined, request: TargetRequest): Promise<void> {
    const place = bindingPlace(group)
    if (place === undefined) return Promise.resolve()
    return this.#queue.run(group, async () => {
      for (let attempt = 1; ; attempt++) {
        const binding = await this.#objects().get(place.resource, place.name)
        if (binding === undefined) {
          if (subject === undefined) return
          throw noBinding(group)
        }
        const isMember = membersOf(binding, this.#kind).includes(login)
        if (isMember === (subject !== undefined)) return
        const others = subjectsOf(binding).filter((one) => this.#kind.read(one) !== login)
        const subjects = subject === undefined ? others : [...others, subject]
        const action = subject === undefined ? 'delete' : 'add'
        const change: TargetChange = { subject: 'group', action, attribute: 'groups', value: group }
        await request.intend?.([change])
        try {
          await this.#objects().replace(place.resource, place.name, { ...binding.content, subjects })
        } catch (error) {
          if (hasCode(error, 'VERSION_MISMATCH') && attempt < maxAttempts) continue
          throw error
        }
        request.audit(change)
        return
      }
    })
  }
}

/** The other groups belong to other targets. */
const ownGroups = (user: User): string[] => [
  ...new Set(user.groups.filter((group) => bindingPlace(group) !== undefined)),
]

const noBinding = (group: string): GatewayError =>
  new GatewayError('BAD_REQUEST', `there is no binding for the group "${group}"`)

const userOf = (userID: string, groups: readonly string[]): User => ({
  userID,
  id: userID,
  attributes: new Attributes(),
  groups,
})

interface BindingPlace {
  readonly resource: ClusterResource
  readonly name: string
}

const api = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const
export const clusterRoleBindings: ClusterResource = { ...api, plural: 'clusterrolebindings' }
/** Of all namespaces. */
export const roleBindings: ClusterResource = { ...api, plural: 'rolebindings' }

/**
 * The binding of the group `crb:<name>` or `rb:<namespace>:<name>`. Undefined for groups of other targets; BAD_REQUEST for
 * a group with such a prefix and no name. Names may contain colons.
 */
export function bindingPlace(group: string): BindingPlace | undefined {
  if (group.startsWith('crb:')) return { resource: clusterRoleBindings, name: named(group, group.slice('crb:'.length)) }
  if (!group.startsWith('rb:')) return undefined
  const rest = group.slice('rb:'.length)
  const end = rest.indexOf(':')
  const namespace = named(group, end < 0 ? '' : rest.slice(0, end))
  return { resource: { ...roleBindings, namespace }, name: named(group, rest.slice(end + 1)) }
}

const groupOf = ({ metadata }: ClusterObject): string =>
  metadata.namespace === undefined ? `crb:${metadata.name}` : `rb:${metadata.namespace}:${metadata.name}`

function named(group: string, part: string): string {
  if (part !== '') return part
  throw new GatewayError('BAD_REQUEST', `"${group}" is neither crb:<name> nor rb:<namespace>:<name>`)
}

type Json = Readonly<Record<string, unknown>>

/** How a binding's `subjects` represent the users of a target. */
interface SubjectKind {
  /** BAD_REQUEST for a login that cannot be a subject. */
  write(login: string): Json
  /** Undefined for subjects of another kind. */
  read(subject: Json): string | undefined
}

const rbac = 'rbac.authorization.k8s.io'

export const people: SubjectKind = {
  write(login) {
    if (login === '' || !login.isWellFormed()) {
      throw new GatewayError('BAD_REQUEST', `${JSON.stringify(login)} is not a valid user name`)
    }
    return { apiGroup: rbac, kind: 'User', name: login }
  },
  read: ({ kind, name }) => (kind === 'User' && typeof name === 'string' ? name : undefined),
}

/** Logins are `<name>:<namespace>`. */
export const serviceAccounts: SubjectKind = {
  write(login) {
    const [, name, namespace] = /^([^:]+):([^:]+)$/.exec(login) ?? []
    if (name === undefined || namespace === undefined) {
      throw new GatewayError('BAD_REQUEST', `"${login}" is not <service account>:<namespace>`)
    }
    return { kind: 'ServiceAccount', name, namespace }
  },
  read: ({ kind, name, namespace }) =>
    kind === 'ServiceAccount' && typeof name === 'string' && typeof namespace === 'string'
      ? `${name}:${namespace}`
      : undefined,
}

function subjectsOf({ content }: ClusterObject): Json[] {
  const { subjects } = content
  return Array.isArray(subjects) ? subjects.filter((one) => typeof one === 'object' && one !== null) : []
}

const membersOf = (binding: ClusterObject, kind: SubjectKind): string[] => [
  ...new Set(subjectsOf(binding).flatMap((subject) => kind.read(subject) ?? [])),
]
