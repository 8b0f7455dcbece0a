import type { ComparisonPart } from '#features/reconciliation/plan/difference.ts'
import { compareSortKeys, type SortKey, sortKey } from '#identity/paging.ts'
import type { User } from '#identity/user.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { ComparisonFile, rowKey } from './comparison-file.ts'
import { peoplePart, sparesPart } from './decided-rows.ts'
import { byLogin, findAccount, nameOf, targetPage } from './people-source.ts'
import { type ComparedSystems, policyOf } from './systems.ts'
import { type Page, requireTotal, unreliable } from './whole-pages.ts'

const width = 8
/** Users of one side that wait for the other. Only long logins compare equal. */
const mostWaiting = 20_000
/** Whether both sides can be read in the order of the only thing that connects them. */
export const canMerge = ({ config, source, target, mapping }: ComparedSystems): boolean =>
  config.correlation.every(({ kind }) => kind === 'login') &&
  mapping.loginSource === 'userID' &&
  source.sortedPage !== undefined &&
  target.sortsLogins === true

/** Where a side continues. */
interface SidePlace {
  /** The position of the page with the first user that is not compared yet; absent for the first page. */
  readonly after?: string | undefined
  /** How many users come before that page. */
  readonly seen: number
  readonly total?: number | undefined
  /** Users before this login are compared. */
  readonly from?: string | undefined
  /** Everyone is compared. */
  readonly hasEnded?: boolean | undefined
}

/** One side in the order of logins. */
class SortedSide {
  readonly #what: string
  readonly #read: (after: string | undefined) => Promise<Page<User>>
  readonly #count: () => Promise<number | undefined>
  /** Pages of which users wait, each with where it is. */
  #pages: { readonly after: string | undefined; readonly seen: number; readonly users: readonly User[] }[] = []
  #next: string | undefined
  #seen: number
  #total: number | undefined
  #last: SortKey | undefined
  #from: string | undefined
  #isAtStart = true
  hasEnded: boolean

  constructor(
    what: string,
    read: (after: string | undefined) => Promise<Page<User>>,
    count: () => Promise<number | undefined>,
    place: SidePlace | undefined,
  ) {
    this.#what = what
    this.#read = read
    this.#count = count
    this.#next = place?.after
    this.#seen = place?.seen ?? 0
    this.#total = place?.total
    this.#from = place?.from
    this.hasEnded = place?.hasEnded ?? false
  }

