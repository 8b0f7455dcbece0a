import { groupCollection, userCollection } from '#adapters/targets/shared/collections.ts'
import { hasCode } from '#adapters/targets/shared/user-reconciler.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import { pageInMemory } from '#identity/paging.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { ClusterObject, ClusterResource } from '#protocols/kubernetes/cluster.ts'
import type { ClusterObjects } from '#sdk/target/kubernetes-cluster.ts'
import type { LookupTarget, StorableAttributes, TargetChange, TargetRequest } from '#sdk/target/target.ts'

/** The most bindings of each kind that a search reads. */
const maxBindings = 20_000
/** Attempts of a change while other writers change the same binding. */
const maxAttempts = 10

/** Bindings contain logins only. */
const storable: StorableAttributes = { users: new Set(), groups: new Set() }

/**
 * RoleBindings and ClusterRoleBindings as groups. A user exists while a binding names it, and has no attributes. The
 * target does not create bindings, since they grant rights. Users have no entries to compare or lock besides the
 * bindings, so this target does not use the user reconciler.
 */
export function roleBindingsTarget(objects: () => ClusterObjects, kind: SubjectKind): LookupTarget {
  const bindings = new Bindings(objects, kind)
  const findUser = (userID: string): Promise<User | undefined> => bindings.userNamed(userID)
  const findGroup = (name: string): Promise<Group | undefined> => bindings.group(name)
  return {
    groupMembersAreIds: false,
    userIdIsLogin: true,
    groupHasOwnId: false,
    storable: async () => storable,
    findUser,
    lookupUserByLogin: findUser,
    lookupUserById: findUser,
    lookupGroupByName: findGroup,
    lookupGroupById: findGroup,

    async createUser(user, _, request, options) {
      if (options?.mustBeNew === true && (await findUser(user.userID)) !== undefined) {
        throw new GatewayError('CONFLICT', `a binding already names "${user.userID}"`, { keyword: 'uniqueness' })
      }
      await bindings.change(user.userID, ownGroups(user), [], request)
    },

    async syncUser(user, { addOnly, keepGroups }, request) {
      if (keepGroups) return
      const wanted = ownGroups(user)
      const present = addOnly ? [] : ((await findUser(user.userID))?.groups ?? [])
      const left = present.filter((group) => !wanted.includes(group))
      await bindings.change(user.userID, wanted, left, request)
    },

    async deleteUser({ userID }, request) {
      await bindings.change(userID, [], (await findUser(userID))?.groups ?? [], request)
    },

    searchUsers: async (query) => pageInMemory(await bindings.users(), query, userCollection),
    searchGroups: async (query) => pageInMemory(await bindings.groups(), query, groupCollection),
  }
}

/** The bindings of a cluster, and the logins that they name. */
class Bindings {
  readonly #objects: () => ClusterObjects
  readonly #kind: SubjectKind
  readonly #queue = new KeyedQueue()

  constructor(objects: () => ClusterObjects, kind: SubjectKind) {
    this.#objects = objects
    this.#kind = kind
  }

  async group(name: string): Promise<Group | undefined> {
    const place = bindingPlace(name)
    const binding = place && (await this.#objects().get(place.resource, place.name))
    return binding && this.#toGroup(binding)
  }

  async groups(): Promise<Group[]> {
    return (await this.#all()).map((binding) => this.#toGroup(binding))
  }

  async userNamed(login: string): Promise<User | undefined> {
    const bindings = (await this.#all()).filter((binding) => this.#members(binding).includes(login))
    return bindings.length === 0 ? undefined : userOf(login, bindings.map(groupOf))
  }

  async users(): Promise<User[]> {
    const groupsOf = new Map<string, string[]>()
    for (const binding of await this.#all()) {
      for (const login of this.#members(binding)) {
        const groups = groupsOf.get(login)
        if (groups === undefined) groupsOf.set(login, [groupOf(binding)])
        else groups.push(groupOf(binding))
      }
    }
    return Array.from(groupsOf, ([login, groups]) => userOf(login, groups))
  }

  /**
   * Changes one binding after the other: the API server can't change several at once. After a failure, the next attempt
   * finishes the rest. All groups are checked before the first change.
   */
  async change(
    login: string,
    join: readonly string[],
    leave: readonly string[],
    request: TargetRequest,
  ): Promise<void> {
    const subject = this.#kind.write(login)
    for (const group of join) {
      if ((await this.group(group)) === undefined) throw noBinding(group)
    }
    for (const group of join) await this.#changeOne(group, login, subject, request)
    for (const group of leave) await this.#changeOne(group, login, undefined, request)
  }

  /** Adds the subject, or removes the login if there is none. A missing binding has nothing to remove. */
  async #changeOne(group: string, login: string, subject: object | undefined, request: TargetRequest): Promise<void> {
    const place = bindingPlace(group)
    if (place === undefined) return
    await this.#queue.run(group, async () => {
      for (let attempt = 1; ; attempt++) {
        const binding = await this.#objects().get(place.resource, place.name)
        if (binding === undefined) {
          if (subject === undefined) return
          throw noBinding(group)
        }
        if (this.#members(binding).includes(login) === (subject !== undefined)) return
        const others = subjectsOf(binding).filter((one) => this.#kind.read(one) !== login)
        const subjects = subject === undefined ? others : [...others, subject]
        const action = subject === undefined ? 'delete' : 'add'
        const change: TargetChange = { subject: 'group', action, attribute: 'groups', value: group }
        await request.planChanges?.([change])
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

  async #all(): Promise<ClusterObject[]> {
    const lists = [clusterRoleBindings, roleBindings].map((resource) => this.#objects().list(resource, maxBindings))
    return (await Promise.all(lists)).flat()
  }

  #members(binding: ClusterObject): string[] {
    return [...new Set(subjectsOf(binding).flatMap((subject) => this.#kind.read(subject) ?? []))]
  }

  #toGroup(binding: ClusterObject): Group {
    const name = groupOf(binding)
    return { id: name, name, members: this.#members(binding), version: binding.metadata.resourceVersion }
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
