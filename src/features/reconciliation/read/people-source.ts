import type { ReconciliationSource } from '#config/configuration/configuration.ts'
import type { AccountName } from '#features/reconciliation/plan/difference.ts'
import { type Directory, type DirectoryEntry, entryId, idAttributes } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { userEntrySource } from '#identity/entry-source.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { groupNamesOf } from '#identity/group-names.ts'
import type { SearchQuery, SortOrder } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { hasLookups, type LookupTarget, type TargetSource } from '#sdk/target/target.ts'
import type { Page } from './whole-pages.ts'

/** Users per page. */
export const pageSize = 500
const width = 8
/** Of one value. Two are ambiguous already. */
const mostFound = 11

/** Reads the people of a source. Those outside of its filter and groups may be among them: see `isInScope`. */
export interface PeopleSource {
  /** For errors. */
  readonly what: string
  /** Ids are the logins. */
  readonly hasIds: boolean
  page(after: string | undefined, attributes: readonly string[] | undefined): Promise<Page<User>>
  /** The same in the order of logins, if the source has it. */
  sortedPage?(after: string | undefined, attributes: readonly string[] | undefined): Promise<Page<User>>
  count(): Promise<number | undefined>
  find(name: AccountName): Promise<User | undefined>
  /** People with a value; `userID` and `id` are their own. Letter case counts only if it is exact. At most eleven. */
  having(attribute: string, value: string, caseExact?: boolean): Promise<readonly User[]>
}

/** Whether a person of the source should have an account. Entries without a login are not people. */
export const isInScope = ({ filter, groups }: Pick<ReconciliationSource, 'filter' | 'groups'>, user: User): boolean =>
  user.userID !== '' &&
  (filter === undefined || matches(filter, userEntrySource(user))) &&
  isMember(user.groups, groups)

/** Whether one of the groups is named, or none is required. */
export function isMember(groups: readonly string[], required: readonly string[]): boolean {
  if (required.length === 0) return true
  const names = new Set(required.map((name) => name.toLowerCase()))
  return groups.some((name) => names.has(name.toLowerCase()))
}

export function openPeople(
  source: ReconciliationSource,
  targets: TargetSource,
  directory: Directory,
  readsGroups: boolean,
): PeopleSource {
  if (source.kind === 'directory') return new DirectoryPeople(source, directory, readsGroups)
  return targetPeople(source, lookupTarget(targets, source.name))
}

/** Throws NOT_SUPPORTED if the target has no look-ups. */
export function lookupTarget(targets: TargetSource, name: string): LookupTarget {
  const target = targets.get(name)
  if (hasLookups(target)) return target
  const text = `Target "${name}" has no look-ups, so its accounts cannot be compared.`
  throw new GatewayError('NOT_SUPPORTED', text, { publicText: text })
}

/** The name of an account of a target in plans. */
export const nameOf = ({ id, userID }: User, target: Pick<LookupTarget, 'userIdIsLogin'>): AccountName =>
  id === undefined || target.userIdIsLogin ? { login: userID } : { id, login: userID }

function targetPeople(
  { name, filter }: ReconciliationSource & { readonly kind: 'target' },
  target: LookupTarget,
): PeopleSource {
  return {
    what: `the source "${name}"`,
    hasIds: !target.userIdIsLogin,
    page: (after, attributes) => targetPage(target, after, { filter, attributes }),
    ...(target.sortsLogins === true && {
      sortedPage: (after, attributes) => targetPage(target, after, { filter, attributes, sort: byLogin }),
    }),
    count: async () => (await target.searchUsers({ filter, offset: 0, limit: 1, attributes: [] })).total,
    find: (wanted) => findAccount(target, wanted),
    having: (attribute, value, caseExact) => accountsHaving(target, attribute, value, caseExact),
  }
}

/** In the order of `compareSortKeys`. */
export const byLogin: SortOrder = { attribute: 'userID', descending: false, caseExact: false }

export const targetPage = async (
  target: LookupTarget,
  after: string | undefined,
  query: Pick<SearchQuery, 'filter' | 'attributes' | 'sort'>,
): Promise<Page<User>> =>
  target.searchUsers({ ...query, offset: 0, limit: pageSize, after, uncounted: after !== undefined })

/** By its id, or else by its login. */
export async function findAccount(target: LookupTarget, { id, login }: AccountName): Promise<User | undefined> {
  if (id === undefined || target.userIdIsLogin) return target.lookupUserByLogin(id ?? login)
  return target.lookupUserById(id)
}

