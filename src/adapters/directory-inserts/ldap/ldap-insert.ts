import { narrowedLeaf } from '#adapters/targets/ldap/narrowed-leaf.ts'
import { Attributes } from '#identity/attributes.ts'
import {
  type DirectoryPage,
  type DirectoryPageSearch,
  entryId,
  type InsertEntry,
  idAttributes,
} from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { filterAttributes, type NarrowFilter, narrowFilter } from '#identity/filter/rewrite-filter.ts'
import { changedName, holdsNames, withNames, withPlainNames } from '#identity/name-attributes.ts'
import { type Collection, pageInMemory } from '#identity/paging.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isAttributeDescription, type LdapEntry, textsOf } from '#protocols/ldap/ldap-entry.ts'
import type { LdapFilter } from '#protocols/ldap/ldap-filter.ts'
import type { LdapSearch, LdapServer } from '#protocols/ldap/ldap-server.ts'
import { cachedSchema, type SchemaOf, type ServerSchema } from '#protocols/ldap/server-schema.ts'
import type { DirectoryInsert, TargetAccount } from '#sdk/directory/directory-insert.ts'

interface LdapInsertOptions {
  readonly server: LdapServer
  /** What targets with the same server call it (see `ldapSystem`). */
  readonly system?: string
  /** The name of the insert in the virtual tree. */
  readonly suffix: Dn
  /** The name of the same entry on the server. */
  readonly base: Dn
  /** Attributes, in lower case, whose values are base64 here and bytes on the server. */
  readonly binary: ReadonlySet<string>
  /** Attributes, in lower case, whose names within the base appear within the suffix. */
  readonly moved: ReadonlySet<string>
  readonly maxEntries: number
}

/** An answer with at most this many entries is read whole at once; of a longer one only the requested page. */
const smallAnswer = 200
const readWidth = 50
const lookupWidth = 8
const memberAttributes = ['member', 'uniqueMember'] as const
/** All user attributes, and the operational ones that servers return only by name: groups, times and locks. */
const everything = [
  '*',
  'memberOf',
  'nsAccountLock',
  'pwdAccountLockedTime',
  'createTimestamp',
  'modifyTimestamp',
] as const

/** A branch of an LDAP server as a part of the directory. */
export class LdapInsert implements DirectoryInsert {
  readonly #options: LdapInsertOptions
  readonly #schemaOf: SchemaOf

  constructor(options: LdapInsertOptions) {
    this.#options = options
    this.#schemaOf = cachedSchema(options.server)
  }

  async search(search: DirectoryPageSearch): Promise<DirectoryPage<InsertEntry>> {
    const filter = this.#undecided(withPlainNames(search.filter, this.#isOfNames))
    const base = this.#remote(search.base)
    if (base === undefined) return { entries: [] }
    const wire = this.#wireFilter(search.filter, await this.#schemaOf())
    const compared = [...filterAttributes(filter)].filter(isAttributeDescription)
    const wanted = ['objectClass', ...idAttributes, ...compared, ...(search.attributes ?? everything)].filter(isWanted)
    const request: LdapSearch = { base: base.toString(), scope: search.scope, filter: wire, attributes: wanted }
    const small = await this.#ask(request, smallAnswer)
    const whole = !small.more
    const found = whole
      ? small.entries
      : await this.#candidates({ ...request, attributes: ['objectClass', ...compared] })
    const collection: Collection<InsertEntry> = {
      of: `${search.scope} ${search.base.key}`,
      source: ({ attributes }) => ({ values: (name) => this.#comparable(name, attributes.values(name)) }),
      key: ({ dn }) => dn.key,
    }
    const { limit, after } = search
    const query = { filter, offset: 0, limit, ...(after === undefined ? {} : { after }) }
    const { items, next, total } = pageInMemory(found, query, collection)
    const entries = whole ? items : await this.#read(items, wanted)
    return { entries, next, ...(search.count === true ? { total } : {}) }
  }

  async isMember(group: Dn, member: Dn): Promise<boolean> {
    const base = this.#remote(group)
    if (base === undefined) return false
    const own = this.#remote(member)
    const name = (own ?? member).toString()
    // Logins belong to this branch; users elsewhere may have the same.
    const login = own && loginIn(own)
    const filters: LdapFilter[] = memberAttributes.map((attribute) => ({ kind: 'equal', attribute, value: name }))
    if (login !== undefined) filters.push({ kind: 'equal', attribute: 'memberUid', value: login })
    const found = await this.#options.server.find({
      base: base.toString(),
      scope: 'base',
      filter: { kind: 'or', filters },
      attributes: ['1.1'],
    })
    return found.length > 0
  }