  get place(): SidePlace {
    const [first] = this.#pages
    const position = first ?? { after: this.#next, seen: this.#seen }
    const hasEnded = first === undefined && this.hasEnded
    return { after: position.after, seen: position.seen, total: this.#total, from: this.#from, hasEnded }
  }

  get waiting(): readonly User[] {
    return this.#pages.flatMap(({ users }) => users)
  }

  /** Reads a page. Throws TARGET_FAILED if it is not in order, or if the side ends elsewhere than it says. */
  async readMore(): Promise<void> {
    const after = this.#next
    const { items, total, next } = await this.#read(after)
    if (this.#isAtStart && this.#total === undefined) this.#total = total
    this.#isAtStart = false
    for (const user of items) {
      const key = keyOf(user)
      if (this.#last !== undefined && compareSortKeys(key, this.#last) < 0) {
        throw unreliable(`${this.#what} is not in the order of logins at "${user.userID}"`)
      }
      this.#last = key
    }
    const from = this.#from
    const fresh = from === undefined ? items : items.filter((user) => !isBefore(user, sortKey(from, false)))
    this.#pages.push({ after, seen: this.#seen, users: fresh })
    this.#seen += items.length
    if (next !== undefined && (next === after || items.length === 0)) {
      throw unreliable(`${this.#what} comes to no end: it answered the same page again after ${this.#seen} users`)
    }
    if (this.waiting.length > mostWaiting) throw unreliable(`${this.#what} has too many users with equal logins`)
    this.#next = next
    if (next !== undefined) return
    const now = await this.#count()
    if (this.#total !== undefined && now !== undefined) requireTotal(this.#what, this.#seen, this.#total, now)
    this.hasEnded = true
  }

  /** Takes the users before the login; all without one. */
  take(before: SortKey | undefined, login: string | undefined): User[] {
    const taken = this.waiting.filter((user) => before === undefined || isBefore(user, before))
    const left = this.#pages.map((page) => ({
      ...page,
      users: before === undefined ? [] : page.users.filter((user) => !isBefore(user, before)),
    }))
    this.#pages = left.filter(({ users }) => users.length > 0)
    this.#from = login ?? this.#from
    return taken
  }
}

const keyOf = ({ userID }: User): SortKey => sortKey(userID, false)
const isBefore = (user: User, key: SortKey): boolean => compareSortKeys(keyOf(user), key) < 0

const isAt = (user: User | undefined, key: SortKey | undefined): boolean =>
  user !== undefined && key !== undefined && compareSortKeys(keyOf(user), key) === 0

interface Places {
  readonly stage: 'sorted'
  readonly source: SidePlace
  readonly target: SidePlace
}

/**
 * Compares both sides while they are read in the order of logins, a range at a time. A range is compared once both sides
 * were read beyond it, or to an end that they reported before.
 */
export async function* compareSorted(systems: ComparedSystems, resumeAt?: string): AsyncGenerator<ComparisonPart> {
  const { config, source, target, mapping, signal } = systems
  const given = resumeAt === undefined ? undefined : (JSON.parse(resumeAt) as Partial<Places>)
  const places = given?.stage === 'sorted' ? given : undefined
  const people = new SortedSide(
    source.what,
    async (after) => source.sortedPage?.(after, mapping.personAttributes) ?? { items: [], total: undefined },
    () => source.count(),
    places?.source,
  )
  const accounts = new SortedSide(
    `target "${config.target}"`,
    (after) => targetPage(target, after, { attributes: mapping.accountAttributes, sort: byLogin }),
    async () => (await target.searchUsers({ offset: 0, limit: 1, attributes: [] })).total,
    places?.target,
  )
  for (;;) {
    signal?.throwIfAborted()
    for (const side of [people, accounts]) if (!side.hasEnded && side.waiting.length === 0) await side.readMore()
    const open = [people, accounts].filter((side) => !side.hasEnded)
    const lasts = open.flatMap(({ waiting }) => waiting.at(-1) ?? [])
    const [end] = lasts.toSorted((one, other) => compareSortKeys(keyOf(one), keyOf(other)))
    const before = end && keyOf(end)
    const range = [people.take(before, end?.userID), accounts.take(before, end?.userID)] as const
    if (range[0].length + range[1].length === 0) {
      if (open.length === 0) return
      // Equal logins may continue on the next page of the side that ends the range.
      for (const side of open) if (isAt(side.waiting.at(-1), before)) await side.readMore()
      continue
    }
    const part = await compareRange(systems, ...range)
    const place: Places = { stage: 'sorted', source: people.place, target: accounts.place }
    yield { ...part, resumeAt: JSON.stringify(place) }
  }
}

/** With the people and accounts that links connect with those of the range, which are decided in their own range. */
async function compareRange(
  systems: ComparedSystems,
  people: readonly User[],
  accounts: readonly User[],
): Promise<Omit<ComparisonPart, 'resumeAt'>> {
  const { config, source, target, mapping } = systems
  const keyed = await inParallel(people, width, (user) => mapping.person(user))
  const keys = {
    people: new Set(keyed.map(({ entry }) => rowKey(entry.name))),
    accounts: new Set(accounts.map((user) => rowKey(nameOf(user, target)))),
  }
  const file = new ComparisonFile(config.correlation, !target.userIdIsLogin)
  try {
    const linked = await systems.links(keyed.map(({ entry }) => entry.name.id ?? entry.name.login))
    const found = await inParallel(linked, width, ({ target: id }) =>
      id === undefined ? undefined : findAccount(target, { id, login: id }),
    )
    const all = [...accounts, ...found.filter((user) => user !== undefined)]
    const owners = await systems.linksByTarget(
      all.map((user) => nameOf(user, target)).map(({ id, login }) => id ?? login),
    )
    const others = await inParallel(owners, width, ({ source: id }) =>
      source.find(source.hasIds ? { id, login: id } : { login: id }),
    )
    const present = others.filter((user) => user !== undefined)
    await file.addPeople([...keyed, ...(await inParallel(present, width, (user) => mapping.person(user)))])
    await file.addAccounts(all.map((user) => mapping.account(user)))
    for await (const _ of file.correlate(systems)) systems.signal?.throwIfAborted()
    const policy = policyOf(systems)
    const most = people.length + all.length + present.length
    const ofPeople = peoplePart(
      file.people('', most).filter(({ key }) => keys.people.has(key)),
      policy,
    )
    const spares = sparesPart(
      file.spares('', most).filter(({ key }) => keys.accounts.has(key)),
      policy,
      file.unmapped(),
    )
    const sum = (name: 'source' | 'target' | 'agree'): number => ofPeople.counts[name] + spares.counts[name]
    return {
      differences: [...ofPeople.differences, ...spares.differences],
      counts: { source: sum('source'), target: sum('target'), agree: sum('agree') },
    }
  } finally {
    file.close()
  }
}
