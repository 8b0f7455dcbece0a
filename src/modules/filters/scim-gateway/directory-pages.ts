import type { Directory, DirectoryEntry } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { pageInMemory } from '#identity/page-in-memory.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { SearchPage } from '#sdk/target.ts'
import type { Query } from './lookups.ts'

/** Entries of one question to the directory. */
const pageEntries = 1000
/** As many entries as are read for one answer; where it would take more it is refused rather than cut. */
const maxEntries = 10_000

const anything: Filter = { kind: 'present', attribute: 'objectClass' }

/** Searches below one entry of the directory, with the order and the pages that SCIM has and a directory does not. */
export class DirectoryPages {
  readonly #directory: Pick<Directory, 'search' | 'page'>
  readonly #base: Dn

  constructor(directory: Pick<Directory, 'search' | 'page'>, base: Dn) {
    this.#directory = directory
    this.#base = base
  }

  /** The one entry that matches; undefined when there is none, and when there are several. */
  async only(filter: Filter): Promise<DirectoryEntry | undefined> {
    const [entry, second] = await this.#directory.search({ base: this.#base, scope: 'sub', filter, limit: 2 })
    return second === undefined ? entry : undefined
  }

  /** The entry of that name, members included; undefined when there is none, and when it stands elsewhere. */
  async named(dn: Dn): Promise<DirectoryEntry | undefined> {
    if (!dn.isWithin(this.#base)) return undefined
    return (await this.#directory.search({ base: dn, scope: 'base', filter: anything, limit: 1 }))[0]
  }

  async all(filter: Filter): Promise<readonly DirectoryEntry[]> {
    const entries: DirectoryEntry[] = []
    let after: string | undefined
    do {
      const search = { base: this.#base, scope: 'sub', filter, limit: pageEntries } as const
      const page = await this.#directory.page(after === undefined ? search : { ...search, after })
      entries.push(...page.entries)
      if (entries.length > maxEntries) throw scimError('tooMany', 'Too many entries match. Narrow the filter.')
      after = page.next
    } while (after !== undefined)
    return entries
  }

  /** In the directory's own order unless a sort is asked for. All are read where the directory does not count them. */
  async page(filter: Filter, query: Omit<Query, 'filter'>): Promise<SearchPage<DirectoryEntry>> {
    const { sort, offset, limit, after } = query
    if (sort !== undefined) {
      const collection = { of: this.#base.key, source: attributesOf, key: ({ dn }: DirectoryEntry) => dn.key }
      return pageInMemory(await this.all(filter), { ...query, sort }, collection)
    }
    if (offset > 0) {
      const all = await this.all(filter)
      return { items: all.slice(offset, offset + limit), total: all.length }
    }
    const search = { base: this.#base, scope: 'sub', filter, limit, count: true } as const
    const { entries, next, total } = await this.#directory.page(after === undefined ? search : { ...search, after })
    const hasAll = after === undefined && next === undefined
    const count = total ?? (hasAll ? entries : await this.all(filter)).length
    return { items: entries, total: count, ...(next === undefined ? {} : { next }) }
  }
}

const attributesOf = ({ attributes }: DirectoryEntry) => attributes
