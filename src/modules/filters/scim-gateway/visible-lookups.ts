import type { Filter } from '#identity/filter/ast.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { SearchPage } from '#sdk/target.ts'
import { type DeletedMarks, maxNamed } from './deleted-marks.ts'
import { translateFilter } from './filter-translation.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { type FoundGroup, type FoundUser, type Lookups, lookupWidth, type Member, type Query } from './lookups.ts'
import { maxCandidates } from './paged-search.ts'
import { userFilterNames } from './user-filter-names.ts'
import type { UserView } from './user-view.ts'

/** Look-ups that know nothing of users whom a delete workflow only deactivated. */
export class VisibleLookups implements Lookups {
  readonly marks: DeletedMarks
  /** As the target holds them, deleted users included. */
  readonly all: Lookups
  readonly #view: UserView
  /** `active` is shown; otherwise no user can be seen to be inactive. */
  readonly #showsActive: boolean
  /** True where `active` isn't false; undefined where the store can't tell. */
  readonly #notInactive: Filter | undefined

  constructor(all: Lookups, marks: DeletedMarks, config: GatewayConfig, view: UserView) {
    this.all = all
    this.marks = marks
    this.#view = view
    const path = config.users.schema.resolveAttribute('active')
    const shown = [...config.scimPaths.values(), ...config.users.mapping.shown]
    this.#showsActive = path !== undefined && shown.some(({ attribute }) => attribute === path.attribute)
    if (path === undefined) return
    const inactive: ScimFilter = { kind: 'compare', path, operator: 'eq', value: false }
    const { filter, exact } = translateFilter(inactive, userFilterNames({ config, lookups: all }), true)
    this.#notInactive = exact ? filter : undefined
  }

