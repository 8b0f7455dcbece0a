import { Attributes } from '#identity/attributes.ts'
import type { Directory, DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { pageInMemory } from '#identity/page-in-memory.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { SearchPage } from '#sdk/target.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { inParallel } from './in-parallel.ts'
import { type FoundGroup, type FoundUser, type Lookups, lookupWidth, type Member, type Query } from './lookups.ts'

/** As many entries as one search may give; a search that would give more is refused rather than cut. */
const maxEntries = 1000

const groupClasses = ['groupOfUniqueNames', 'groupOfNames', 'group']

/** Look-ups through the virtual directory (`lookupFromLDAP`). */
export class DirectoryLookups implements Lookups {
  readonly #directory: Directory
  readonly #base: Dn
  readonly #users: GatewayConfig['users']
  readonly #groups: GatewayConfig['groups']
  readonly #dns = new WeakMap<object, Dn>()
  readonly names: Lookups['names']
  readonly keepsVersions = false
  readonly groupIdIsName: boolean
  readonly renamesUsers = false

  constructor(directory: Directory, base: Dn, config: GatewayConfig) {
    this.#directory = directory
    this.#base = base
    this.#users = config.users
    this.#groups = config.groups
    const { lookupAttribute, idAttribute } = config.users
    const groups = config.groups
    this.groupIdIsName = (groups.idAttribute ?? groups.lookupAttribute) === groups.lookupAttribute
    this.names = {
      login: [lookupAttribute],
      userId: [idAttribute ?? lookupAttribute],
      groupName: [groups.displayAttribute ?? groups.lookupAttribute],
      groupId: [groups.idAttribute ?? groups.lookupAttribute],
    }
  }

  userById(id: string): Promise<FoundUser | undefined> {
    return this.#oneUser(this.#users.idAttribute ?? this.#users.lookupAttribute, id)
  }

  userByLogin(login: string): Promise<FoundUser | undefined> {
    return this.#oneUser(this.#users.lookupAttribute, login)
  }

  async searchUsers(query: Query): Promise<SearchPage<FoundUser>> {
    const isUser: Filter = { kind: 'present', attribute: this.#users.loginAttribute }
    const entries = await this.#search(and(isUser, query.filter))
    const users = entries.flatMap((entry) => this.#user(entry) ?? [])
    return page(users, query, 'users', ({ user }) => user.attributes)
  }

  async groupById(id: string, members: boolean): Promise<FoundGroup | undefined> {
    const entry = await this.#oneGroup(this.#groups.idAttribute ?? this.#groups.lookupAttribute, id)
    return entry && this.#group(members ? ((await this.#entry(entry.dn)) ?? entry) : entry)
  }

  async groupByName(name: string): Promise<FoundGroup | undefined> {
    const entry = await this.#oneGroup(this.#groups.lookupAttribute, name)
    return entry && this.#group(entry)
  }

  async searchGroups(query: Query): Promise<SearchPage<FoundGroup>> {
    const entries = await this.#search(and(isGroup, query.filter))
    const groups = entries.flatMap((entry) => this.#group(entry) ?? [])
    return page(groups, query, 'groups', ({ group }) => group.attributes ?? new Attributes())
  }

  async members({ group }: FoundGroup): Promise<readonly Member[]> {
    const found = await inParallel(group.members, lookupWidth, async (member) => {
      const dn = parseDn(member)
      const entry = dn?.isWithin(this.#base) ? await this.#entry(dn) : undefined
      return entry && this.#user(entry)
    })
    return found.flatMap((member) => (member === undefined ? [] : [{ id: member.id }]))
  }

  async isMember({ group }: FoundGroup, { user }: FoundUser): Promise<boolean> {
    const groupDn = this.#dns.get(group)
    const userDn = this.#dns.get(user)
    return groupDn !== undefined && userDn !== undefined && (await this.#directory.isMember(groupDn, userDn))
  }

  async groupsOf({ user }: FoundUser): Promise<readonly FoundGroup[]> {
    const dn = this.#dns.get(user)
    if (dn === undefined) return []
    const { memberAttribute } = this.#groups
    const entries = await this.#search(
      and(isGroup, { kind: 'equal', attribute: memberAttribute, value: dn.toString() }),
    )
    return entries.flatMap((entry) => this.#group(entry) ?? [])
  }

  /** Several systems may stand behind the directory, so there is none that a change could be bound to. */
  readVersion(): undefined {
    return undefined
  }

  /** A name that two entries claim names nobody: acting on the wrong one would be worse. */
  async #oneUser(attribute: string, value: string): Promise<FoundUser | undefined> {
    const isUser: Filter = { kind: 'present', attribute: this.#users.loginAttribute }
    const [entry, second] = await this.#search(and(isUser, { kind: 'equal', attribute, value }))
    return entry === undefined || second !== undefined ? undefined : this.#user(entry)
  }

  async #oneGroup(attribute: string, value: string): Promise<DirectoryEntry | undefined> {
    const [entry, second] = await this.#search(and(isGroup, { kind: 'equal', attribute, value, caseExact: false }))
    return second === undefined ? entry : undefined
  }

  async #search(filter: Filter): Promise<readonly DirectoryEntry[]> {
    const entries = await this.#directory.search({ base: this.#base, scope: 'sub', filter, limit: maxEntries })
    if (entries.length >= maxEntries) throw scimError('tooMany', 'Too many entries match; narrow the filter.')
    return entries
  }

  async #entry(dn: Dn): Promise<DirectoryEntry | undefined> {
    const filter: Filter = { kind: 'present', attribute: 'objectClass' }
    return (await this.#directory.search({ base: dn, scope: 'base', filter, limit: 1 }))[0]
  }

  #user({ dn, attributes }: DirectoryEntry): FoundUser | undefined {
    const userID = attributes.first(this.#users.loginAttribute)
    if (userID === undefined) return undefined
    const { idAttribute } = this.#users
    const user = { userID, attributes, groups: [] }
    this.#dns.set(user, dn)
    return { id: (idAttribute === undefined ? undefined : attributes.first(idAttribute)) ?? userID, user }
  }

  #group({ dn, attributes }: DirectoryEntry): FoundGroup | undefined {
    const { lookupAttribute, idAttribute, memberAttribute } = this.#groups
    const id = attributes.first(idAttribute ?? lookupAttribute)
    // The lookup attribute may be the target's word for the naming attribute, which a directory calls cn.
    const name = attributes.first(lookupAttribute) ?? dn.rdns[0]?.[0]?.value ?? id
    if (name === undefined) return undefined
    const group = { id: id ?? name, name, members: attributes.values(memberAttribute), attributes }
    this.#dns.set(group, dn)
    return { id: group.id, group }
  }
}

const isGroup: Filter = {
  kind: 'or',
  filters: groupClasses.map((value): Filter => ({ kind: 'equal', attribute: 'objectClass', value })),
}

const and = (first: Filter, second: Filter | undefined): Filter =>
  second === undefined ? first : { kind: 'and', filters: [first, second] }

const page = <T extends { readonly id: string }>(
  items: readonly T[],
  { filter: _, ...search }: Query,
  of: string,
  source: (item: T) => Attributes,
): SearchPage<T> => pageInMemory(items, search, { of, source, key: ({ id }) => id })

function parseDn(text: string): Dn | undefined {
  try {
    return Dn.parse(text)
  } catch {
    return undefined
  }
}
