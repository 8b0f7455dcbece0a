import {
  type DirectoryEntry,
  type DirectoryPage,
  type DirectoryPageSearch,
  type DirectorySearch,
  entryId,
  type InsertEntry,
  idAttributes,
  type MemberDirectory,
  type MemberPage,
} from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { entryIdentity, entryOf, type Identity } from '#identity/identity.ts'
import { type PageScope, readPosition, unknownPosition, writePosition } from '#identity/paging.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { DirectoryInsert, TargetAccount } from '#sdk/directory/directory-insert.ts'

/** An insert and its suffix. */
export interface Mount {
  readonly name: string
  readonly suffix: Dn
  readonly insert: DirectoryInsert
  /** It may have no entries at all, so that a search of more than this part leaves it out. */
  readonly isOptional?: boolean
  /** Outside the root of the directory: only searches by its own name, or of every tree, concern it. */
  readonly isApart?: boolean
}

/** The maximum number of entries in one page. */
const maxPage = 1000
/** The maximum number of pages per search; an insert may return short ones. */
const maxPages = 1000
const lookupWidth = 8
/** Longer than any typed password; hashing it would only cost time. */
const maxPasswordBytes = 1024

const anything: Filter = { kind: 'present', attribute: 'objectClass' }

/**
 * One tree of inserts, searched in order. A name belongs only to the insert with the longest suffix that contains
 * it, so one insert may be inside another and hides its entries there. Names between the root and the suffixes have
 * no entry. Inserts outside the root are trees of their own, for logins.
 */
export class VirtualDirectory implements MemberDirectory {
  #mounts: readonly Mount[]

  constructor(mounts: readonly Mount[] = []) {
    this.#mounts = mounts
  }

  /** Replaces the inserts. Others refer to a directory before its inserts exist. */
  mount(mounts: readonly Mount[]): void {
    this.#mounts = mounts
  }

