import type { JsonPath } from '#kernel/text/json-path.ts'
import type { Authority } from '#sdk/module/authority.ts'
import type { BodyTemplate, HeaderTemplate, RequestTemplate } from './templates.ts'

const paging = ['offset', 'limit', 'page', 'cursor'] as const

/** The configurable requests: their placeholders, and whether a body also accepts attributes. */
const operations = {
  findUser: { places: ['userID'], answer: 'one', about: 'Finds a user by login: `{userID}`.' },
  findUserById: {
    places: ['id'],
    answer: 'one',
    about: 'Finds a user by the API’s own id: `{id}`.',
    requirement: 'for look-ups with `user.id`',
  },
  searchUsers: {
    places: paging,
    answer: 'list',
    about: 'Lists all users: `{offset}` or `{page}` or `{cursor}`, and `{limit}`.',
    requirement: 'for look-ups',
  },
  userGroups: {
    places: ['userID', 'id', ...paging],
    answer: 'list',
    about: 'Lists the groups of a user, if the user does not contain them: `{userID}`, `{id}`, and pages.',
  },
  createUser: {
    places: ['userID'],
    attributes: 'user',
    about: 'Creates a user: `{userID}`; in the body also `{groups*}` and attributes.',
  },
  updateUser: {
    places: ['userID', 'id', 'version'],
    attributes: 'user',
    about:
      'Changes a user: `{userID}`, `{id}`, `{version}`; in the body also `{groups*}` and attributes, and `{userID}` is the login it is to have.',
  },
  deleteUser: { places: ['userID', 'id', 'version'], about: 'Deletes a user: `{userID}`, `{id}`, `{version}`.' },
  setPassword: {
    places: ['userID', 'id', 'password'],
    about: 'Sets a user’s password: `{userID}`, `{id}`, `{password}`.',
    requirement: 'for passwords',
  },
  findGroup: {
    places: ['group'],
    answer: 'one',
    about: 'Finds a group by name: `{group}`.',
    requirement: 'for groups and look-ups',
  },
  findGroupById: {
    places: ['groupId'],
    answer: 'one',
    about: 'Finds a group by the API’s own id: `{groupId}`.',
    requirement: 'for look-ups with `group.id`',
  },
  searchGroups: {
    places: paging,
    answer: 'list',
    about: 'Lists all groups: as `searchUsers`.',
    requirement: 'for look-ups',
  },
  groupMembers: {
    places: ['group', 'groupId', ...paging],
    answer: 'list',
    about: 'Lists the members of a group, if the group does not contain them: `{group}`, `{groupId}`, and pages.',
  },
  createGroup: {
    places: ['group'],
    attributes: 'group',
    about: 'Creates a group: `{group}`; in the body also attributes.',
    requirement: 'for groups',
  },
  updateGroup: {
    places: ['group', 'groupId', 'version'],
    attributes: 'group',
    about:
      'Changes a group: `{group}`, `{groupId}`, `{version}`; in the body also attributes, and `{group}` is the name it is to have.',
  },
  deleteGroup: {
    places: ['group', 'groupId', 'version'],
    about: 'Deletes a group: `{group}`, `{groupId}`, `{version}`.',
    requirement: 'for groups',
  },
  addMember: {
    places: ['userID', 'id', 'group', 'groupId'],
    about: 'Adds a user to a group: `{userID}`, `{id}`, `{group}`, `{groupId}`.',
    requirement: 'for memberships, or `{groups*}`',
  },
  removeMember: {
    places: ['userID', 'id', 'group', 'groupId'],
    about: 'Removes a user from a group, with the placeholders of `addMember`.',
    requirement: 'with `addMember`',
  },
} as const satisfies Readonly<Record<string, OperationKind>>

interface OperationKind {
  readonly places: readonly string[]
  readonly answer?: 'one' | 'list'
  readonly attributes?: 'user' | 'group'
  readonly about: string
  readonly requirement?: string
}

export type OperationName = keyof typeof operations

export const operationNames = Object.keys(operations) as readonly OperationName[]

export const isOperation = (name: string): name is OperationName => Object.hasOwn(operations, name)

