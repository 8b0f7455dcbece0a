import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { User } from '#identity/user.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { secretHash } from '#kernel/ids.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { SearchPage } from '#sdk/target.ts'
import { translateFilter, userFilterNames } from './filter-translation.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { maxCandidates } from './lists.ts'
import { type FoundGroup, type FoundUser, type Lookups, lookupWidth, type Member, type Query } from './lookups.ts'
import type { UserMapping } from './user-mapping.ts'

/** Lookups without the users that a delete workflow only deactivated. */
export class VisibleLookups implements Lookups {
  readonly marks: DeletedMarks
  /** With the deleted users. */
  readonly all: Lookups
  readonly #view: UserMapping
  /** Whether `active` is shown; otherwise no user is known to be inactive. */
  readonly #showsActive: boolean
  /** Matches users whose `active` is not false; undefined if the store cannot evaluate that. */
  readonly #notInactive: Filter | undefined

  constructor(all: Lookups, marks: DeletedMarks, config: GatewayConfig, view: UserMapping) {
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

  /** Undefined if `active` is not shown. */
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

  /** With `byPosition`, the `next` of the page must stay valid while users are deleted. */
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
   * Positions of the target belong to a filter, which must not change with every delete. So the search does not exclude the
   * marks, and a page may have fewer users than requested. Undefined if the target has no positions.
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

  /** Reads all matches, if there are more deleted users than a filter of the target can exclude. */
  async #searchHere({ offset, limit, after, ...query }: Query): Promise<SearchPage<FoundUser>> {
    if (after !== undefined)
      throw new GatewayError('BAD_REQUEST', 'the position is older than the delete of many users')
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
  /** Matches the marked users; undefined if there are none, `many` if there are more than a filter can name. */
  filter(idAttribute: string): Promise<Filter | 'many' | undefined>
  /** The filter changes with every mark, and `among` finds the marked users. */
  readonly filterVaries: boolean
  /** Those of the users that may be marked. */
  among<T extends { readonly id: string }>(users: readonly T[]): Promise<readonly T[]>
}

/** The most users that a filter names: half of the clauses that stores accept, which leaves room for the client's filter. */
export const maxNamed = 100
const marksPage = 1000

/**
 * Marks in the database of Gatehouse, shared by all processes and all gateways on the same target. Each mark is a user of
 * a directory. Its login is a hash, since ids may be longer than logins and are case-sensitive.
 */
export class StoredMarks implements DeletedMarks {
  readonly filterVaries = true
  readonly #marks: Pick<UserDirectory, 'findByLogin' | 'searchUsers' | 'create' | 'delete'>
  readonly #clock: Clock

  constructor(marks: Pick<UserDirectory, 'findByLogin' | 'searchUsers' | 'create' | 'delete'>, clock: Clock) {
    this.#marks = marks
    this.#clock = clock
  }

  async has({ id }: FoundUser): Promise<boolean> {
    return (await this.#marks.findByLogin(secretHash(id))) !== undefined
  }

  marked(user: User): User {
    return user
  }

  async set({ id, user }: FoundUser): Promise<void> {
    const deleted = this.#clock().toISOString()
    const attributes = Attributes.from({ id: [id], login: [user.userID], deleted: [deleted] })
    try {
      await this.#marks.create({ userID: secretHash(id), attributes, groups: [] })
    } catch (error) {
      // Another process set the same mark.
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
    }
  }

  clearedFor(): readonly string[] {
    return []
  }

  async remove(id: string): Promise<void> {
    await this.#marks.delete(secretHash(id))
  }

  async filter(idAttribute: string): Promise<Filter | 'many' | undefined> {
    const { items, total } = await this.#marks.searchUsers({ offset: 0, limit: maxNamed })
    if (total === 0) return undefined
    if (total > maxNamed) return 'many'
    const filters = items.map(({ attributes }): Filter => {
      return { kind: 'equal', attribute: idAttribute, value: attributes.first('id') ?? '', caseExact: true }
    })
    return { kind: 'or', filters }
  }

  async among<T extends { readonly id: string }>(users: readonly T[]): Promise<readonly T[]> {
    if (users.length === 0) return []
    const ids = new Set<string>()
    let place: { readonly after?: string } | undefined = {}
    while (place !== undefined) {
      const { items, next } = await this.#marks.searchUsers({ offset: 0, limit: marksPage, ...place })
      for (const { attributes } of items) ids.add(attributes.first('id') ?? '')
      place = next === undefined ? undefined : { after: next }
    }
    return ids.size === 0 ? [] : users.filter(({ id }) => ids.has(id))
  }
}

/** Marks in an attribute of the target (`deletedAttributeName`), which the workflows write. */
export class AttributeMarks implements DeletedMarks {
  readonly filterVaries = false
  readonly #attribute: string
  readonly #clock: Clock

  constructor(attribute: string, clock: Clock) {
    this.#attribute = attribute
    this.#clock = clock
  }

  async has({ user }: FoundUser): Promise<boolean> {
    return user.attributes.has(this.#attribute)
  }

  marked(user: User): User {
    const attributes = user.attributes.clone()
    attributes.set(this.#attribute, [this.#clock().toISOString()])
    return { ...user, attributes }
  }

  async set({ user }: FoundUser): Promise<void> {
    if (user.attributes.has(this.#attribute)) return
    const text = `the delete workflow deactivated the user and did not write "${this.#attribute}"`
    throw new GatewayError('WORKFLOW_FAILED', text, {
      publicText:
        'The delete workflow deactivated the user, but did not write the attribute of deletedAttributeName, so the user would still be shown. Add the attribute to the workflow.',
    })
  }

  clearedFor({ attributes }: User): readonly string[] {
    return attributes.has(this.#attribute) ? [this.#attribute] : []
  }

  async remove(): Promise<void> {}

  async filter(): Promise<Filter | undefined> {
    return { kind: 'present', attribute: this.#attribute }
  }

  /** Members are read without their attributes, so the delete workflow must end the memberships. */
  async among<T extends { readonly id: string }>(): Promise<readonly T[]> {
    return []
  }
}
