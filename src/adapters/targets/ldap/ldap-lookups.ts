import { groupCollection, userCollection } from '#adapters/targets/shared/collections.ts'
import type { GroupReadOptions } from '#identity/account-store.ts'
import { timeAttribute, timeAttributes, valueMillis } from '#identity/entry-times.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { filterAttributes, mapFilter, narrowFilter } from '#identity/filter/rewrite-filter.ts'
import type { Group } from '#identity/group.ts'
import { type Collection, type Ordered, orderInMemory, pageOf } from '#identity/paging.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isAttributeDescription, type LdapEntry } from '#protocols/ldap/ldap-entry.ts'
import type { LdapFilter } from '#protocols/ldap/ldap-filter.ts'
import type { LdapSearch } from '#protocols/ldap/ldap-server.ts'
import type { ServerSchema } from '#protocols/ldap/server-schema.ts'
import type { LookupTarget, Target } from '#sdk/target/target.ts'
import { both, generalizedText, idOf, idValue, type LdapTree, type ReadEntry, readValues } from './ldap-tree.ts'
import { narrowedLeaf } from './narrowed-leaf.ts'

/** A search with at most this many results reads them whole; a longer one reads the requested page only. */
const smallAnswer = 200
const readWidth = 50
const everything: Filter = { kind: 'and', filters: [] }

/** A kind of entry, as searches see it. */
interface Shelf<T> {
  readonly base: string
  readonly filter: LdapFilter
  /** The server's names, by ours in lower case. Undefined: the server can't filter by it, so this target does. */
  readonly names: ReadonlyMap<string, string | undefined>
  /** The same, with the attributes to read for finishing the filter here. */
  readonly reads: ReadonlyMap<string, string>
  readonly collection: Collection<T>
  /** The attribute that identifies an entry. */
  readonly key: string
  /** The attributes of a whole entry. */
  attributes(asked: readonly string[]): string[]
  /** Made from only the attributes of the filter and the order. */
  sketch(entry: ReadEntry): T
  /** Data that is not in the entry itself, if the filter needs it. */
  related(entry: ReadEntry, names: ReadonlySet<string>): Promise<Partial<T> | undefined>
  whole(entry: ReadEntry, query: SearchQuery): Promise<T>
}

/** The attributes with the times, by their reserved names in lower case. */
const readTimes = [
  ['meta.created', 'createTimestamp'],
  ['meta.lastmodified', 'modifyTimestamp'],
] as const

/** The server gets only the bounds of times. */
const unaskedTimes = readTimes.map(([name]) => [name, undefined] as const)