export const kindOf = (name: OperationName): OperationKind => operations[name]

/** One request of the API as it is configured. */
export interface Operation {
  readonly name: OperationName
  readonly request: RequestTemplate
  readonly headers: readonly HeaderTemplate[]
  readonly body: BodyTemplate | undefined
  /** Where in the answer the users, groups or names are. */
  readonly items: JsonPath
  /** How many there are in all. */
  readonly total: JsonPath | undefined
  /** The cursor of the next page. */
  readonly next: JsonPath | undefined
  /** The statuses of success; any 2xx when undefined. */
  readonly statuses: ReadonlySet<number> | undefined
  readonly notFound: ReadonlySet<number>
}

export type Operations = Readonly<Partial<Record<OperationName, Operation>>>

/** Whether any part of the request has a place of this name. */
export const hasPlace = ({ request, headers, body }: Operation, name: string): boolean =>
  request.places.includes(name) ||
  headers.some(({ places }) => places.includes(name)) ||
  (body?.places.some((place) => place.name === name) ?? false)

/** Where an answer of the API has the parts of a user or group. */
export interface EntryPaths {
  /** The login of a user, the name of a group. */
  readonly name: JsonPath
  readonly id: JsonPath | undefined
  readonly version: JsonPath | undefined
  readonly created: JsonPath | undefined
  readonly modified: JsonPath | undefined
  /** A user's groups, a group's members. */
  readonly links: JsonPath | undefined
  /** The ids of the user's groups, in the same order. */
  readonly linkIds: JsonPath | undefined
  readonly attributes: ReadonlyMap<string, JsonPath>
  /** Attributes, in lower case, that are another name of the login or of the group's name. */
  readonly aliases: ReadonlySet<string>
}

interface Signing {
  readonly secret: string
  readonly signatureHeader: string
  readonly timestampHeader: string
}

export interface ConnectionConfig {
  readonly url: URL
  readonly authority: Authority
  /** Credentials, and the headers of every request. */
  readonly headers: readonly (readonly [string, string])[]
  readonly signing: Signing | undefined
  readonly connections: number
  readonly timeoutMillis: number
  readonly retries: number
  readonly idempotencyKeys: boolean
  readonly maxAnswerBytes: number
}

interface ListLimits {
  readonly pageSize: number
  readonly firstPage: number
  readonly maxEntries: number
}

/** Requests that narrow a search, by the attribute in lower case. */
export type Narrowings = ReadonlyMap<string, RequestTemplate>

export interface WebhookConfig {
  readonly connection: ConnectionConfig
  readonly limits: ListLimits
  readonly user: EntryPaths
  readonly group: EntryPaths
  readonly membersAreIds: boolean
  readonly operations: Operations
  readonly usersBy: Narrowings
  readonly groupsBy: Narrowings
  readonly can: Capabilities
}

export interface Capabilities {
  readonly lookups: boolean
  readonly groups: boolean
  readonly renames: boolean
  readonly versions: boolean
  /** How memberships are changed: with the user itself, one by one, or not at all. */
  readonly memberships: 'body' | 'calls' | 'none'
}

/** The attributes that have placeholders in the bodies of these requests. */
export function writtenBy(
  { attributes, aliases }: EntryPaths,
  ...operations: readonly (Operation | undefined)[]
): Set<string> {
  const places = new Set(operations.flatMap((one) => one?.body?.places ?? []).map(({ name }) => name.toLowerCase()))
  const named = [...attributes.keys()].map((name) => name.toLowerCase()).filter((name) => places.has(name))
  return new Set([...named, ...aliases])
}

/** In lower case. */
export const storedUserAttributes = ({ user, operations: { createUser, updateUser } }: WebhookConfig): Set<string> =>
  writtenBy(user, createUser, updateUser)

/** The attributes that these requests write as one value. */
export function writtenOnce(...operations: readonly (Operation | undefined)[]): Set<string> {
  const places = operations.flatMap((one) => one?.body?.places ?? [])
  const several = new Set(places.flatMap(({ name, all }) => (all ? [name.toLowerCase()] : [])))
  return new Set(places.map(({ name }) => name.toLowerCase()).filter((name) => !several.has(name)))
}
