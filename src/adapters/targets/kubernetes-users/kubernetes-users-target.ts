import { createHash } from 'node:crypto'
import { groupCollection, userCollection, withAttributes } from '#adapters/targets/shared/collections.ts'
import {
  type Exclusively,
  hasCode,
  reconcileUsers,
  type StoredUser,
  type UserStore,
} from '#adapters/targets/shared/user-reconciler.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Group } from '#identity/group.ts'
import { pageInMemory } from '#identity/paging.ts'
import type { User } from '#identity/user.ts'
import { directoryLimits } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { ClusterObject, ClusterResource } from '#protocols/kubernetes/cluster.ts'
import type { ClusterObjects } from '#sdk/target/kubernetes-cluster.ts'
import type { LookupTarget, StorableAttributes, TargetChange, TargetRequest } from '#sdk/target/target.ts'

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

  /** An object with that name that belongs to another login is not this user's. */
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
    await request.planChanges?.(changes)
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
    // As in OpenUnison, whose rules and identity providers read it.
    showsGroups: true,
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

/** Decides a change again after another writer's, unless it expects the version that the writer replaced. */
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
 * The only login that can match, so that no other user is read. Filters fold the letter case of all scripts, and names
 * of objects only that of ASCII, so this only works for ASCII logins.
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

const userApi = { group: 'openunison.tremolo.io', version: 'v1', plural: 'users' } as const

/** Fields of OpenUnison's User objects. All other attributes are under `attributes`. */
const plainFields = ['first_name', 'last_name', 'email'] as const
/** The login and the object's own name, which only this target writes. */
const ownFields = ['sub', 'uid'] as const

type Spec = Readonly<Record<string, unknown>>

/** Values of a wrong type count as absent, since other programs write such objects too. */
function readUser({ metadata, content }: ClusterObject): User {
  const spec = recordOf(content['spec'])
  const attributes = new Attributes()
  for (const [name, values] of Object.entries(recordOf(spec['attributes']))) attributes.set(name, textsOf(values))
  for (const field of [...ownFields, ...plainFields]) {
    const value = spec[field]
    if (typeof value === 'string' && value !== '') attributes.set(field, [value])
  }
  const login = attributes.first('sub') ?? metadata.name
  const created = metadata.creationTimestamp === undefined ? undefined : new Date(metadata.creationTimestamp)
  return {
    userID: login,
    id: login,
    attributes,
    groups: [...new Set(textsOf(spec['groups']))],
    version: metadata.resourceVersion,
    ...(created === undefined || Number.isNaN(created.getTime()) ? {} : { created }),
  }
}

/** The attributes that a caller may change. BAD_REQUEST for a `sub` that isn't the login. */
function ownAttributes(user: User, attributes: readonly string[]): string[] {
  const sub = user.attributes.values('sub')
  const asksForSub = attributes.some((name) => name.toLowerCase() === 'sub')
  if (asksForSub && sub.some((value) => value !== user.userID)) {
    throw new GatewayError('BAD_REQUEST', `"sub" of a User object is the login: "${user.userID}"`)
  }
  return attributes.filter((name) => !ownFields.some((field) => field === name.toLowerCase()))
}

/** The object of this user, with the foreign fields of `before`. BAD_REQUEST, by name, for unstorable values. */
function writeUser(user: User, namespace: string, before?: ClusterObject): Readonly<Record<string, unknown>> {
  checkText('the login', user.userID, directoryLimits.nameBytes)
  const name = objectName(user.userID)
  const {
    sub,
    uid,
    first_name,
    last_name,
    email,
    attributes: _,
    groups: __,
    ...foreign
  } = recordOf(before?.content['spec'])
  const held = new Attributes()
  const fields: Record<string, string> = {}
  for (const [attribute, values] of user.attributes) {
    const field = plainFields.find((candidate) => candidate === attribute.toLowerCase())
    checkValues(attribute, values)
    if (ownFields.some((own) => own === attribute.toLowerCase())) continue
    if (field === undefined) held.set(attribute, values)
    else fields[field] = onlyValue(field, values)
  }
  for (const group of user.groups) checkText('a group', group, directoryLimits.nameBytes)
  const spec: Spec = {
    ...foreign,
    sub: user.userID,
    uid: name,
    ...fields,
    groups: user.groups,
    ...(held.size === 0 ? {} : { attributes: held.toObject() }),
  }
  const metadata = recordOf(before?.content['metadata'])
  return {
    ...before?.content,
    apiVersion: `${userApi.group}/${userApi.version}`,
    kind: 'User',
    metadata: { ...metadata, name, namespace },
    spec,
  }
}

function onlyValue(field: string, values: readonly string[]): string {
  const [value, second] = values
  if (second !== undefined) throw new GatewayError('BAD_REQUEST', `"${field}" of a User object holds one value`)
  if (value === '') throw new GatewayError('BAD_REQUEST', `"${field}" of a User object cannot be empty text`)
  return value ?? ''
}

function checkValues(attribute: string, values: readonly string[]): void {
  checkText('the name of an attribute', attribute, directoryLimits.nameBytes)
  if (values.length > directoryLimits.valuesPerAttribute) {
    throw new GatewayError('BAD_REQUEST', `"${attribute}" has more than ${directoryLimits.valuesPerAttribute} values`)
  }
  for (const value of values) checkText(`"${attribute}"`, value, directoryLimits.valueBytes)
}

/** Half a surrogate pair would come back as another character. */
function checkText(what: string, value: string, mostBytes: number): void {
  if (!value.isWellFormed()) throw new GatewayError('BAD_REQUEST', `${what} holds half a surrogate pair`)
  if (Buffer.byteLength(value) > mostBytes) throw new GatewayError('BAD_REQUEST', `${what} is over ${mostBytes} bytes`)
}

const recordOf = (value: unknown): Spec =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Spec) : {}
const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((member) => typeof member === 'string') : []

const validLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const longestName = 253

/**
 * The name of the object that stores a login. Only logins that differ in ASCII letter case share one. It is
 * OpenUnison's name, if the API server accepts it: letters, dots and hyphens unchanged, every other UTF-16 unit as
 * `x-<decimal>-x`. Otherwise it is a hash.
 */
export function objectName(login: string): string {
  const folded = foldLogin(login)
  const name = folded.replace(/[^a-z.-]/g, (unit) => `x-${unit.charCodeAt(0)}-x`)
  const isValid = name.length <= longestName && name.split('.').every((label) => validLabel.test(label))
  return isValid ? name : `u-${createHash('sha256').update(folded).digest('hex')}`
}

/** Logins are compared in this form. */
export const foldLogin = (login: string): string => login.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