/** The server finds candidates; this target decides which of them match, and sorts them. */
export function lookupsOf(tree: LdapTree, answers: LongAnswers): Omit<LookupTarget, keyof Target> {
  const { layout } = tree
  const users: Shelf<User> = {
    base: layout.users.base.toString(),
    filter: tree.userFilter,
    names: new Map([
      ['userid', layout.users.login],
      ['id', layout.id ?? layout.users.login],
      ['groups', undefined],
      ...unaskedTimes,
    ]),
    reads: new Map([
      ['userid', layout.users.login],
      ['id', layout.id ?? layout.users.login],
      ...(layout.groups.memberOf === undefined ? [] : [['groups', layout.groups.memberOf] as const]),
      ...readTimes,
    ]),
    collection: userCollection,
    key: layout.users.login,
    attributes: (asked) => tree.userAttributes(asked),
    sketch: (entry) => {
      const own = idOf(entry, layout)
      const known = { userID: tree.loginOf(entry), attributes: entry.all, groups: [], ...tree.timesOf(entry) }
      return own === undefined ? known : { ...known, id: own }
    },
    related: async (entry, names) => (names.has('groups') ? { groups: (await tree.groupsOf(entry)).names } : undefined),
    whole: (entry, { attributes }) => tree.toUser(entry, attributes),
  }
  const groups: Shelf<Group> = {
    base: layout.groups.base.toString(),
    filter: tree.groupFilter,
    names: new Map([
      ['name', layout.groups.name],
      ['id', layout.id ?? layout.groups.name],
      ['members', undefined],
      ...unaskedTimes,
    ]),
    reads: new Map([
      ['name', layout.groups.name],
      ['id', layout.id ?? layout.groups.name],
      ['members', layout.groups.member],
      ...readTimes,
    ]),
    collection: groupCollection,
    key: layout.groups.name,
    attributes: (asked) => tree.groupAttributes(asked),
    sketch: (entry) => {
      const name = entry.all.first(layout.groups.name) ?? entry.dn
      return { name, id: idOf(entry, layout) ?? name, members: [], attributes: entry.all, ...tree.timesOf(entry) }
    },
    related: async (entry, names) => (names.has('members') ? tree.membersOf(entry) : undefined),
    whole: (entry) => tree.toGroup(entry, { members: false }),
  }
  const user = async (entry: ReadEntry | undefined) => (entry === undefined ? undefined : tree.toUser(entry))
  const group = async (
    by: { readonly name: string } | { readonly id: string },
    options: GroupReadOptions = { members: true },
  ) => {
    const whole = () => ('name' in by ? tree.groupEntry(by.name) : tree.groupEntryById(by.id))
    const entry = options.members ? await whole() : await tree.groupWithoutMembers(by)
    return entry === undefined ? undefined : tree.toGroup(entry, options)
  }
  const schemaFor = async ({ filter }: SearchQuery) => (filter === undefined ? undefined : tree.schema())
  return {
    groupMembersAreIds: false,
    userIdIsLogin: layout.id === undefined,
    groupHasOwnId: layout.id !== undefined,
    idsAreUnique: isUniqueInServer(layout.id),
    servedTimes: { users: timeAttributes, groups: timeAttributes },
    lookupUserByLogin: async (login) => user(await tree.userEntry(login)),
    lookupUserById: async (given) =>
      user(layout.id === undefined ? await tree.userEntry(given) : await tree.userEntryById(given)),
    searchUsers: async (query) => search(tree, users, query, answers, await schemaFor(query)),
    lookupGroupByName: (name, options) => group({ name }, options),
    lookupGroupById: (given, options) => group(layout.id === undefined ? { name: given } : { id: given }, options),
    searchGroups: async (query) => search(tree, groups, query, answers, await schemaFor(query)),
  }
}

async function search<T>(
  tree: LdapTree,
  shelf: Shelf<T>,
  query: SearchQuery,
  answers: LongAnswers,
  schema: ServerSchema | undefined,
): Promise<SearchPage<T>> {
  const { filter = everything, sort } = query
  const names = filterAttributes(filter)
  if (sort !== undefined) names.add(sort.attribute.toLowerCase())
  const compared = Array.from(names, (name) => shelf.reads.get(name) ?? name).filter(isAttributeDescription)
  const wanted = shelf.attributes([...compared, ...(query.attributes ?? ['*'])])
  const request: LdapSearch = {
    base: shelf.base,
    scope: 'sub',
    filter: both(shelf.filter, wireFilter(tree, shelf, filter, schema)),
    attributes: wanted,
  }
  const order = async (found: readonly LdapEntry[]) =>
    orderInMemory(await sketches(tree, shelf, found, names), query, placed(shelf))
  const key = JSON.stringify([shelf.collection.of, query.filter, sort])
  // A search for recent changes must see those of other clients of the server.
  const isDelta = timeAttributes.some((name) => names.has(name.toLowerCase()))
  if (isDelta && query.offset === 0 && query.after === undefined) answers.drop(key)
  const few = answers.recall(key) === undefined ? await fewer(tree, shelf, request, filter) : undefined
  if (few !== undefined) {
    const page = pageOf(await order(few), query)
    return { ...page, items: await inParallel(page.items, readWidth, ({ entry }) => shelf.whole(entry, query)) }
  }
  const long = await answers.read(key, async () => {
    const { scope, all } = await order(await everyOne(tree, { ...request, attributes: [shelf.key, ...compared] }))
    return { scope, all: all.map(({ item, ...place }) => ({ ...place, item: item.entry.dn })) }
  })
  const page = pageOf(long, query)
  const items = await inParallel(page.items, readWidth, async (dn) => {
    const entry = await tree.entryAt(dn, wanted)
    if (entry === undefined) return []
    // It may have changed since the order was read.
    const item = await sketch(shelf, entry, names)
    return matches(filter, shelf.collection.source(item)) ? [await shelf.whole(entry, query)] : []
  })
  return { ...page, items: items.flat() }
}