  async members(group: Dn, limit: number): Promise<readonly Dn[]> {
    const base = this.#remote(group)
    if (base === undefined) return []
    const attributes = [...memberAttributes, 'memberUid']
    const search = { base: base.toString(), scope: 'base', filter: { kind: 'and', filters: [] }, attributes } as const
    const [entry] = await this.#options.server.find(search)
    if (entry === undefined) return []
    const all = Attributes.from(textsOf(entry, () => false))
    const named = memberAttributes.flatMap((name) => all.values(name)).flatMap((text) => this.#virtualName(text) ?? [])
    const logins = all.values('memberUid').slice(0, Math.max(0, limit - named.length))
    const found = await inParallel(logins, lookupWidth, (login) => this.#peopleOf(login))
    return [...named, ...found.flat()].slice(0, limit)
  }

  async bind(dn: Dn, password: string): Promise<boolean> {
    const name = this.#remote(dn)
    return name !== undefined && (await this.#options.server.checkPassword(name.toString(), password))
  }

  /** A server with two addresses counts as two servers. */
  entryOf({ stored }: TargetAccount): Dn | undefined {
    if (stored === undefined || stored.system !== this.#options.system) return undefined
    const dn = this.#virtualName(stored.name)
    return dn?.isWithin(this.#options.suffix) === true ? dn : undefined
  }

  close(): void {
    this.#options.server.close()
  }

  async #peopleOf(login: string): Promise<Dn[]> {
    const { server, base } = this.#options
    const filter = { kind: 'equal', attribute: 'uid', value: login } as const
    const found = await server.find({ base: base.toString(), scope: 'sub', filter, attributes: ['1.1'] }, 2)
    return found.flatMap(({ dn }) => this.#virtualName(dn) ?? [])
  }

  async #ask(search: LdapSearch, limit: number): Promise<{ entries: InsertEntry[]; more: boolean }> {
    if (search.scope === 'base') return { entries: this.#entries(await this.#options.server.find(search)), more: false }
    const { entries, more } = await this.#options.server.findMany(search, limit)
    return { entries: this.#entries(entries), more }
  }

  async #candidates(search: LdapSearch): Promise<InsertEntry[]> {
    const { maxEntries } = this.#options
    const { entries, more } = await this.#ask(search, maxEntries)
    if (!more) return entries
    throw new GatewayError('BAD_REQUEST', `more than ${maxEntries} entries match`, {
      publicText: 'The filter matches too many entries.',
      keyword: 'tooMany',
    })
  }

  async #read(entries: readonly InsertEntry[], attributes: readonly string[]): Promise<InsertEntry[]> {
    const filter = { kind: 'and', filters: [] } as const
    const read = await inParallel(entries, readWidth, async ({ dn }) => {
      const base = (this.#remote(dn) ?? dn).toString()
      return this.#entries(await this.#options.server.find({ base, scope: 'base', filter, attributes }))
    })
    return read.flat()
  }

  /** Leaves out entries that have no name in the virtual tree. */
  #entries(found: readonly LdapEntry[]): InsertEntry[] {
    const { binary } = this.#options
    return found.flatMap((entry) => {
      const dn = this.#virtualName(entry.dn)
      if (dn === undefined) return []
      const attributes = new Attributes()
      for (const [name, values] of textsOf(entry, (one) => binary.has(one.toLowerCase()))) {
        attributes.add(name, this.#isMoved(name) ? values.map((value) => this.#virtualText(value)) : values)
      }
      const id = entryId(attributes)
      return [{ dn, attributes, ...(id === undefined ? {} : { id }) }]
    })
  }

  #wireFilter(filter: Filter, schema: ServerSchema | undefined): LdapFilter {
    const { binary } = this.#options
    const toWire = (narrow: NarrowFilter): LdapFilter => {
      if (narrow.kind === 'and' || narrow.kind === 'or') {
        return { kind: narrow.kind, filters: narrow.filters.map(toWire) }
      }
      if (narrow.kind === 'not' || narrow.kind === 'present') return narrow
      const { attribute } = narrow
      if (binary.has(attribute.toLowerCase())) {
        return narrow.kind === 'equal'
          ? { kind: 'equal', attribute, value: Buffer.from(narrow.value, 'base64') }
          : { kind: 'present', attribute }
      }
      // Servers compare DNs as names, without substrings.
      if (!this.#isOfNames(attribute)) return narrowedLeaf(narrow, schema)
      return narrow.kind === 'substring'
        ? { kind: 'present', attribute }
        : { kind: 'equal', attribute, value: narrow.value }
    }
    return toWire(narrowFilter(withNames(filter, (dn) => this.#remote(dn) ?? dn, this.#isMoved)))
  }

  /**
   * The filter without the names of this branch that an entry must contain. The server compares them as exactly as this
   * insert, which would have to read all members of a group for it.
   */
  #undecided(filter: Filter): Filter {
    const isDecided = (part: Filter): boolean => {
      if (part.kind !== 'equal' || !this.#isOfNames(part.attribute)) return false
      const dn = parsed(part.value)
      return dn !== undefined && (!this.#isMoved(part.attribute) || this.#remote(dn) !== undefined)
    }
    if (filter.kind === 'and') return { ...filter, filters: filter.filters.filter((part) => !isDecided(part)) }
    return isDecided(filter) ? { kind: 'and', filters: [] } : filter
  }

  readonly #isMoved = (attribute: string): boolean => this.#options.moved.has(attribute.toLowerCase())

  readonly #isOfNames = (attribute: string): boolean => holdsNames(attribute) || this.#isMoved(attribute)

  /** Names as filters have them: in normal form. Those that were moved are. */
  #comparable(attribute: string, values: readonly string[]): readonly string[] {
    if (!holdsNames(attribute) || this.#isMoved(attribute)) return values
    return values.map((value) => changedName(value, (dn) => dn))
  }

  #remote(dn: Dn): Dn | undefined {
    return dn.rebase(this.#options.suffix, this.#options.base)
  }

  /** Names from outside the branch stay unchanged. */
  #virtualText(text: string): string {
    const { base, suffix } = this.#options
    return changedName(text, (dn) => dn.rebase(base, suffix) ?? dn)
  }

  #virtualName(text: string): Dn | undefined {
    return parsed(this.#virtualText(text))
  }
}

function parsed(text: string): Dn | undefined {
  try {
    return Dn.parse(text)
  } catch {
    return undefined
  }
}

const isWanted = (name: string, i: number, all: readonly string[]): boolean =>
  (name === '*' || isAttributeDescription(name)) && all.indexOf(name) === i

const loginIn = (dn: Dn): string | undefined => dn.rdns[0]?.find(({ type }) => type.toLowerCase() === 'uid')?.value
