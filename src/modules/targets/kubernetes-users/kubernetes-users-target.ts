import { createHash } from 'node:crypto'
import type { Filter } from '#identity/filter/ast.ts'
import type { Group } from '#identity/group.ts'
import { pageInMemory } from '#identity/page-in-memory.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { groupCollection, userCollection, withAttributes } from '#modules/shared/targets/collections.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import {
  type Exclusively,
  hasCode,
  reconcileUsers,
  type StoredUser,
  type UserStore,
} from '#modules/shared/targets/user-reconciler.ts'
import type { ClusterObject, ClusterObjects, ClusterResource } from '#sdk/target/kubernetes-cluster.ts'
import type { LookupTarget, StorableAttributes, TargetChange, TargetRequest } from '#sdk/target/target.ts'
import { foldLogin, objectName, ownAttributes, readUser, userApi, writeUser } from './user-object.ts'

/** The most users that a search reads. */
const maxUsers = 20_000
/** Attempts of a change while other writers change the same object. */
const maxAttempts = 10

const storable: StorableAttributes = { users: 'any', groups: new Set() }

interface StoredObject extends StoredUser {
  readonly object: ClusterObject
}

/**
 * Users as User objects in one namespace. Groups are names in these objects: a group without members doesn't exist.
 * `objects` is called for each request, since the cluster is another target.
 */
export function kubernetesUsersTarget(objects: () => ClusterObjects, namespace: string): LookupTarget {
  const resource: ClusterResource = { ...userApi, namespace }

  /** An object of that name which belongs to another login is not this user's. */
  async function find(login: string): Promise<StoredObject | undefined> {
    if (!login.isWellFormed()) return undefined
    const object = await objects().get(resource, objectName(login))
    const user = object && readUser(object)
    return object && user && foldLogin(user.userID) === foldLogin(login) ? { object, user } : undefined
  }

  const lookupUser = async (login: string): Promise<User | undefined> => (await find(login))?.user
  const allUsers = async (): Promise<User[]> => (await objects().list(resource, maxUsers)).map(readUser)

  async function planned(
    changes: readonly TargetChange[],
    request: TargetRequest,
    write: () => Promise<unknown>,
  ): Promise<readonly TargetChange[]> {
    await request.intend?.(changes)
    return (await write()) === false ? [] : changes
  }

  const store: UserStore<StoredObject> = {
    read: find,
    accept: (user, attributes, newUserID = user.userID) => {
      const own = ownAttributes(user, attributes)
      if (newUserID !== user.userID) {
        throw new GatewayError('NOT_SUPPORTED', 'the login of a User object cannot be changed')
      }
      return {
        user: { ...user, attributes: user.attributes.pick(own), groups: [...new Set(user.groups)] },
        attributes: own,
      }
    },
    create: async (user, { changes, request }) => {
      const object = writeUser(user, namespace)
      return planned(changes, request, () => objects().create(resource, object))
    },
    write: async ({ object }, wanted, { changes, request }) => {
      const written = writeUser(wanted, namespace, object)
      return planned(changes, request, () => objects().replace(resource, object.metadata.name, written))
    },
    delete: ({ object }, { changes, expectedVersion, request }) => {
      const { name, uid, resourceVersion } = object.metadata
      const preconditions = { uid, ...(expectedVersion === undefined ? {} : { resourceVersion }) }
      return planned(changes, request, () => objects().remove(resource, name, preconditions))
    },
  }

  const lookupGroup = async (name: string): Promise<Group | undefined> =>
    groupsOf(await allUsers()).find((group) => group.name === name)

  return {
    ...reconcileUsers(retryingStale(store)),
    findUser: lookupUser,
    keepsVersions: true,
    storable: async () => storable,
    groupMembersAreIds: false,
    userIdIsLogin: true,
    groupHasOwnId: false,
    lookupUserByLogin: lookupUser,
    lookupUserById: lookupUser,
    searchUsers: async (query) => {
      const login = loginIn(query.filter)
      const one = login === undefined ? undefined : await lookupUser(login)
      const users = login === undefined ? await allUsers() : one === undefined ? [] : [one]
      return withAttributes(pageInMemory(users, query, userCollection), query)
    },
    lookupGroupByName: lookupGroup,
    lookupGroupById: lookupGroup,
    searchGroups: async (query) => pageInMemory(groupsOf(await allUsers()), query, groupCollection),
  }
}

/** A change that another writer preceded is decided again, unless it expects a version, which that writer replaced. */
function retryingStale<T>(store: T): Exclusively<T> {
  const queue = new KeyedQueue()
  return (login, work, expectedVersion) =>
    queue.run(objectName(login), async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await work(store)
        } catch (error) {
          if (!hasCode(error, 'VERSION_MISMATCH') || expectedVersion !== undefined) throw error
          if (attempt < maxAttempts) continue
          throw new GatewayError('TARGET_UNREACHABLE', `other writers keep changing "${login}"`, {
            cause: error,
            retryAfter: 1,
          })
        }
      }
    })
}

/**
 * The only login that can match, so that no other user is read. Filters fold the letter case of all scripts and
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