  async search({ everyTree = false, ...search }: DirectorySearch): Promise<readonly DirectoryEntry[]> {
    const found = await this.#search(search)
    if (!everyTree || found.length > 0) return found
    const apart = this.#mounts.filter(({ suffix, isApart }) => isApart === true && suffix.isWithin(search.base))
    const tops = apart.filter((one) => !apart.some((other) => other !== one && one.suffix.isWithin(other.suffix)))
    const others: DirectoryEntry[] = []
    for (const { suffix } of tops) {
      if (others.length >= search.limit) break
      others.push(...(await this.#search({ ...search, base: suffix, limit: search.limit - others.length })))
    }
    return others
  }

  async #search(search: DirectorySearch): Promise<readonly DirectoryEntry[]> {
    const limit = Math.min(search.limit, maxPage)
    const found: DirectoryEntry[] = []
    let after: string | undefined
    for (let pages = 0; pages < maxPages && found.length < limit; pages++) {
      const rest = { ...search, limit: limit - found.length, ...(after === undefined ? {} : { after }) }
      const page = await this.page(rest)
      found.push(...page.entries)
      if (page.next === undefined) return found
      after = page.next
    }
    if (found.length < limit) throw new GatewayError('BAD_REQUEST', 'a search that comes to no end')
    return found
  }

  async page(search: DirectoryPageSearch): Promise<DirectoryPage> {
    const limit = Math.max(1, Math.min(search.limit, maxPage))
    const scope: PageScope = { of: `${search.scope} ${search.base.key}`, filter: search.filter, sort: undefined }
    const asked = this.#concerned(search)
    const start = search.after === undefined ? undefined : readPosition(scope, search.after)
    const first = start === undefined ? 0 : asked.findIndex(({ mount }) => mount.name === start.entry)
    if (first < 0) throw unknownPosition()
    const entries: DirectoryEntry[] = []
    let next: string | undefined
    for (const [i, { mount, part }] of asked.entries()) {
      if (i < first) continue
      if (entries.length >= limit) {
        next = writePosition(scope, { entry: mount.name })
        break
      }
      const after = i === first ? start?.folded : undefined
      const wanted = { ...part, limit: limit - entries.length, ...(after === undefined ? {} : { after }) }
      const page = await named(mount, () => mount.insert.search(wanted))
      entries.push(
        ...page.entries.filter(({ dn }) => this.#owner(dn) === mount).map((entry) => identified(mount, entry)),
      )
      if (page.next !== undefined) {
        next = writePosition(scope, { entry: mount.name, folded: page.next })
        break
      }
    }
    const total = search.count === true ? await this.#total(asked) : undefined
    return { entries, next, total }
  }

  async isMember(group: Dn, member: Dn): Promise<boolean> {
    const mount = this.#owner(group)
    return mount !== undefined && (await named(mount, () => mount.insert.isMember(group, member)))
  }

  async members(group: Dn, limit: number): Promise<readonly DirectoryEntry[]> {
    const { members } = await this.memberPage(group, 0, limit)
    return members.flatMap(({ entry }) => entry ?? [])
  }

  async memberPage(group: Dn, skip: number, limit: number): Promise<MemberPage> {
    const mount = this.#owner(group)
    if (mount === undefined) return { members: [], more: false }
    const end = skip + limit
    const names = await named(mount, () => mount.insert.members(group, end + 1))
    const members = await inParallel(names.slice(skip, end), lookupWidth, async (dn) => {
      const [entry] = await this.search({ base: dn, scope: 'base', filter: anything, limit: 1 })
      return { dn, ...(entry === undefined ? {} : { entry }) }
    })
    return { members, more: names.length > end }
  }

  async entry(identity: Identity): Promise<DirectoryEntry | undefined> {
    const place = entryOf(identity)
    const mount = this.#mounts.find(({ name }) => name === place?.insert)
    if (place === undefined || mount === undefined) return undefined
    const byId: Filter = {
      kind: 'or',
      filters: idAttributes.map((attribute) => ({ kind: 'equal', attribute, value: place.id })),
    }
    const named = nameIn(place.id)
    const found = [
      ...(await this.search({ base: mount.suffix, scope: 'sub', filter: byId, limit: 2 })),
      ...(named === undefined ? [] : await this.search({ base: named, scope: 'base', filter: anything, limit: 1 })),
    ]
    return found.find((entry) => entry.identity === identity)
  }

  async bind(dn: Dn, password: string, caller?: { readonly local: boolean }): Promise<boolean> {
    // An LDAP server treats a bind with an empty password as anonymous, and accepts it (RFC 4513 5.1.2).
    if (password === '' || Buffer.byteLength(password) > maxPasswordBytes) return false
    const mount = this.#owner(dn)
    if (mount === undefined) return false
    if (mount.insert.bind === undefined) {
      throw new GatewayError('NOT_SUPPORTED', `the directory insert "${mount.name}" checks no passwords`)
    }
    return named(mount, async () => (await mount.insert.bind?.(dn, password, caller)) ?? false)
  }

  /** Whether `setPassword` can set the entry's password. */
  keepsPassword(dn: Dn): boolean {
    return this.#owner(dn)?.insert.setEntryPassword !== undefined
  }

  /**
   * Sets the entry's password. With an `id`, only while the entry has it; NOT_FOUND otherwise. NOT_SUPPORTED if the
   * entry's insert can't write passwords. Returns the name of the insert.
   */
  async setPassword(dn: Dn, password: string, id: string | undefined): Promise<string> {
    const mount = this.#owner(dn)
    if (mount?.insert.setEntryPassword === undefined) {
      throw new GatewayError('NOT_SUPPORTED', `no directory insert writes the password of "${dn}"`)
    }
    await named(mount, async () => mount.insert.setEntryPassword?.(dn, password, id))
    return mount.name
  }

  /** The identities of the entries that represent an account of a target. */
  async ownersOf(account: TargetAccount): Promise<readonly Identity[]> {
    const found: Identity[] = []
    for (const mount of this.#mounts) {
      const base = mount.insert.entryOf?.(account)
      if (base === undefined || this.#owner(base) !== mount) continue
      const [entry] = await this.search({ base, scope: 'base', filter: anything, limit: 1 })
      if (entry !== undefined) found.push(entry.identity)
    }
    return found
  }

  #owner(dn: Dn): Mount | undefined {
    let owner: Mount | undefined
    for (const mount of this.#mounts) {
      const depth = owner?.suffix.rdns.length ?? -1
      if (mount.suffix.rdns.length > depth && dn.isWithin(mount.suffix)) owner = mount
    }
    return owner
  }

  /** The inserts that can have matching entries, each with its part of the search. */
  #concerned({
    after: _,
    count: __,
    ...search
  }: DirectoryPageSearch): { readonly mount: Mount; readonly part: DirectoryPageSearch }[] {
    const owner = this.#owner(search.base)
    return this.#mounts.flatMap((mount) => {
      if (mount === owner) return [{ mount, part: search }]
      const { suffix } = mount
      if (!suffix.isWithin(search.base) || mount.isOptional === true) return []
      if (mount.isApart === true && search.base.rdns.length === 0) return []
      if (search.scope === 'sub') return [{ mount, part: { ...search, base: suffix } }]
      const isChild = search.scope === 'one' && suffix.parent?.equals(search.base) === true
      return isChild ? [{ mount, part: { ...search, base: suffix, scope: 'base' as const } }] : []
    })
  }

  /** Undefined if one of the inserts can't count, or hides entries of another. */
  async #total(asked: readonly { readonly mount: Mount; readonly part: DirectoryPageSearch }[]) {
    let total = 0
    for (const { mount, part } of asked) {
      if (this.#mounts.some((other) => other !== mount && other.suffix.isWithin(mount.suffix))) return undefined
      const page = await named(mount, () => mount.insert.search({ ...part, limit: 1, count: true }))
      if (page.total === undefined && page.next !== undefined) return undefined
      total += page.total ?? page.entries.length
    }
    return total
  }
}

/** An entry without an identifier is identified by its name. */
function nameIn(id: string): Dn | undefined {
  if (!id.includes('=')) return undefined
  try {
    return Dn.parse(id)
  } catch {
    return undefined
  }
}

/** Includes the insert's name: identifiers of different systems are unrelated. */
export const insertIdentity = (insert: string, { id, attributes, dn }: InsertEntry): Identity =>
  entryIdentity(insert, id ?? entryId(attributes) ?? dn.key)

const identified = (mount: Mount, entry: InsertEntry): DirectoryEntry => ({
  ...entry,
  identity: insertIdentity(mount.name, entry),
})

/** Prefixes an error with the insert's name, unless it already has it. */
async function named<T>({ name }: Mount, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (thrown) {
    const { code, message, publicText, retryAfter, keyword } = asGatewayError(thrown)
    const place = `directory insert "${name}": `
    const full = message.startsWith(place) ? message : place + message
    throw new GatewayError(code === 'INTERNAL' ? 'TARGET_FAILED' : code, full, {
      cause: thrown,
      ...(code === 'INTERNAL' ? {} : { publicText }),
      retryAfter,
      keyword,
    })
  }
}