  /** Undefined where it isn't shown. */
  async isActive(found: FoundUser): Promise<boolean | undefined> {
    if (!this.#showsActive) return undefined
    const { active } = await this.#view.resource(found, '')
    return typeof active === 'boolean' ? active : undefined
  }

  async isDeleted(found: FoundUser): Promise<boolean> {
    return (await this.isActive(found)) === false && (await this.marks.has(found))
  }

  async userById(id: string): Promise<FoundUser | undefined> {
    return this.#visible(await this.all.userById(id))
  }

  async userByLogin(login: string): Promise<FoundUser | undefined> {
    return this.#visible(await this.all.userByLogin(login))
  }

  /** `byPosition`: the `next` of the page is asked for, and has to hold while users are deleted. */
  async searchUsers(query: Query, byPosition = false): Promise<SearchPage<FoundUser>> {
    const marked = this.#showsActive ? await this.marks.filter(this.names.userId[0] ?? '') : undefined
    if (marked === undefined) return this.all.searchUsers(query)
    const page = byPosition && this.marks.filterVaries ? await this.#pageByPosition(query, marked) : undefined
    if (page !== undefined) return page
    if (marked === 'many') return this.#searchHere(query)
    const filters: Filter[] = [{ kind: 'not', filter: marked }]
    if (this.#notInactive !== undefined) filters.push(this.#notInactive)
    const visible: Filter = { kind: 'or', filters }
    const filter: Filter = query.filter === undefined ? visible : { kind: 'and', filters: [query.filter, visible] }
    return this.all.searchUsers({ ...query, filter })
  }

  async members(found: FoundGroup, names: boolean): Promise<readonly Member[]> {
    const members = await this.all.members(found, names)
    if (!this.#showsActive) return members
    const marked = await this.marks.among(members.filter(({ type }) => type === 'User'))
    if (marked.length === 0) return members
    const deleted = new Set<string>()
    await inParallel(marked, lookupWidth, async ({ id }) => {
      if ((await this.userById(id)) === undefined) deleted.add(id)
    })
    return members.filter(({ id, type }) => type !== 'User' || !deleted.has(id))
  }

  groupById(id: string, members: boolean): Promise<FoundGroup | undefined> {
    return this.all.groupById(id, members)
  }

  groupByName(name: string): Promise<FoundGroup | undefined> {
    return this.all.groupByName(name)
  }

  searchGroups(query: Query): Promise<SearchPage<FoundGroup>> {
    return this.all.searchGroups(query)
  }

  isMember(found: FoundGroup, member: FoundUser): Promise<boolean> {
    return this.all.isMember(found, member)
  }

  groupsOf(member: FoundUser): Promise<readonly FoundGroup[]> {
    return this.all.groupsOf(member)
  }

  readVersion(found: FoundUser | undefined, joinedOrLeft?: FoundGroup) {
    return this.all.readVersion(found, joinedOrLeft)
  }

  containing(ids: readonly string[]) {
    return this.all.containing(ids)
  }

  withIndirectGroups(users: readonly FoundUser[]): Promise<readonly FoundUser[]> {
    return this.all.withIndirectGroups(users)
  }

  get ids(): Lookups['ids'] {
    return this.all.ids
  }

  get nestsGroups(): boolean {
    return this.all.nestsGroups
  }

  get servedTimes(): Lookups['servedTimes'] {
    return this.all.servedTimes
  }

  get groupIdIsName(): boolean {
    return this.all.groupIdIsName
  }

  get keepsVersions(): boolean {
    return this.all.keepsVersions
  }

  get renamesUsers(): boolean {
    return this.all.renamesUsers
  }

  get names(): Lookups['names'] {
    return this.all.names
  }

  async #visible(found: FoundUser | undefined): Promise<FoundUser | undefined> {
    return found === undefined || (await this.isDeleted(found)) ? undefined : found
  }

  /**
   * Positions of the target belong to a filter, which must not change with every user who is deleted: the target is asked
   * without the marks, and a page may have fewer users than asked for. Undefined where the target gives no positions.
   */
  async #pageByPosition(query: Query, marked: Filter | 'many'): Promise<SearchPage<FoundUser> | undefined> {
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

  async #visibleTotal({ filter }: Query, total: number, marked: Filter | 'many'): Promise<number> {
    if (marked === 'many') {
      return (await this.#searchHere({ ...(filter === undefined ? {} : { filter }), offset: 0, limit: 1 })).total
    }
    const both: Filter = filter === undefined ? marked : { kind: 'and', filters: [filter, marked] }
    const { items } = await this.all.searchUsers({ filter: both, offset: 0, limit: maxNamed })
    return total - (await this.#deletedAmong(items)).size
  }

  async #deletedAmong(users: readonly FoundUser[]): Promise<ReadonlySet<FoundUser>> {
    const marked = await this.marks.among(users)
    const inactive = await Promise.all(
      marked.map(async (user) => ((await this.isActive(user)) === false ? [user] : [])),
    )
    return new Set(inactive.flat())
  }

  /** Reads everything that matches, where there are more deleted users than the target can be asked to leave out. */
  async #searchHere({ offset, limit, after, ...query }: Query): Promise<SearchPage<FoundUser>> {
    if (after !== undefined) throw new GatewayError('BAD_REQUEST', 'a position from before so many users were deleted')
    const found: FoundUser[] = []
    for (let place: Pick<Query, 'offset' | 'after'> | undefined = { offset: 0 }; place !== undefined; ) {
      const { items, total, next }: SearchPage<FoundUser> = await this.all.searchUsers({
        ...query,
        ...place,
        limit: 1000,
      })
      if (total > maxCandidates) {
        const text = 'Too many deleted users are still in the target, so lists of its users cannot leave them out.'
        throw scimError('tooMany', `${text} Have the delete workflow delete users, or set deletedAttributeName.`)
      }
      found.push(...items)
      if (items.length === 0 || found.length >= total) place = undefined
      else place = next === undefined ? { offset: found.length } : { offset: 0, after: next }
    }
    const deleted = await this.#deletedAmong(found)
    const visible = found.filter((user) => !deleted.has(user))
    return { items: visible.slice(offset, offset + limit), total: visible.length }
  }
}
