import type { GroupReadOptions } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { mapFilter } from '#identity/filter/rewrite-filter.ts'
import type { Group } from '#identity/group.ts'
import type { SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type {
  GroupTarget,
  LookupTarget,
  PasswordTarget,
  StorableAttributes,
  TargetRequest,
} from '#sdk/target/target.ts'

type WholeTarget = LookupTarget & GroupTarget & PasswordTarget

/** The server's names of attributes, where they differ from ours; each once. */
export class AttributeNames {
  readonly #toServer: ReadonlyMap<string, string>
  readonly #toOurs: ReadonlyMap<string, string>

  constructor(names: Iterable<readonly [ours: string, server: string]>) {
    const pairs = [...names]
    this.#toServer = new Map(pairs.map(([ours, server]) => [ours.toLowerCase(), server]))
    this.#toOurs = new Map(pairs.map(([ours, server]) => [server.toLowerCase(), ours]))
  }

  get isEmpty(): boolean {
    return this.#toServer.size === 0
  }

  toServer = (name: string): string => this.#toServer.get(name.toLowerCase()) ?? name
  /** The server's name is our name of another attribute, so its values would pass for those. */
  isHidden = (name: string): boolean => this.#toServer.has(name.toLowerCase()) && !this.#toOurs.has(name.toLowerCase())
  toOurs = (name: string): string => this.#toOurs.get(name.toLowerCase()) ?? name
}

export interface LdapNames {
  readonly users: AttributeNames
  readonly groups: AttributeNames
  /** Empty texts, which directories can't store, are left out; otherwise the server rejects them. */
  readonly leavesOutEmpty: boolean
}

/** The target with our names of attributes for writes, reads, filters, sorting and the audit. */
export function withNames(target: WholeTarget, names: LdapNames): WholeTarget {
  const { users, groups, leavesOutEmpty } = names
  if (users.isEmpty && groups.isEmpty && !leavesOutEmpty) return target
  return {
    ...target,
    ...(target.storable === undefined ? {} : { storable: storableUnder(target.storable, names) }),
    ...withUserNames(target, names),
    ...withGroupNames(target, names),
  }
}

type UserCalls =
  | ('findUser' | 'createUser' | 'syncUser' | 'deleteUser' | 'setUserPassword' | 'defaultValue' | 'requirePlaces')
  | ('lookupUserByLogin' | 'lookupUserById' | 'searchUsers')

function withUserNames(target: WholeTarget, { users, leavesOutEmpty }: LdapNames): Pick<WholeTarget, UserCalls> {
  const userIn = (user: User): User => ({ ...user, attributes: written(user.attributes, users, leavesOutEmpty) })
  const userOut = (user: User): User => ({ ...user, attributes: read(user.attributes, users) })
  return {
    ...(target.defaultValue === undefined
      ? {}
      : { defaultValue: (attribute, user) => target.defaultValue?.(users.toServer(attribute), userIn(user)) }),
    ...(target.requirePlaces === undefined
      ? {}
      : {
          requirePlaces: async (user, write) =>
            target
              .requirePlaces?.(userIn(user), { ...write, attributes: write.attributes.map(users.toServer) })
              .catch(refusal(users)),
        }),
    findUser: async (userID, attributes, request) =>
      optional(await target.findUser(userID, attributes.map(users.toServer), request), userOut),
    createUser: (user, attributes, request, options) =>
      target
        .createUser(userIn(user), attributes.map(users.toServer), withOurNames(request, users), options)
        .catch(refusal(users)),
    syncUser: (user, options, request) =>
      target
        .syncUser(
          userIn(user),
          { ...options, attributes: options.attributes.map(users.toServer) },
          withOurNames(request, users),
        )
        .catch(refusal(users)),
    deleteUser: (user, request, options) => target.deleteUser(userIn(user), request, options),
    setUserPassword: (user, password, request) => target.setUserPassword(userIn(user), password, request),
    lookupUserByLogin: async (login) => optional(await target.lookupUserByLogin(login), userOut),
    lookupUserById: async (id) => optional(await target.lookupUserById(id), userOut),
    searchUsers: async (query) => {
      const page = await target.searchUsers(serverQuery(query, users))
      return { ...page, items: page.items.map(userOut) }
    },
  }
}

type GroupCalls =
  | ('findGroup' | 'createGroup' | 'updateGroup')
  | ('lookupGroupByName' | 'lookupGroupById' | 'searchGroups')

function withGroupNames(
  target: WholeTarget,
  { users, groups, leavesOutEmpty }: LdapNames,
): Pick<WholeTarget, GroupCalls> {
  const groupOut = ({ description: _, ...group }: Group): Group => {
    const attributes = read(group.attributes ?? new Attributes(), groups)
    const description = attributes.first('description')
    return { ...group, attributes, description }
  }
  const groupIn = (attributes: Readonly<Record<string, readonly string[]>>): Record<string, readonly string[]> => {
    const given = Object.entries(attributes)
    const cleared = given.map(([name]): [string, readonly string[]] => [groups.toServer(name), []])
    return Object.assign(
      Object.create(null),
      Object.fromEntries(cleared),
      written(given, groups, leavesOutEmpty).toObject(),
    )
  }
  const displayed = (options: GroupReadOptions | undefined): GroupReadOptions | undefined => {
    if (options?.display === undefined) return options
    const { display } = options
    return { ...options, display: { users: users.toServer(display.users), groups: groups.toServer(display.groups) } }
  }
  return {
    findGroup: async (name) => optional(await target.findGroup(name), groupOut),
    lookupGroupByName: async (name, options) =>
      optional(await target.lookupGroupByName(name, displayed(options)), groupOut),
    lookupGroupById: async (id, options) => optional(await target.lookupGroupById(id, displayed(options)), groupOut),
    searchGroups: async (query) => {
      const page = await target.searchGroups(serverQuery(query, groups))
      return { ...page, items: page.items.map(groupOut) }
    },
    createGroup: (name, attributes, request) =>
      target.createGroup(name, groupIn(attributes), withOurNames(request, groups)).catch(refusal(groups)),
    updateGroup: (name, { attributes, ...change }, request) =>
      target
        .updateGroup(
          name,
          attributes === undefined ? change : { ...change, attributes: groupIn(attributes) },
          withOurNames(request, groups),
        )
        .catch(refusal(groups)),
  }
}

/** Attributes as the server names them. */
function written(
  attributes: Iterable<readonly [string, readonly string[]]>,
  { toServer }: AttributeNames,
  leavesOutEmpty: boolean,
): Attributes {
  const renamed = new Attributes()
  for (const [name, values] of attributes) {
    renamed.add(toServer(name), leavesOutEmpty ? values.filter((value) => value !== '') : values)
  }
  return renamed
}

/** The same object for the same answer, so that callers can compare it. */
function storableUnder(storable: () => Promise<StorableAttributes>, { users, groups }: LdapNames) {
  let known: { readonly of: StorableAttributes; readonly ours: StorableAttributes } | undefined
  return async (): Promise<StorableAttributes> => {
    const held = await storable()
    if (known?.of !== held) {
      const { single } = held
      const named = { users: ours(held.users, users), groups: ours(held.groups, groups) }
      const both = single && { users: namedSet(single.users, users), groups: namedSet(single.groups, groups) }
      known = { of: held, ours: both === undefined ? named : { ...named, single: both } }
    }
    return known.ours
  }
}

const ours = (held: ReadonlySet<string> | 'any', names: AttributeNames): ReadonlySet<string> | 'any' =>
  held === 'any' ? held : namedSet(held, names)

const namedSet = (held: ReadonlySet<string>, { toOurs, isHidden }: AttributeNames): ReadonlySet<string> =>
  new Set([...held].filter((name) => !isHidden(name)).map((name) => toOurs(name).toLowerCase()))

function read(attributes: Attributes, { toOurs, isHidden }: AttributeNames): Attributes {
  const renamed = new Attributes()
  for (const [name, values] of attributes) if (!isHidden(name)) renamed.add(toOurs(name), values)
  return renamed
}

function serverQuery(query: SearchQuery, { toServer }: AttributeNames): SearchQuery {
  const { filter, sort, attributes } = query
  const rename = (leaf: Exclude<Filter, { kind: 'and' | 'or' | 'not' }>): Filter => ({
    ...leaf,
    attribute: toServer(leaf.attribute),
  })
  return {
    ...query,
    ...(filter === undefined ? {} : { filter: mapFilter(filter, rename) }),
    ...(sort === undefined ? {} : { sort: { ...sort, attribute: toServer(sort.attribute) } }),
    ...(attributes === undefined ? {} : { attributes: attributes.map(toServer) }),
  }
}

/** The request, whose audit gets our names of attributes instead of the server's. */
const withOurNames = (request: TargetRequest, { toOurs }: AttributeNames): TargetRequest => ({
  ...request,
  audit: (change) =>
    request.audit(change.subject === 'attribute' ? { ...change, attribute: toOurs(change.attribute) } : change),
})

/** Throws the error with our name of the attribute that the server refuses. */
const refusal =
  ({ toOurs }: AttributeNames) =>
  (error: unknown): never => {
    if (!(error instanceof GatewayError) || error.attribute === undefined) throw error
    const attribute = toOurs(error.attribute)
    throw new GatewayError(error.code, error.message, {
      cause: error.cause,
      attribute,
      publicText: (shown = `"${attribute}"`) => error.textNaming(shown),
      keyword: error.keyword,
    })
  }

const optional = <T>(value: T | undefined, change: (value: T) => T): T | undefined =>
  value === undefined ? undefined : change(value)
