import type { ContainingGroup } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import { unaudited } from '#identity/entry-changes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { NamedGroup } from '#identity/group.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { type Awaitable, andThen } from '#kernel/awaitable.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { secretHash } from '#kernel/ids.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'
import type { ServedTimes } from '#sdk/target/target.ts'
import type { ReadVersion } from '#sdk/workflow/workflow.ts'
import { translateFilter, userFilterNames } from './filter-translation.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { maxCandidates } from './lists.ts'
import { type FoundGroup, type FoundUser, type Lookups, lookupWidth, type Member, type ResourceIds } from './lookups.ts'
import type { UserMapping } from './resource-mapping.ts'

/** Lookups without the users that a delete workflow only deactivated. */
export class VisibleLookups implements Lookups {
  /** With these users. */
  readonly all: Lookups
  readonly marks: DeletedMarks
  readonly #users: UserMapping
  /** If `active` is not shown, no user is known to be inactive. */
  readonly #showsActive: boolean
  readonly #notInactive: Filter | undefined

  constructor(all: Lookups, marks: DeletedMarks, config: GatewayConfig, users: UserMapping) {
    this.all = all
    this.marks = marks
    this.#users = users
    const path = config.users.active
    const shown = [...config.scimPaths.values(), ...config.users.mapping.shown]
    this.#showsActive = path !== undefined && shown.some(({ attribute }) => attribute === path.attribute)
    this.#notInactive = notInactiveFilter(all, config)
  }

  /** Undefined if `active` is not shown. */
  isActive(found: FoundUser): Awaitable<boolean | undefined> {
    return this.#showsActive ? this.#users.isActive(found) : undefined
  }

  isDeleted(found: FoundUser): Awaitable<boolean> {
    return andThen(this.isActive(found), (active) => active === false && this.marks.has(found))
  }

  userById(id: string): Awaitable<FoundUser | undefined> {
    return andThen(this.all.userById(id), (found) => this.#visible(found))
  }

  userByLogin(login: string): Awaitable<FoundUser | undefined> {
    return andThen(this.all.userByLogin(login), (found) => this.#visible(found))
  }

  #visible(found: FoundUser | undefined): Awaitable<FoundUser | undefined> {
    return found && andThen(this.isDeleted(found), (deleted) => (deleted ? undefined : found))
  }

  async #deletedAmong(found: readonly FoundUser[]): Promise<ReadonlySet<FoundUser>> {
    const ids = found.length === 0 ? noIds : await this.marks.ids()
    const marked = found.filter(({ id }) => ids.has(id))
    const inactive = await Promise.all(
      marked.map(async (user) => ((await this.isActive(user)) === false ? [user] : [])),
    )
    return new Set(inactive.flat())
  }

