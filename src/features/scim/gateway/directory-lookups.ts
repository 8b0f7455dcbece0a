import type { ContainingGroup } from '#identity/account-store.ts'
import type { Directory, DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import type { NamedGroup } from '#identity/group.ts'
import { pageInMemory } from '#identity/paging.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import { type Awaitable, firstResult } from '#kernel/awaitable.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'
import { groupsAbove } from '#sdk/target/containing-groups.ts'
import type { GatewayConfig } from './gateway-config.ts'
import {
  type FoundGroup,
  type FoundUser,
  type Lookups,
  lookupWidth,
  type Member,
  pagesOf,
  ResourceIds,
  reading,
  withGroups,
} from './lookups.ts'

const groupClasses = ['groupOfUniqueNames', 'groupOfNames', 'group']

/** Lookups through the virtual directory (`lookupFromLDAP`). */
export class DirectoryLookups implements Lookups {
  readonly #directory: Directory
  readonly #entries: DirectoryPages
  readonly #users: GatewayConfig['users']
  readonly #groups: GatewayConfig['groups']
  readonly #isUser: Filter
  /** The attributes of a group that the gateway reads, without its members, who may be many. */
  readonly #ofGroup: readonly string[]
  readonly #dns = new WeakMap<object, Dn>()
  /** The direct groups of a user. */
  readonly #direct = new WeakMap<object, readonly FoundGroup[]>()
  readonly names: Lookups['names']
  readonly keepsVersions = false
  /** Whether the target supports it is only known when a workflow tries. */
  readonly nestsGroups = true
  readonly ids: ResourceIds
  readonly servedTimes = { users: [], groups: [] }
  readonly ownsValues = false
  readonly groupIdIsName: boolean
  readonly userIdAttribute: string | undefined
  /** Whether the system behind the directory can rename users is only known when a workflow tries. */
  readonly renamesUsers: boolean

  constructor(directory: Directory, base: Dn, config: GatewayConfig) {
    this.#directory = directory
    this.#entries = new DirectoryPages(directory, base)
    this.#users = config.users
    this.#groups = config.groups
    const { loginAttribute, idAttribute = loginAttribute } = config.users
    const groups = config.groups
    this.ids = new ResourceIds([idAttribute, groups.idAttribute].every((name) => isUniqueId(name)))
    this.#isUser = { kind: 'present', attribute: loginAttribute }
    const read = [groups.lookupAttribute, groups.idAttribute, groups.displayAttribute, ...groups.filterNames.values()]
    this.#ofGroup = [...new Set([...read, ...groups.mapping.reads])].filter(
      (name) => name !== undefined && !same(name, groups.memberAttribute),
    ) as string[]
    this.groupIdIsName = (groups.idAttribute ?? groups.lookupAttribute) === groups.lookupAttribute
    this.renamesUsers = !same(loginAttribute, idAttribute)
    this.userIdAttribute = this.renamesUsers ? idAttribute : undefined
    this.names = {
      login: [loginAttribute],
      userId: [idAttribute],
      groupName: [groups.displayAttribute ?? groups.lookupAttribute],
      groupId: [groups.idAttribute ?? groups.lookupAttribute],
    }
  }

  userById(id: string): Awaitable<FoundUser | undefined> {
    return firstResult(this.ids.storedUser(id), (stored) => this.#userByStoredId(stored))
  }

  /** The id of an entry without the attribute is its login. */
  async #userByStoredId(id: string): Promise<FoundUser | undefined> {
    const attribute = this.userIdAttribute
    if (attribute === undefined) return this.userByLogin(id)
    const found = await this.#oneUser(attribute, id)
    if (found !== undefined) return found
    const byLogin = await this.userByLogin(id)
    return byLogin?.user.attributes.has(attribute) === true ? undefined : byLogin
  }

  userByLogin(login: string): Promise<FoundUser | undefined> {
    return this.#oneUser(this.#users.loginAttribute, login)
  }

  async searchUsers({ filter, ...query }: SearchQuery): Promise<SearchPage<FoundUser>> {
    const page = await this.#entries.page(and(this.#isUser, filter), query)
    return { ...page, items: await this.#foundUsers(page.items) }
  }

  async groupById(id: string, members: boolean): Promise<FoundGroup | undefined> {
    const { lookupAttribute, idAttribute = lookupAttribute } = this.#groups
    const entry = await firstResult(this.ids.storedGroup(id), (stored) => this.#oneGroup(idAttribute, stored))
    if (entry === undefined || !members) return entry && this.#group(entry)
    return this.#group((await this.#entries.named(entry.dn)) ?? entry)
  }

  async groupByName(name: string): Promise<FoundGroup | undefined> {
    const entry = await this.#oneGroup(this.#groups.lookupAttribute, name)
    return entry && this.#group(entry)
  }

  async searchGroups({ filter, ...query }: SearchQuery): Promise<SearchPage<FoundGroup>> {
    const page = await this.#entries.page(and(isGroup, filter), query, this.#ofGroup)
    return { ...page, items: page.items.flatMap((entry) => this.#group(entry) ?? []) }
  }

  members({ group }: FoundGroup): Promise<readonly Member[]> {
    return this.#membersNamed(group.members)
  }

  async *memberPages({ group }: FoundGroup): AsyncGenerator<readonly Member[]> {
    for await (const { members } of pagesOf(group)) yield await this.#membersNamed(members)
  }

  async #membersNamed(names: readonly string[]): Promise<readonly Member[]> {
    const found = await inParallel(names, lookupWidth, async (text): Promise<Member | undefined> => {
      const dn = parseDn(text)
      const entry = dn && (await this.#entries.named(dn))
      if (entry === undefined) return undefined
      return matches(isGroup, entry.attributes) ? this.#memberGroup(entry) : this.#memberUser(entry)
    })
    return found.filter((member) => member !== undefined)
  }

  #memberUser(entry: DirectoryEntry): Member | undefined {
    const found = this.#user(entry)
    if (found === undefined) return undefined
    const { userID, attributes } = found.user
    return { id: found.id, type: 'User', display: attributes.first(this.#users.displayAttribute) ?? userID }
  }

  #memberGroup(entry: DirectoryEntry): Member | undefined {
    const found = this.#group(entry)
    if (found === undefined) return undefined
    const { displayAttribute } = this.#groups
    const shown = displayAttribute === undefined ? undefined : entry.attributes.first(displayAttribute)
    return { id: found.id, type: 'Group', display: shown ?? found.group.name }
  }

  async containing(ids: readonly string[]): Promise<ReadonlyMap<string, readonly ContainingGroup[]>> {
    const read = await inParallel(ids, lookupWidth, async (id) => ({ id, group: await this.groupById(id, false) }))
    const known = read.flatMap(({ id, group }) => (group === undefined ? [] : [{ id, group }]))
    const above = await this.#above(known.map(({ group }) => group))
    const found = new Map<string, ContainingGroup[]>()
    for (const { id, group } of known) {
      const containing = above.of(group).map((one) => ({ ...named(one.group), direct: one.direct }))
      if (containing.length > 0) found.set(id, containing)
    }
    return found
  }

  async withIndirectGroups(users: readonly FoundUser[]): Promise<readonly FoundUser[]> {
    const above = await this.#above(users.flatMap(({ user }) => this.#direct.get(user) ?? []))
    return users.map((found) => {
      const direct = this.#direct.get(found.user) ?? []
      const containing = direct.flatMap((one) => above.of(one)).map(({ group }) => named(group))
      return withGroups(found, new Set(direct.map(({ id }) => id)), containing)
    })
  }

  #above(groups: readonly FoundGroup[]) {
    return groupsAbove(
      groups,
      ({ group, id }) => this.#dns.get(group)?.key ?? id,
      async ({ group }) => this.#holding(this.#dns.get(group)),
    )
  }

  async isMember({ group }: FoundGroup, { user }: FoundUser): Promise<boolean> {
    const groupDn = this.#dns.get(group)
    const userDn = this.#dns.get(user)
    return (
      groupDn !== undefined && userDn !== undefined && (await reading(() => this.#directory.isMember(groupDn, userDn)))
    )
  }

  groupsOf({ user }: FoundUser): Promise<readonly FoundGroup[]> {
    return this.#holding(this.#dns.get(user))
  }

  /** By `memberOf` or, in a directory without it, by the members of groups. */
  async memberships({ user }: FoundUser, names?: readonly string[]): Promise<readonly NamedGroup[]> {
    const listed = names ?? user.attributes.values('memberOf')
    const held = names === undefined ? this.#direct.get(user) : undefined
    if (held !== undefined) return held.map(named)
    if (listed.length === 0) return (await this.#holding(this.#dns.get(user))).map(named)
    const groups = await this.#groupsNamed(listed)
    return listed.flatMap((name) => groups.get(name) ?? []).map(named)
  }

  async #groupsNamed(names: Iterable<string>): Promise<ReadonlyMap<string, FoundGroup>> {
    const groups = new Map<string, FoundGroup>()
    await inParallel([...new Set(names)], lookupWidth, async (name) => {
      const dn = parseDn(name)
      const entry = dn && (await this.#entries.named(dn, this.#ofGroup))
      const group = entry && this.#group(entry)
      if (group !== undefined) groups.set(name, group)
    })
    return groups
  }

  /** The groups that an entry is a direct member of. */
  async #holding(dn: Dn | undefined): Promise<readonly FoundGroup[]> {
    if (dn === undefined) return []
    const isIn: Filter = { kind: 'equal', attribute: this.#groups.memberAttribute, value: dn.toString() }
    return (await this.#entries.all(and(isGroup, isIn), this.#ofGroup)).flatMap((entry) => this.#group(entry) ?? [])
  }

  /** There may be several systems behind the directory, so a change cannot be bound to the version of one. */
  readVersion(): undefined {
    return undefined
  }

  /** If two entries have the value, neither is found: it is better to fail than to change the wrong one. */
  async #oneUser(attribute: string, value: string): Promise<FoundUser | undefined> {
    const entry = await this.#entries.only(and(this.#isUser, { kind: 'equal', attribute, value }))
    // In some directories groups also have the attribute of logins.
    if (entry === undefined || matches(isGroup, entry.attributes)) return undefined
    return (await this.#foundUsers([entry]))[0]
  }

  #oneGroup(attribute: string, value: string): Promise<DirectoryEntry | undefined> {
    return this.#entries.only(and(isGroup, { kind: 'equal', attribute, value, caseExact: false }), this.#ofGroup)
  }

  /** With their groups from `memberOf`, if the built-in mapping shows them; each group is read once. */
  async #foundUsers(entries: readonly DirectoryEntry[]): Promise<FoundUser[]> {
    const users = entries.flatMap((entry) => this.#user(entry) ?? [])
    if (this.#users.mapping.isEmpty) return users
    const groups = await this.#groupsNamed(users.flatMap(({ user }) => user.attributes.values('memberOf')))
    return users.map(({ id, user }) => {
      const held = user.attributes.values('memberOf').flatMap((name) => groups.get(name) ?? [])
      const shown = { ...user, groups: held.map(({ group }) => group.name) }
      const dn = this.#dns.get(user)
      if (dn !== undefined) this.#dns.set(shown, dn)
      this.#direct.set(shown, held)
      return { id, user: shown }
    })
  }

  #user({ dn, attributes }: DirectoryEntry): FoundUser | undefined {
    const userID = attributes.first(this.#users.loginAttribute)
    if (userID === undefined) return undefined
    const { idAttribute } = this.#users
    const user = { userID, attributes, groups: [] }
    this.#dns.set(user, dn)
    const stored = (idAttribute === undefined ? undefined : attributes.first(idAttribute)) ?? userID
    return { id: this.ids.ofUser(stored), user }
  }

  #group({ dn, attributes }: DirectoryEntry): FoundGroup | undefined {
    const { lookupAttribute, idAttribute, memberAttribute } = this.#groups
    const id = attributes.first(idAttribute ?? lookupAttribute)
    // The lookup attribute may be the target's name for the naming attribute, which is cn in a directory.
    const name = attributes.first(lookupAttribute) ?? dn.rdns[0]?.[0]?.value ?? id
    if (name === undefined) return undefined
    const group = { id: id ?? name, name, members: attributes.values(memberAttribute), attributes }
    this.#dns.set(group, dn)
    return { id: this.ids.ofGroup(group.id), group }
  }
}

/** Attributes whose values no two entries of a directory share. */
const uniqueIds = new Set(['entryuuid', 'objectguid', 'nsuniqueid', 'ipauniqueid', 'ibm-entryuuid', 'guid'])

const isUniqueId = (attribute: string | undefined): boolean => uniqueIds.has(attribute?.toLowerCase() ?? '')

const named = ({ id, group }: FoundGroup): NamedGroup => ({ id, name: group.name })

const isGroup: Filter = {
  kind: 'or',
  filters: groupClasses.map((value): Filter => ({ kind: 'equal', attribute: 'objectClass', value })),
}

const and = (first: Filter, second: Filter | undefined): Filter =>
  second === undefined ? first : { kind: 'and', filters: [first, second] }

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

function parseDn(text: string): Dn | undefined {
  try {
    return Dn.parse(text)
  } catch {
    return undefined
  }
}

/** Entries per search of the directory. */
const pageEntries = 1000
/** The most entries that are read for one answer; a search that needs more is refused instead of truncated. */
const maxEntries = 10_000

const anything: Filter = { kind: 'present', attribute: 'objectClass' }

/** Searches below one entry of the directory, and adds the order and the pages that a directory does not have. */
class DirectoryPages {
  readonly #directory: Directory
  readonly #base: Dn

  constructor(directory: Directory, base: Dn) {
    this.#directory = directory
    this.#base = base
  }

  /** The entry that matches; undefined if there is none, or more than one. */
  async only(filter: Filter, attributes?: readonly string[]): Promise<DirectoryEntry | undefined> {
    const search = { base: this.#base, scope: 'sub', filter, limit: 2, ...asking(attributes) } as const
    const [entry, second] = await reading(() => this.#directory.search(search))
    return second === undefined ? entry : undefined
  }

  /** The entry of that name, with its members unless attributes are named; undefined if there is none below the base. */
  async named(dn: Dn, attributes?: readonly string[]): Promise<DirectoryEntry | undefined> {
    if (!dn.isWithin(this.#base)) return undefined
    const search = { base: dn, scope: 'base', filter: anything, limit: 1, ...asking(attributes) } as const
    return (await reading(() => this.#directory.search(search)))[0]
  }

  async all(filter: Filter, attributes?: readonly string[]): Promise<readonly DirectoryEntry[]> {
    const entries: DirectoryEntry[] = []
    let after: string | undefined
    do {
      const search = { base: this.#base, scope: 'sub', filter, limit: pageEntries, ...asking(attributes) } as const
      const page = await reading(() => this.#directory.page(after === undefined ? search : { ...search, after }))
      entries.push(...page.entries)
      if (entries.length > maxEntries) throw scimError('tooMany', 'Too many entries match. Narrow the filter.')
      after = page.next
    } while (after !== undefined)
    return entries
  }

  /** In the directory's own order unless sorted. All entries are read if the directory does not count them. */
  async page(
    filter: Filter,
    query: Omit<SearchQuery, 'filter'>,
    attributes?: readonly string[],
  ): Promise<SearchPage<DirectoryEntry>> {
    const { sort, offset, limit, after } = query
    // The order is evaluated on the entries themselves.
    const asked = attributes === undefined || sort === undefined ? attributes : [...attributes, sort.attribute]
    if (sort !== undefined) {
      const collection = { of: this.#base.key, source: attributesOf, key: ({ dn }: DirectoryEntry) => dn.key }
      return pageInMemory(await this.all(filter, asked), { ...query, sort }, collection)
    }
    if (offset > 0) {
      const all = await this.all(filter, asked)
      return { items: all.slice(offset, offset + limit), total: all.length }
    }
    const search = { base: this.#base, scope: 'sub', filter, limit, count: true, ...asking(asked) } as const
    const { entries, next, total } = await reading(() =>
      this.#directory.page(after === undefined ? search : { ...search, after }),
    )
    const hasAll = after === undefined && next === undefined
    const count = total ?? (hasAll ? entries : await this.all(filter, asked)).length
    return { items: entries, total: count, next }
  }
}

const asking = (attributes: readonly string[] | undefined) => (attributes === undefined ? {} : { attributes })

const attributesOf = ({ attributes }: DirectoryEntry) => attributes