/** At most eleven. */
export async function accountsHaving(
  target: LookupTarget,
  attribute: string,
  value: string,
  caseExact = false,
): Promise<readonly User[]> {
  if (attribute === 'userID') {
    const found = await target.lookupUserByLogin(value)
    return found === undefined ? [] : [found]
  }
  const filter: Filter = { kind: 'equal', attribute, value, caseExact }
  return (await target.searchUsers({ filter, offset: 0, limit: mostFound })).items
}

/** Entries of the virtual directory with a login. In some directories groups have one too: they get an empty one here. */
class DirectoryPeople implements PeopleSource {
  readonly what: string
  readonly hasIds = true
  readonly #source: ReconciliationSource & { readonly kind: 'directory' }
  readonly #directory: Directory
  readonly #readsGroups: boolean
  readonly #isPerson: Filter

  constructor(
    source: ReconciliationSource & { readonly kind: 'directory' },
    directory: Directory,
    readsGroups: boolean,
  ) {
    this.what = `the directory below "${source.base}"`
    this.#source = source
    this.#directory = directory
    this.#readsGroups = readsGroups
    this.#isPerson = { kind: 'present', attribute: source.login }
  }

  async page(after: string | undefined, attributes: readonly string[] | undefined): Promise<Page<User>> {
    const { base, filter, login } = this.#source
    const asked = attributes && [...new Set([...attributes, login, 'memberOf', 'objectClass'])]
    const page = await this.#directory.page({
      base,
      scope: 'sub',
      filter: and(this.#isPerson, filter),
      limit: pageSize,
      count: after === undefined,
      ...(asked === undefined ? {} : { attributes: asked }),
      ...(after === undefined ? {} : { after }),
    })
    return { items: await this.#users(page.entries), total: page.total, next: page.next }
  }

  async count(): Promise<number | undefined> {
    const { base, filter } = this.#source
    const search = { base, scope: 'sub', filter: and(this.#isPerson, filter), limit: 1, count: true } as const
    return (await this.#directory.page(search)).total
  }

  /** By the login first, since not every system of a directory can be searched by ids. */
  async find({ id, login }: AccountName): Promise<User | undefined> {
    const byLogin = await this.having('userID', login)
    const isMeant = (user: User): boolean => id === undefined || user.id === id
    if (id === undefined || byLogin.some(isMeant)) return byLogin.find(isMeant)
    const byId = await inParallel(idAttributes, width, (attribute) => this.having(attribute, id))
    return byId.flat().find(isMeant)
  }

  async having(attribute: string, value: string, caseExact = false): Promise<readonly User[]> {
    const { base, login } = this.#source
    const name = attribute === 'userID' ? login : attribute
    const filter = and(this.#isPerson, { kind: 'equal', attribute: name, value, caseExact })
    const found = await this.#users(await this.#directory.search({ base, scope: 'sub', filter, limit: mostFound }))
    return found.filter(({ userID }) => userID !== '')
  }

  #users(entries: readonly DirectoryEntry[]): Promise<User[]> {
    return inParallel(entries, width, async ({ dn, attributes, id, identity }) => ({
      id: id ?? entryId(attributes) ?? identity,
      userID: matches(isGroup, attributes) ? '' : (attributes.first(this.#source.login) ?? ''),
      attributes,
      groups: this.#readsGroups ? await this.#groupsOf(dn, attributes.values('memberOf')) : [],
    }))
  }

  /** By `memberOf`, or in a directory without it by the members of groups. */
  async #groupsOf(dn: Dn, memberOf: readonly string[]): Promise<readonly string[]> {
    if (memberOf.length === 0) return groupNamesOf(dn, this.#directory)
    return memberOf.flatMap((text) => nameIn(text) ?? [])
  }
}

function nameIn(text: string): string | undefined {
  try {
    return Dn.parse(text).rdns[0]?.[0]?.value
  } catch {
    return undefined
  }
}

const isGroup: Filter = {
  kind: 'or',
  filters: ['groupOfNames', 'groupOfUniqueNames', 'posixGroup', 'group'].map((value) => ({
    kind: 'equal',
    attribute: 'objectClass',
    value,
  })),
}

const and = (first: Filter, second: Filter | undefined): Filter =>
  second === undefined ? first : { kind: 'and', filters: [first, second] }
