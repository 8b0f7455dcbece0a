import { Attributes } from '#identity/attributes.ts'
import type { DirectoryPage, DirectoryPageSearch, InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { CompareFilter, Filter } from '#identity/filter/ast.ts'
import type { AttributeSource } from '#identity/filter/attribute-source.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { filterAttributes } from '#identity/filter/rewrite-filter.ts'
import type { Group } from '#identity/group.ts'
import { withPlainNames } from '#identity/name-attributes.ts'
import { type PageScope, readPosition, unknownPosition, writePosition } from '#identity/paging.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { AccountLayout } from '#sdk/directory/account-layout.ts'
import type { DirectoryInsert, TargetAccount } from '#sdk/directory/directory-insert.ts'
import { type EntryWords, membershipClauses, type Narrowed, narrowFilter } from '#sdk/directory/entry-filter.ts'
import type { LookupTarget } from '#sdk/target/target.ts'

/** What an insert needs of a store of users and groups; every target with lookups has it. */
export type Accounts = Pick<
  LookupTarget,
  'lookupUserByLogin' | 'lookupUserById' | 'searchUsers' | 'lookupGroupByName' | 'searchGroups' | 'groupMembersAreIds'
> &
  Pick<LookupTarget, 'showsGroups'>

/** How many candidates one search reads if the store can't evaluate the filter. */
const maxCandidates = 10_000
const chunk = 500
/** How many entries a membership clause may expand to, and how many such clauses there may be. */
const maxRelated = 1000
const maxClauses = 20
const lookupWidth = 8

const parts = ['people', 'groups'] as const
type Part = (typeof parts)[number]

/** Where a page starts: the part, the position in the store, and how many of its matches to skip. */
interface Place {
  readonly part: Part
  readonly at: Pick<SearchQuery, 'offset' | 'after'>
  readonly skip: number
}

/**
 * A store of users and groups as a part of the directory: users are in one container, groups in another. The
 * containers themselves have no entry.
 */
export class AccountsInsert implements DirectoryInsert {
  readonly #accounts: Accounts
  readonly #layout: AccountLayout
  readonly #shape: EntryShape
  readonly #target: string | undefined

  /** `target`: the name of the target of these accounts, if there is one. */
  constructor(accounts: Accounts, layout: AccountLayout, target?: string) {
    this.#accounts = accounts
    this.#layout = layout
    this.#target = target
    const { groupsAttribute } = layout
    const isStored = groupsAttribute === undefined && accounts.showsGroups === true
    this.#shape = new EntryShape({ ...layout, groupsAttribute: isStored ? 'groups' : groupsAttribute }, isStored)
  }

  /** The login of a name; undefined for a name that no user can have here. */
  loginOf(dn: Dn): string | undefined {
    return leafBelow(this.#layout.people, dn, this.#layout.userAttribute)
  }

  nameOf(login: string): Dn {
    return this.#shape.personName(login)
  }

  entryOf({ target, userID }: TargetAccount): Dn | undefined {
    return target === this.#target ? this.nameOf(userID) : undefined
  }

  personEntry(user: User): InsertEntry {
    return this.#shape.person(user)
  }

  async search(search: DirectoryPageSearch): Promise<DirectoryPage<InsertEntry>> {
    const filter = withPlainNames(search.filter)
    const login = this.loginOf(search.base)
    if (login !== undefined) {
      const user = search.scope === 'one' ? undefined : await this.#accounts.lookupUserByLogin(login)
      return this.#single(user && this.#shape.person(user), 'people', filter)
    }
    const name = this.#groupOf(search.base)
    if (name !== undefined) {
      const members = asksForMembers(search.attributes ?? ['*'], filter)
      const group = search.scope === 'one' ? undefined : await this.#accounts.lookupGroupByName(name, { members })
      const logins = group === undefined || !members ? [] : await this.#logins(group)
      return this.#single(group && this.#shape.group(group, logins), 'groups', filter)
    }
    return search.scope === 'base' ? { entries: [] } : this.#page({ ...search, filter })
  }

  async isMember(group: Dn, member: Dn): Promise<boolean> {
    const name = this.#groupOf(group)
    const login = this.loginOf(member)
    if (name === undefined || login === undefined) return false
    const user = await this.#accounts.lookupUserByLogin(login)
    return user?.groups.some((held) => held.toLowerCase() === name.toLowerCase()) ?? false
  }

  async members(group: Dn, limit: number): Promise<readonly Dn[]> {
    const name = this.#groupOf(group)
    const found = name === undefined ? undefined : await this.#accounts.lookupGroupByName(name)
    if (found === undefined) return []
    const logins = await this.#logins({ ...found, members: found.members.slice(0, limit) })
    return logins.map((login) => this.#shape.personName(login))
  }

  /** Tests the filter with the attribute names of a search for several entries. */
  #single(entry: InsertEntry | undefined, part: Part, filter: Filter): DirectoryPage<InsertEntry> {
    return { entries: entry !== undefined && matches(filter, this.#shape.source(entry, part)) ? [entry] : [] }
  }

  async #page(search: DirectoryPageSearch): Promise<DirectoryPage<InsertEntry>> {
    const scope: PageScope = { of: `${search.scope} ${search.base.key}`, filter: search.filter, sort: undefined }
    const start: Place =
      search.after === undefined ? { part: 'people', at: { offset: 0 }, skip: 0 } : readPlace(scope, search.after)
    const entries: InsertEntry[] = []
    let next: Place | undefined
    const narrowed = new Map<Part, Narrowed>()
    for (const part of parts) narrowed.set(part, await this.#narrow(part, search))
    for (const part of parts.slice(parts.indexOf(start.part))) {
      const place = part === start.part ? start : { part, at: { offset: 0 }, skip: 0 }
      const asked = narrowed.get(part)
      if (asked === undefined || asked.filter === false) continue
      if (entries.length >= search.limit) {
        next = place
        break
      }
      next = await this.#read(place, asked, search.filter, search.limit, entries)
      if (next !== undefined) break
    }
    const total = search.count === true ? await this.#total(narrowed) : undefined
    return {
      entries,
      next: next === undefined ? undefined : writePlace(scope, next),
      total,
    }
  }

  /** Adds to `entries` up to `limit`; returns where to continue, or undefined at the end of the part. */
  async #read(
    start: Place,
    asked: Narrowed,
    filter: Filter,
    limit: number,
    entries: InsertEntry[],
  ): Promise<Place | undefined> {
    let { at, skip } = start
    for (let read = 0; read < maxCandidates; ) {
      const size = asked.exact ? limit - entries.length : chunk
      const page = await this.#store(start.part, { ...query(asked), ...at, limit: size, uncounted: true })
      const found = page.entries.filter(
        (entry) => asked.exact || matches(filter, this.#shape.source(entry, start.part)),
      )
      const room = limit - entries.length
      entries.push(...found.slice(skip, skip + room))
      if (found.length > skip + room) return { part: start.part, at, skip: skip + room }
      if (page.next === undefined) return undefined
      ;[at, skip] = [page.next, 0]
      if (entries.length >= limit) return { part: start.part, at, skip }
      read += page.entries.length
    }
    throw new GatewayError('BAD_REQUEST', `a filter that only ${maxCandidates} candidates and more can answer`, {
      publicText: 'The filter cannot be served: too many entries would have to be read.',
    })
  }

  async #store(part: Part, asked: SearchQuery) {
    if (part === 'people')
      return storePage(await this.#accounts.searchUsers(asked), asked, (one) => this.#shape.person(one))
    return storePage(await this.#accounts.searchGroups(asked), asked, (one) => this.#shape.group(one, []))
  }

  /** Undefined if the store does not know either. */
  async #total(narrowed: ReadonlyMap<Part, Narrowed>): Promise<number | undefined> {
    let total = 0
    for (const [part, asked] of narrowed) {
      if (asked.filter === false) continue
      if (!asked.exact) return undefined
      const one: SearchQuery = { ...query(asked), offset: 0, limit: 1 }
      total += (await (part === 'people' ? this.#accounts.searchUsers(one) : this.#accounts.searchGroups(one))).total
    }
    return total
  }

  async #narrow(part: Part, search: DirectoryPageSearch): Promise<Narrowed> {
    const container = this.#layout[part]
    const covered = search.scope === 'one' ? container.equals(search.base) : container.isWithin(search.base)
    if (!covered) return { filter: false, exact: true }
    const words = this.#shape.words(part)
    const clauses = membershipClauses(search.filter, words)
    if (clauses.length > maxClauses)
      throw new GatewayError('BAD_REQUEST', 'a filter with too many clauses of membership')
    const related = new Map<CompareFilter, readonly string[] | undefined>()
    for (const clause of clauses) {
      if (part === 'people' && clause.attribute.toLowerCase() === this.#shape.groupNames) {
        related.set(clause, await this.#membersNamed(clause.value))
        continue
      }
      const dn = this.#shape.parsedName(clause.value)
      related.set(clause, dn === undefined ? [] : await (part === 'people' ? this.#membersOf(dn) : this.#groupsOf(dn)))
    }
    const narrowed = narrowFilter(search.filter, words, (clause) => related.get(clause))
    if (part === 'groups' && !narrowed.exact) {
      throw new GatewayError('BAD_REQUEST', 'a filter about the members of groups that asks for more than one member', {
        publicText: 'Groups can be searched by one whole member only.',
      })
    }
    return narrowed
  }

  async #membersOf(group: Dn): Promise<readonly string[] | undefined> {
    const name = this.#groupOf(group)
    return name === undefined ? [] : this.#membersNamed(name)
  }

  async #membersNamed(group: string): Promise<readonly string[] | undefined> {
    const found = await this.#accounts.lookupGroupByName(group)
    if (found === undefined) return []
    return found.members.length > maxRelated ? undefined : this.#logins(found)
  }

  async #groupsOf(member: Dn): Promise<readonly string[] | undefined> {
    const login = this.loginOf(member)
    const groups = login === undefined ? [] : ((await this.#accounts.lookupUserByLogin(login))?.groups ?? [])
    return groups.length > maxRelated ? undefined : groups
  }

  async #logins({ members }: Group): Promise<readonly string[]> {
    if (!this.#accounts.groupMembersAreIds) return members
    const users = await inParallel(members, lookupWidth, (id) => this.#accounts.lookupUserById(id))
    return users.flatMap((user) => user?.userID ?? [])
  }

  #groupOf(dn: Dn): string | undefined {
    return leafBelow(this.#layout.groups, dn, this.#layout.groupAttribute)
  }
}

const memberNames: ReadonlySet<string> = new Set(['uniquemember', 'member'])

const asksForMembers = (attributes: readonly string[], filter: Filter): boolean =>
  [...attributes, ...filterAttributes(filter)].some((name) => name === '*' || memberNames.has(name.toLowerCase()))

const query = ({ filter }: Narrowed): { readonly filter?: Filter } => (typeof filter === 'boolean' ? {} : { filter })

/** A store without positions is read by offset. */
function storePage<T>({ items, total, next }: SearchPage<T>, asked: SearchQuery, entry: (item: T) => InsertEntry) {
  const end = asked.offset + items.length
  const byOffset = asked.after === undefined && items.length > 0 && end < total ? { offset: end } : undefined
  return { entries: items.map(entry), next: next === undefined ? byOffset : { offset: 0, after: next } }
}

function writePlace(scope: PageScope, { part, at, skip }: Place): string {
  return writePosition(scope, { entry: part, folded: at.after, exact: String(at.offset), total: skip })
}

function readPlace(scope: PageScope, text: string): Place {
  const { entry, folded: after, exact: offset = '', total: skip = 0 } = readPosition(scope, text)
  const part = parts.find((one) => one === entry)
  if (part === undefined || !/^\d{1,15}$/.test(offset)) throw unknownPosition()
  return { part, at: { offset: Number(offset), after }, skip }
}

const personClasses = ['top', 'person', 'organizationalPerson', 'inetOrgPerson']
const groupClasses = ['top', 'groupOfUniqueNames', 'groupOfNames']
/** The store's own identifier, under its directory name (RFC 4530). */
const idAttribute = 'entryUUID'

/** Users and groups as entries. */
class EntryShape {
  readonly #layout: AccountLayout
  readonly #words: Readonly<Record<'people' | 'groups', EntryWords>>

  /** `isStored`: the store itself can filter by the names of groups. */
  constructor(layout: AccountLayout, isStored: boolean) {
    this.#layout = layout
    const names = (naming: string, ownName: string) =>
      new Map([
        [naming.toLowerCase(), ownName],
        [idAttribute.toLowerCase(), 'id'],
      ])
    this.#words = {
      people: {
        classes: personClasses,
        names: names(layout.userAttribute, 'userID'),
        membership: new Set([
          'memberof',
          ...(layout.groupsAttribute === undefined || isStored ? [] : [this.groupNames]),
        ]),
        ownName: 'userID',
      },
      groups: {
        classes: groupClasses,
        names: names(layout.groupAttribute, 'name'),
        membership: memberNames,
        ownName: 'name',
      },
    }
  }

  /** The attribute with the names of a user's groups, in lower case; empty if there is none. */
  get groupNames(): string {
    return this.#layout.groupsAttribute?.toLowerCase() ?? ''
  }

  words(part: 'people' | 'groups'): EntryWords {
    return this.#words[part]
  }

  personName(login: string): Dn {
    return this.#layout.people.child(this.#layout.userAttribute, login)
  }

  /** Undefined for anything but a distinguished name. */
  parsedName(text: string): Dn | undefined {
    try {
      return Dn.parse(text)
    } catch {
      return undefined
    }
  }

  person(user: User): InsertEntry {
    const attributes = user.attributes.clone()
    attributes.set(this.#layout.userAttribute, [user.userID])
    attributes.set('objectClass', personClasses)
    if (user.id !== undefined) attributes.set(idAttribute, [user.id])
    if (this.#layout.groupsAttribute !== undefined) attributes.set(this.#layout.groupsAttribute, user.groups)
    attributes.set(
      'memberOf',
      user.groups.map((name) => this.#layout.groups.child(this.#layout.groupAttribute, name).toString()),
    )
    return { dn: this.personName(user.userID), attributes, id: user.id }
  }

  group(group: Group, members: readonly string[]): InsertEntry {
    const attributes = group.attributes?.clone() ?? new Attributes()
    attributes.set(this.#layout.groupAttribute, [group.name])
    if (group.description !== undefined) attributes.set('description', [group.description])
    attributes.set('objectClass', groupClasses)
    attributes.set(idAttribute, [group.id])
    attributes.set(
      'uniqueMember',
      members.map((login) => this.personName(login).toString()),
    )
    return { dn: this.#layout.groups.child(this.#layout.groupAttribute, group.name), attributes, id: group.id }
  }

  /** The entry as the store's own filters see it, if it knows an attribute by two names. */
  source({ attributes }: InsertEntry, part: 'people' | 'groups'): AttributeSource {
    const entryNames = new Map(Array.from(this.#words[part].names, ([name, own]) => [own.toLowerCase(), name]))
    return { values: (name) => attributes.values(entryNames.get(name.toLowerCase()) ?? name) }
  }
}

/** The value of the one RDN of this type that `dn` has below `container`; undefined if it is elsewhere. */
function leafBelow(container: Dn, dn: Dn, type: string): string | undefined {
  const [first] = dn.rdns
  const [rdn] = first ?? []
  if (first?.length !== 1 || rdn === undefined || rdn.type.toLowerCase() !== type.toLowerCase()) return undefined
  return dn.parent?.equals(container) ? rdn.value : undefined
}