  /** With `byPosition`, the `next` of the page must stay valid while users are deleted. */
  async searchUsers(query: SearchQuery, byPosition = false): Promise<SearchPage<FoundUser>> {
    const { all, marks } = this
    const fallback = all.userIdAttribute === undefined ? undefined : all.names.login[0]
    const marked = this.#showsActive ? await marks.filter(all.names.userId[0] ?? '', fallback) : undefined
    if (marked === undefined) return all.searchUsers(query)
    const page = byPosition && marks.filterVaries ? await this.#pageByPosition(query, marked) : undefined
    if (page !== undefined) return page
    if (marked === 'many') return this.#searchHere(query)
    const filters: Filter[] = [{ kind: 'not', filter: marked }]
    if (this.#notInactive !== undefined) filters.push(this.#notInactive)
    const unmarked: Filter = { kind: 'or', filters }
    const filter: Filter = query.filter === undefined ? unmarked : { kind: 'and', filters: [query.filter, unmarked] }
    return all.searchUsers({ ...query, filter })
  }

  /**
   * Positions of the target belong to a filter, which must not change with every delete. So the search does not exclude the
   * marks, and a page may have fewer users than requested. Undefined if the target has no positions.
   */
  async #pageByPosition(query: SearchQuery, marked: Filter | 'many'): Promise<SearchPage<FoundUser> | undefined> {
    if (query.offset > 0) return undefined
    let page = await this.all.searchUsers(query)
    if (query.after === undefined && page.next === undefined && page.items.length < page.total) return undefined
    let deleted = await this.#deletedAmong(page.items)
    while (deleted.size === page.items.length && page.next !== undefined) {
      page = await this.all.searchUsers({ ...query, after: page.next })
      deleted = await this.#deletedAmong(page.items)
    }
    const items = page.items.filter((user) => !deleted.has(user))
    return { ...page, items, total: await this.#visibleTotal(query, page.total, marked) }
  }

  async #visibleTotal({ filter }: SearchQuery, total: number, marked: Filter | 'many'): Promise<number> {
    if (marked === 'many') {
      return (await this.#searchHere({ filter, offset: 0, limit: 1 })).total
    }
    const both: Filter = filter === undefined ? marked : { kind: 'and', filters: [filter, marked] }
    const { items } = await this.all.searchUsers({ filter: both, offset: 0, limit: maxNamed })
    return total - (await this.#deletedAmong(items)).size
  }

  /** Reads all matches, if there are more deleted users than a filter of the target can exclude. */
  async #searchHere({ offset, limit, after, ...query }: SearchQuery): Promise<SearchPage<FoundUser>> {
    if (after !== undefined)
      throw new GatewayError('BAD_REQUEST', 'the position is older than the delete of many users')
    const found: FoundUser[] = []
    for (let place: Pick<SearchQuery, 'offset' | 'after'> | undefined = { offset: 0 }; place !== undefined; ) {
      const page: SearchPage<FoundUser> = await this.all.searchUsers({ ...query, ...place, limit: 1000 })
      const { items, total, next } = page
      if (total > maxCandidates) {
        const text = 'Too many deleted users are still in the target, so lists of its users cannot leave them out.'
        throw scimError('tooMany', `${text} Have the delete workflow delete users, or set deletedAttributeName.`)
      }
      found.push(...items)
      if (items.length === 0 || found.length >= total) place = undefined
      else place = next === undefined ? { offset: found.length } : { offset: 0, after: next }
    }
    const deleted = await this.#deletedAmong(found)
    const rest = found.filter((user) => !deleted.has(user))
    return { items: rest.slice(offset, offset + limit), total: rest.length }
  }

  async members(found: FoundGroup, names: boolean): Promise<readonly Member[]> {
    const present = await this.all.members(found, names)
    if (!this.#showsActive || present.length === 0) return present
    return this.#withoutDeleted(present, await this.marks.ids())
  }

  async *memberPages(found: FoundGroup): AsyncGenerator<readonly Member[]> {
    const ids = this.#showsActive ? await this.marks.ids() : noIds
    for await (const page of this.all.memberPages(found)) yield await this.#withoutDeleted(page, ids)
  }

  async #withoutDeleted(present: readonly Member[], ids: ReadonlySet<string>): Promise<readonly Member[]> {
    const marked = present.filter(({ id, type }) => type === 'User' && ids.has(id))
    if (marked.length === 0) return present
    const deleted = new Set<string>()
    await inParallel(marked, lookupWidth, async ({ id }) => {
      if ((await this.userById(id)) === undefined) deleted.add(id)
    })
    return present.filter(({ id, type }) => type !== 'User' || !deleted.has(id))
  }

  groupById(id: string, members: boolean): Promise<FoundGroup | undefined> {
    return this.all.groupById(id, members)
  }

  groupByName(name: string): Promise<FoundGroup | undefined> {
    return this.all.groupByName(name)
  }

  searchGroups(query: SearchQuery): Promise<SearchPage<FoundGroup>> {
    return this.all.searchGroups(query)
  }

  isMember(found: FoundGroup, member: FoundUser): Promise<boolean> {
    return this.all.isMember(found, member)
  }

  groupsOf(member: FoundUser): Promise<readonly FoundGroup[]> {
    return this.all.groupsOf(member)
  }

  containing(ids: readonly string[]): Promise<ReadonlyMap<string, readonly ContainingGroup[]>> {
    return this.all.containing(ids)
  }

  memberships(found: FoundUser, names?: readonly string[]): Awaitable<readonly NamedGroup[]> {
    return this.all.memberships(found, names)
  }

  withIndirectGroups(users: readonly FoundUser[]): Awaitable<readonly FoundUser[]> {
    return this.all.withIndirectGroups(users)
  }

  readVersion(found: FoundUser | undefined, joinedOrLeft?: FoundGroup): ReadVersion | undefined {
    return this.all.readVersion(found, joinedOrLeft)
  }

  // Read each time: a target may only know some of them once its system has answered.
  get ids(): ResourceIds {
    return this.all.ids
  }

  get names(): Lookups['names'] {
    return this.all.names
  }

  get groupIdIsName(): boolean {
    return this.all.groupIdIsName
  }

  get userIdAttribute(): string | undefined {
    return this.all.userIdAttribute
  }

  get renamesUsers(): boolean {
    return this.all.renamesUsers
  }

  get nestsGroups(): boolean {
    return this.all.nestsGroups
  }

  get keepsVersions(): boolean {
    return this.all.keepsVersions
  }

  get servedTimes(): ServedTimes {
    return this.all.servedTimes
  }

  get ownsValues(): boolean {
    return this.all.ownsValues
  }
}

const noIds: ReadonlySet<string> = new Set()

/** Matches users whose `active` is not false; undefined if the store cannot evaluate that. */
function notInactiveFilter(lookups: Lookups, config: GatewayConfig): Filter | undefined {
  const path = config.users.active
  if (path === undefined) return undefined
  const inactive: ScimFilter = { kind: 'compare', path, operator: 'eq', value: false }
  const { filter, exact } = translateFilter(inactive, userFilterNames({ config, lookups }), true)
  return exact ? filter : undefined
}

/**
 * Marks of users that a delete workflow deactivated instead of deleting. To clients the delete succeeded, so the gateway
 * hides such a user for as long as it is inactive.
 */
export interface DeletedMarks {
  has(found: FoundUser): Promise<boolean>
  /** The user for the delete workflow. */
  marked(user: User): User
  /** Called after the delete workflow. Throws WORKFLOW_FAILED if the mark is not set. */
  set(found: FoundUser): Promise<void>
  /** Attributes that the user workflow must clear to remove the mark. */
  clearedFor(user: User): readonly string[]
  /** Called in addition to the user workflow. */
  remove(id: string): Promise<void>
  /**
   * Matches the marked users; undefined if there are none, `many` if there are more than a filter can name. `fallback` is
   * the attribute with the ids of users that have no value in `idAttribute`, if there may be such users.
   */
  filter(idAttribute: string, fallback?: string): Promise<Filter | 'many' | undefined>
  /** The filter changes with every mark, and `ids` finds the marked users. */
  readonly filterVaries: boolean
  /** The ids of all marked users, if the marks are kept apart from the users. */
  ids(): Promise<ReadonlySet<string>>
}

const markOf = (id: string, values: Readonly<Record<string, readonly string[]>> = {}): User => ({
  userID: secretHash(id),
  attributes: Attributes.from(values),
  groups: [],
})

/** The most users that a filter names: half of the clauses that stores accept, which leaves room for the client's filter. */
const maxNamed = 100
const marksPage = 1000

/**
 * Marks in the database of Gatehouse, shared by all processes and all gateways on the same target. Each mark is a user of
 * a directory. Its login is a hash, since ids may be longer than logins and are case-sensitive.
 */
export function storedMarks(directory: UserDirectory, clock: Clock): DeletedMarks {
  return {
    filterVaries: true,
    has: async ({ id }) => (await directory.lookupUserByLogin(secretHash(id))) !== undefined,
    marked: (user) => user,
    set: async ({ id, user }) => {
      const mark = markOf(id, { id: [id], login: [user.userID], deleted: [clock().toISOString()] })
      try {
        await directory.createUser(mark, mark.attributes.names(), unaudited, { mustBeNew: true })
      } catch (error) {
        // Another process set the same mark.
        if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      }
    },
    clearedFor: () => [],
    remove: async (id) => {
      await directory.deleteUser(markOf(id), unaudited)
    },
    filter: async (idAttribute, fallback) => {
      const { items, total } = await directory.searchUsers({ offset: 0, limit: maxNamed })
      if (total === 0) return undefined
      if (total > (fallback === undefined ? maxNamed : maxNamed / 3)) return 'many'
      const filters = items.flatMap(({ attributes }): Filter[] => {
        const has = { kind: 'equal', value: attributes.first('id') ?? '', caseExact: true } as const
        const byId = { ...has, attribute: idAttribute }
        if (fallback === undefined) return [byId]
        const isAbsent: Filter = { kind: 'not', filter: { kind: 'present', attribute: idAttribute } }
        return [byId, { kind: 'and', filters: [isAbsent, { ...has, attribute: fallback }] }]
      })
      return { kind: 'or', filters }
    },
    ids: async () => {
      const ids = new Set<string>()
      let place: { readonly after?: string } | undefined = {}
      while (place !== undefined) {
        const { items, next } = await directory.searchUsers({ offset: 0, limit: marksPage, ...place })
        for (const { attributes } of items) ids.add(attributes.first('id') ?? '')
        place = next === undefined ? undefined : { after: next }
      }
      return ids
    },
  }
}

/** For a type whose resources cannot be deactivated: a delete workflow has to delete them. */
export const noMarks: DeletedMarks = {
  filterVaries: false,
  has: async () => false,
  marked: (user) => user,
  set: async () => {},
  clearedFor: () => [],
  remove: async () => {},
  filter: async () => undefined,
  ids: async () => noIds,
}

/** Marks in an attribute of the target (`deletedAttributeName`), which the workflows write. */
export const attributeMarks = (attribute: string, clock: Clock): DeletedMarks => ({
  filterVaries: false,
  has: async ({ user }) => user.attributes.has(attribute),
  marked: (user) => {
    const attributes = user.attributes.clone()
    attributes.set(attribute, [clock().toISOString()])
    return { ...user, attributes }
  },
  set: async ({ user }) => {
    if (user.attributes.has(attribute)) return
    const text = `the delete workflow deactivated the user and did not write "${attribute}"`
    throw new GatewayError('WORKFLOW_FAILED', text, {
      publicText:
        'The delete workflow deactivated the user, but did not write the attribute of deletedAttributeName, so the user would still be shown. Add the attribute to the workflow.',
    })
  },
  clearedFor: ({ attributes }) => (attributes.has(attribute) ? [attribute] : []),
  remove: async () => {},
  filter: async () => ({ kind: 'present', attribute }),
  // Members are read without their attributes, so the delete workflow must end the memberships.
  ids: async () => noIds,
})