/** Identifiers that servers give to every kind of entry. Values of other attributes may repeat. */
const uniqueInServer = new Set(['entryuuid', 'objectguid', 'objectsid', 'nsuniqueid', 'ipauniqueid', 'ibm-entryuuid'])

const isUniqueInServer = (id: string | undefined): boolean => id !== undefined && uniqueInServer.has(id.toLowerCase())

interface Sketched<T> {
  readonly entry: ReadEntry
  readonly item: T
}

const placed = <T>({ collection }: Shelf<T>): Collection<Sketched<T>> => ({
  of: collection.of,
  source: ({ item }) => collection.source(item),
  key: ({ item }) => collection.key(item),
})

const sketches = <T>(tree: LdapTree, shelf: Shelf<T>, found: readonly LdapEntry[], names: ReadonlySet<string>) =>
  inParallel(found, readWidth, async (one): Promise<Sketched<T>> => {
    const entry = readValues(one, tree.layout)
    return { entry, item: await sketch(shelf, entry, names) }
  })

async function sketch<T>(shelf: Shelf<T>, entry: ReadEntry, names: ReadonlySet<string>): Promise<T> {
  return { ...shelf.sketch(entry), ...(await shelf.related(entry, names)) }
}

/** All candidates, if they are few; undefined if they are many. */
async function fewer<T>(
  { server }: LdapTree,
  shelf: Shelf<T>,
  request: LdapSearch,
  filter: Filter,
): Promise<readonly LdapEntry[] | undefined> {
  if (isPoint(filter, shelf)) return server.find(request)
  const { entries, more } = await server.findMany(request, smallAnswer)
  return more ? undefined : entries
}

async function everyOne({ server, layout }: LdapTree, request: LdapSearch): Promise<readonly LdapEntry[]> {
  const { entries, more } = await server.findMany(request, layout.maxEntries)
  if (!more) return entries
  throw new GatewayError('BAD_REQUEST', `more than ${layout.maxEntries} entries match`, {
    publicText: 'The filter matches too many entries.',
    keyword: 'tooMany',
  })
}

/** A filter that finds one entry at most. */
function isPoint(filter: Filter, { names }: Pick<Shelf<unknown>, 'names'>): boolean {
  if (filter.kind !== 'equal') return false
  const name = filter.attribute.toLowerCase()
  return name === 'id' || (names.has(name) && names.get(name) !== undefined)
}

/** Bounds that contain the times of all matches, to the second, which all servers compare alike. */
function timeBounds(layout: LdapTree['layout'], filter: Filter): LdapFilter[] {
  if (filter.kind === 'and') return filter.filters.flatMap((part) => timeBounds(layout, part))
  if (filter.kind === 'or' || filter.kind === 'not' || filter.kind === 'present' || filter.kind === 'substring')
    return []
  const name = timeAttribute(filter.attribute)
  const millis = valueMillis(filter.value)
  if (name === undefined || millis === undefined) return []
  const attribute = name === 'meta.created' ? layout.times.created : layout.times.modified
  const from: LdapFilter = { kind: 'greaterOrEqual', attribute, value: generalizedText(millis) }
  const to: LdapFilter = { kind: 'lessOrEqual', attribute, value: generalizedText(millis + 1000) }
  if (filter.kind === 'greater' || filter.kind === 'greaterOrEqual') return [from]
  return filter.kind === 'less' || filter.kind === 'lessOrEqual' ? [to] : [from, to]
}

/** The filter for the server, with its own names, and wide enough to miss nothing. */
function wireFilter(
  tree: LdapTree,
  { names }: Pick<Shelf<unknown>, 'names'>,
  filter: Filter,
  schema: ServerSchema | undefined,
): LdapFilter {
  const { layout } = tree
  const renamed = mapFilter(narrowFilter(filter), (leaf) => {
    const key = leaf.attribute.toLowerCase()
    if (!names.has(key)) return leaf
    const attribute = names.get(key)
    return attribute === undefined ? everything : { ...leaf, attribute }
  })
  return both(...timeBounds(layout, filter), toBytes(narrowFilter(renamed)))

  function toBytes(narrow: ReturnType<typeof narrowFilter>): LdapFilter {
    if (narrow.kind === 'and' || narrow.kind === 'or')
      return { kind: narrow.kind, filters: narrow.filters.map(toBytes) }
    if (narrow.kind === 'not' || narrow.kind === 'present') return narrow
    const isBinary = layout.binary.has(narrow.attribute.toLowerCase())
    if (!isBinary) return narrowedLeaf(narrow, schema)
    const value = narrow.kind === 'equal' ? binaryValue(narrow.attribute, narrow.value) : undefined
    return value === undefined
      ? { kind: 'present', attribute: narrow.attribute }
      : { kind: 'equal', attribute: narrow.attribute, value }
  }

  function binaryValue(attribute: string, value: string): string | Buffer | undefined {
    return attribute.toLowerCase() === layout.id?.toLowerCase() ? idValue(value, layout) : Buffer.from(value, 'base64')
  }
}

/** The most names that are cached, of all answers together. */
const maxNames = 250_000
const maxKeyLength = 10_000

/**
 * Caches the names of the entries of long answers, in order, for a short time: servers have no pages by number, so each
 * page would cost a pass over everything. Concurrent searches with the same filter share a pass.
 */
export class LongAnswers {
  readonly #millis: number
  readonly #now: () => number
  readonly #answers = new Map<string, { readonly names: Ordered<string>; readonly until: number }>()
  readonly #underWay = new Map<string, Promise<Ordered<string>>>()
  #writes = 0
  #sweeper: NodeJS.Timeout | undefined

  constructor(millis: number, now: () => number = () => performance.now()) {
    this.#millis = millis
    this.#now = now
  }

  /** Undefined when nothing recent is cached. */
  recall(key: string): Ordered<string> | undefined {
    const answer = this.#answers.get(key)
    if (answer !== undefined && answer.until > this.#now()) return answer.names
    this.#answers.delete(key)
    return undefined
  }

  read(key: string, pass: () => Promise<Ordered<string>>): Promise<Ordered<string>> {
    const known = this.recall(key)
    if (known !== undefined) return Promise.resolve(known)
    const shared = this.#underWay.get(key)
    if (shared !== undefined) return shared
    const writes = this.#writes
    const reading = pass()
      .then((names) => {
        if (writes === this.#writes) this.#keep(key, names)
        return names
      })
      .finally(() => {
        if (this.#underWay.get(key) === reading) this.#underWay.delete(key)
      })
    this.#underWay.set(key, reading)
    return reading
  }

  /** Forgets one answer, so that it is read again. */
  drop(key: string): void {
    this.#answers.delete(key)
    this.#underWay.delete(key)
  }

  /** Called after every change, so that later searches see it. */
  forget(): void {
    this.#writes++
    this.#answers.clear()
    this.#underWay.clear()
  }

  close(): void {
    clearTimeout(this.#sweeper)
    this.forget()
  }

  #keep(key: string, names: Ordered<string>): void {
    if (this.#millis === 0 || key.length > maxKeyLength || names.all.length > maxNames) return
    let total = names.all.length
    for (const { names: other } of this.#answers.values()) total += other.all.length
    for (const [oldest, { names: other }] of this.#answers) {
      if (total <= maxNames) break
      this.#answers.delete(oldest)
      total -= other.all.length
    }
    this.#answers.set(key, { names, until: this.#now() + this.#millis })
    clearTimeout(this.#sweeper)
    this.#sweeper = setTimeout(() => this.#answers.clear(), this.#millis).unref()
  }
}
