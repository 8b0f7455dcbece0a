import type { GroupReadOptions } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { Group, MemberGroup, MembersPage, NamedGroup } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isAttributeDescription, type LdapEntry, textsOf } from '#protocols/ldap/ldap-entry.ts'
import { resultCodeOf, resultCodes } from '#protocols/ldap/ldap-failure.ts'
import type { LdapFilter } from '#protocols/ldap/ldap-filter.ts'
import type { LdapChange, LdapServer, WriteOptions } from '#protocols/ldap/ldap-server.ts'
import { cachedSchema, type SchemaOf } from '#protocols/ldap/server-schema.ts'
import { type DnPattern, type LdapLayout, ownValue, tryDn } from './ldap-config.ts'

const equal = (attribute: string, value: string | Buffer): LdapFilter => ({ kind: 'equal', attribute, value })
export const both = (...filters: readonly LdapFilter[]): LdapFilter => ({ kind: 'and', filters })

/** How many entries are read at a time to find a login or a group's name. */
const readWidth = 20
const membersPerPage = 1000
/** Entries in one filter. */
const idsPerSearch = 50

type EntryKind = Pick<LdapLayout['users'], 'base' | 'objectClasses' | 'optionalClasses'>

/** Entries are found by the first of their classes. */
const classFilter = ({ objectClasses }: EntryKind): LdapFilter =>
  both(...objectClasses.slice(0, 1).map((name) => equal('objectClass', name)))

/** Read with every entry, and not shown as attributes. */
const operational = ['objectClass', 'createTimestamp', 'modifyTimestamp']

/** Reads users and groups from a server's tree. */
export class LdapTree {
  readonly server: LdapServer
  readonly layout: LdapLayout
  /** The same object for some minutes; undefined if the server hides its schema. */
  readonly schema: SchemaOf

  constructor(server: LdapServer, layout: LdapLayout) {
    this.server = server
    this.layout = layout
    this.schema = cachedSchema(server)
  }

  /** The classes of a new user or group. */
  async classesOf({ objectClasses, optionalClasses }: EntryKind): Promise<readonly string[]> {
    if (optionalClasses.length === 0) return objectClasses
    const schema = await this.schema()
    return [...objectClasses, ...optionalClasses.filter((name) => schema?.hasClass(name) === true)]
  }

  /** The classes that an entry lacks for values of these attributes. */
  async missingClasses(kind: EntryKind, { all }: ReadEntry, attributes: readonly string[]): Promise<readonly string[]> {
    if (kind.optionalClasses.length === 0) return []
    const present = all.values('objectClass')
    const allowed = (await this.schema())?.allowed(present)
    if (allowed === undefined || attributes.every((name) => allowed.has(name.toLowerCase()))) return []
    return (await this.classesOf(kind)).filter((name) => !present.some((own) => isSameName(own, name)))
  }

  get userFilter(): LdapFilter {
    return classFilter(this.layout.users)
  }

  get groupFilter(): LdapFilter {
    return classFilter(this.layout.groups)
  }

  /** The requested attributes, or all, with those that the target always reads. */
  userAttributes(asked: readonly string[] = ['*']): string[] {
    return this.#wanted([...asked, this.layout.users.login], this.layout.groups.memberOf)
  }

  groupAttributes(asked: readonly string[] = ['*']): string[] {
    return this.#wanted([...asked, this.layout.groups.name])
  }

  #wanted(asked: readonly string[], memberOf?: string): string[] {
    const own = [...operational, this.layout.id, this.layout.version, memberOf]
    return [...asked, ...own.filter((name) => name !== undefined)].filter(isWanted)
  }

  /** The users that the server finds by this login. Both ignore letter case; servers may ignore white space. */
  async usersLike(login: string, asked?: readonly string[]): Promise<ReadEntry[]> {
    if (!login.isWellFormed()) return []
    const { users } = this.layout
    return this.#find(users.base, both(this.userFilter, equal(users.login, login)), this.userAttributes(asked))
  }

  async userEntry(login: string, asked?: readonly string[]): Promise<ReadEntry | undefined> {
    const found = await this.usersLike(login, asked)
    return only(
      found.filter((entry) => isSameName(this.loginOf(entry), login)),
      'users have one login',
    )
  }

  userEntryById(id: string): Promise<ReadEntry | undefined> {
    return this.#entryById(id, this.layout.users, this.userAttributes())
  }

  async groupEntry(name: string, asked?: readonly string[]): Promise<ReadEntry | undefined> {
    if (!name.isWellFormed()) return undefined
    const { groups } = this.layout
    const filter = both(this.groupFilter, equal(groups.name, name))
    const found = await this.#find(groups.base, filter, this.groupAttributes(asked))
    return only(
      found.filter((entry) => isSameName(entry.all.first(groups.name), name)),
      'groups have one name',
    )
  }

  groupEntryById(id: string, asked?: readonly string[]): Promise<ReadEntry | undefined> {
    return this.#entryById(id, this.layout.groups, this.groupAttributes(asked))
  }

  async #entryById(id: string, kind: EntryKind, attributes: readonly string[]): Promise<ReadEntry | undefined> {
    const value = this.layout.id === undefined ? undefined : idValue(id, this.layout)
    if (value === undefined || this.layout.id === undefined) return undefined
    return (await this.#find(kind.base, both(classFilter(kind), equal(this.layout.id, value)), attributes))[0]
  }

  /** The groups with these ids, without their attributes; unknown ids are left out. */
  async groupEntriesOf(ids: readonly string[]): Promise<ReadEntry[]> {
    const { id, groups } = this.layout
    const given = [...new Set(ids)]
    if (id === undefined) {
      const found = await inParallel(given, readWidth, (name) => this.groupEntry(name, []))
      return found.filter((entry) => entry !== undefined)
    }
    const values = given.flatMap((one) => idValue(one, this.layout) ?? [])
    const searches = Array.from({ length: Math.ceil(values.length / idsPerSearch) }, (_, i) => {
      const some = values.slice(i * idsPerSearch, (i + 1) * idsPerSearch)
      return both(this.groupFilter, { kind: 'or', filters: some.map((value) => equal(id, value)) })
    })
    const found = await inParallel(searches, readWidth, (filter) =>
      this.#find(groups.base, filter, this.groupAttributes([])),
    )
    return found.flat()
  }

  groupRef(entry: ReadEntry): NamedGroup {
    const name = entry.all.first(this.layout.groups.name) ?? entry.dn
    return { id: idOf(entry, this.layout) ?? name, name }
  }

  /** The group with everything but its members, who may be many. */
  async groupWithoutMembers(by: { readonly name: string } | { readonly id: string }): Promise<ReadEntry | undefined> {
    const found = 'name' in by ? await this.groupEntry(by.name, []) : await this.groupEntryById(by.id, [])
    if (found === undefined) return undefined
    const search = { base: found.dn, scope: 'base', filter: both(), attributes: ['*'] } as const
    const [{ names } = { names: [] }] = await this.server.findNames(search)
    const member = this.layout.groups.member.toLowerCase()
    const others = names.filter((name) => name !== '*' && name.toLowerCase().split(';')[0] !== member)
    return this.entryAt(found.dn, this.groupAttributes(others))
  }

  /** The entry with this name; undefined if it no longer exists. */
  async entryAt(dn: string, attributes: readonly string[]): Promise<ReadEntry | undefined> {
    const search = { base: dn, scope: 'base', filter: both(), attributes } as const
    const [entry] = await this.server.find(search)
    return entry === undefined ? undefined : readValues(entry, this.layout)
  }

  /** A search below a base that does not exist finds nothing, like one without matches. */
  async checkBases(): Promise<void> {
    const { users, groups } = this.layout
    for (const [kind, { base }] of [
      ['users', users],
      ['groups', groups],
    ] as const) {
      if (await this.server.exists(base.toString())) continue
      throw new GatewayError(
        'TARGET_FAILED',
        `${this.server.name}: ${base}, the base of ${kind}, is missing. Create it, or let the account of the target see it`,
      )
    }
  }

  loginOf({ dn, all }: ReadEntry): string {
    const { base, login } = this.layout.users
    const values = all.values(login)
    if (values.length < 2) return values[0] ?? dn
    const own = ownValue(tryDn(dn) ?? new Dn([]), base, login)
    return values.find((value) => value === own) ?? values[0] ?? dn
  }

  /** A write with these options fails with VERSION_MISMATCH if the entry has another version. */
  whileVersion(expected: string | undefined): WriteOptions {
    const { version } = this.layout
    return expected === undefined || version === undefined ? {} : { while: equal(version, expected) }
  }

  /** The value in the group's member attribute for the user. */
  memberValue({ dn, login }: { readonly dn: string; readonly login: string }): string {
    return this.layout.groups.membersAreLogins ? login : dn
  }

  async groupsOf(entry: ReadEntry): Promise<{ readonly names: string[]; readonly ids?: string[] }> {
    const { groups } = this.layout
    if (groups.memberOf !== undefined) return { names: await this.#namesOf(entry.all.values(groups.memberOf)) }
    const held = await this.groupsHolding(this.memberValue({ dn: entry.dn, login: this.loginOf(entry) }))
    const names = held.map((group) => group.all.first(groups.name) ?? group.dn)
    const ids = held.flatMap((group) => idOf(group, this.layout) ?? [])
    return ids.length === names.length && names.length > 0 ? { names, ids } : { names }
  }

  groupsHolding(member: string): Promise<ReadEntry[]> {
    const { groups, id } = this.layout
    const attributes = [groups.name, ...(id === undefined ? [] : [id])]
    return this.#find(groups.base, both(this.groupFilter, equal(groups.member, member)), attributes)
  }

  async toUser(entry: ReadEntry, asked?: readonly string[]): Promise<User> {
    const { names, ids } = await this.groupsOf(entry)
    return { ...this.userWithoutGroups(entry, asked), groups: names, ...(ids === undefined ? {} : { groupIds: ids }) }
  }

  userWithoutGroups(entry: ReadEntry, asked?: readonly string[]): User {
    const { groups, id } = this.layout
    const hidden = [...operational, groups.memberOf, id, this.layout.version]
    const attributes = asked === undefined ? without(entry, hidden) : entry.all.pick(asked)
    return { userID: this.loginOf(entry), attributes, groups: [], ...this.#known(entry) }
  }

  async toGroup(entry: ReadEntry, options: GroupReadOptions): Promise<Group> {
    const { groups, id, version } = this.layout
    const hidden = [...operational, groups.name, groups.member, id, version]
    const attributes = without(entry, hidden)
    const description = attributes.first('description')
    const name = entry.all.first(groups.name) ?? entry.dn
    const known = this.#known(entry)
    return {
      name,
      ...(await this.#members(entry, options)),
      attributes,
      description,
      ...known,
      id: known.id ?? name,
    }
  }

  async #members(
    entry: ReadEntry,
    { members, inPages = false, display }: GroupReadOptions,
  ): Promise<MembersPage & Pick<Group, 'memberPages'>> {
    if (!members) return { members: [] }
    const values = entry.all.values(this.layout.groups.member)
    if (!inPages || values.length <= membersPerPage) return this.#membersNamed(values, display)
    return { members: [], memberPages: () => this.#memberPages(values, display) }
  }

  /** The server has all names in one attribute; what they name is read page by page. */
  async *#memberPages(values: readonly string[], display: GroupReadOptions['display']): AsyncGenerator<MembersPage> {
    for (let start = 0; start < values.length; start += membersPerPage) {
      yield await this.#membersNamed(values.slice(start, start + membersPerPage), display)
    }
  }

  membersOf({ all }: ReadEntry): Promise<MembersPage> {
    return this.#membersNamed(all.values(this.layout.groups.member), undefined)
  }

  /** Members as logins, and the groups among them. Other entries are left out. */
  async #membersNamed(values: readonly string[], display: GroupReadOptions['display']): Promise<MembersPage> {
    const { groups, users } = this.layout
    if (groups.membersAreLogins) return { members: [...values] }
    const found = await inParallel(values, readWidth, async (text) => {
      const dn = tryDn(text)
      if (dn === undefined || this.#isPlaceholder(dn)) return undefined
      const login = this.#mayBeGroup(dn) ? undefined : ownValue(dn, users.base, users.login)
      return login === undefined ? this.#readMember(text, dn, display) : { login }
    })
    const held = found.flatMap((one) => (one !== undefined && 'login' in one ? [one] : []))
    const ids = held.flatMap(({ id }) => id ?? [])
    const displays = held.map((one) => one.display)
    return {
      members: held.map(({ login }) => login),
      memberGroups: found.flatMap((one) => (one !== undefined && 'name' in one ? [one] : [])),
      ...(ids.length === held.length && held.length > 0 ? { memberIds: ids } : {}),
      ...(displays.some((one) => one !== undefined) ? { memberDisplays: displays } : {}),
    }
  }

  /** By its distinguished name alone, so that entries of other names need not be read. */
  #mayBeGroup(dn: Dn): boolean {
    const { base, name, dn: pattern } = this.layout.groups
    return [name, ...pattern.ownTypes].some((type) => ownValue(dn, base, type) !== undefined)
  }

  async #readMember(
    text: string,
    dn: Dn,
    display: GroupReadOptions['display'],
  ): Promise<
    | MemberGroup
    | { readonly login: string; readonly id?: string | undefined; readonly display?: string | undefined }
    | undefined
  > {
    const { groups, users, id } = this.layout
    const kinds = [
      ...(dn.isWithin(groups.base) ? [this.groupFilter] : []),
      ...(dn.isWithin(users.base) ? [this.userFilter] : []),
    ]
    if (kinds.length === 0) return undefined
    const names = ['objectClass', users.login, groups.name, id, display?.users, display?.groups]
    const attributes = names.filter((name) => name !== undefined).filter(isWanted)
    const read = async (filter: LdapFilter): Promise<ReadEntry | undefined> => {
      const [entry] = await this.server.find({ base: text, scope: 'base', filter, attributes })
      return entry === undefined ? undefined : readValues(entry, this.layout)
    }
    const entry = await read({ kind: 'or', filters: kinds })
    if (entry === undefined) return undefined
    if (dn.isWithin(groups.base) && (this.#hasClass(entry, groups) || (await this.#isGroup(entry, read)))) {
      const shown = display === undefined ? undefined : entry.all.first(display.groups)
      const ref = this.groupRef(entry)
      return shown === undefined || shown === ref.name ? ref : { ...ref, display: shown }
    }
    const login = entry.all.first(users.login)
    if (login === undefined) return undefined
    const own = idOf(entry, this.layout)
    const shown = display === undefined ? undefined : entry.all.first(display.users)
    return { login, id: own, display: shown }
  }

  #hasClass({ all }: ReadEntry, { objectClasses: [wanted = ''] }: { readonly objectClasses: readonly string[] }) {
    return all.values('objectClass').some((name) => isSameName(name, wanted))
  }

  /** If an entry has neither class, only the server knows the superclass of its own class. */
  async #isGroup(entry: ReadEntry, read: (filter: LdapFilter) => Promise<ReadEntry | undefined>): Promise<boolean> {
    return !this.#hasClass(entry, this.layout.users) && (await read(this.groupFilter)) !== undefined
  }

  #known(entry: ReadEntry): Pick<User, 'id' | 'version' | 'created' | 'modified'> {
    const id = idOf(entry, this.layout)
    const version = this.layout.version === undefined ? undefined : entry.all.first(this.layout.version)
    return { ...(id === undefined ? {} : { id }), version, ...this.timesOf(entry) }
  }

  timesOf(entry: ReadEntry): Pick<User, 'created' | 'modified'> {
    const created = generalizedTime(entry.all.first('createTimestamp'))
    const modified = generalizedTime(entry.all.first('modifyTimestamp'))
    return { created, modified }
  }

  /** The names of groups: from the distinguished names, or from the entries if those do not contain it. */
  async #namesOf(dns: readonly string[]): Promise<string[]> {
    const { base, name: attribute } = this.layout.groups
    const names = await inParallel(dns, readWidth, async (text) => {
      const dn = tryDn(text)
      if (dn === undefined || !dn.isWithin(base) || this.#isPlaceholder(dn)) return undefined
      const own = ownValue(dn, base, attribute)
      if (own !== undefined) return own
      const search = { base: text, scope: 'base', filter: this.groupFilter, attributes: [attribute] } as const
      const [entry] = await this.server.find(search)
      return entry && readValues(entry, this.layout).all.first(attribute)
    })
    return names.filter((name) => name !== undefined)
  }

  #isPlaceholder(dn: Dn): boolean {
    return this.layout.groups.placeholder?.equals(dn) === true
  }

  async #find(base: Dn, filter: LdapFilter, attributes: readonly string[]): Promise<ReadEntry[]> {
    const found = await this.server.find({ base: base.toString(), scope: 'sub', filter, attributes })
    return found.map((entry) => readValues(entry, this.layout))
  }
}

/** Other names have no values, and some servers would refuse the search. */
const isWanted = (name: string): boolean => name === '*' || isAttributeDescription(name)

export const isSameName = (a: string | undefined, b: string): boolean => a?.toLowerCase() === b.toLowerCase()

/** Several matches are an error: acting on the wrong one would be worse. */
function only([entry, second]: readonly ReadEntry[], several: string): ReadEntry | undefined {
  if (entry === undefined || second === undefined) return entry
  throw new GatewayError('TARGET_FAILED', `several ${several}: ${entry.dn} and ${second.dn}`)
}

function without({ all }: ReadEntry, names: readonly (string | undefined)[]) {
  const rest = all.clone()
  for (const name of names) if (name !== undefined) rest.delete(name)
  return rest
}

/** From this many bytes on, a server may have no room for a name's own part. */
const longName = 128

/** An entry as texts, with the parts that are not attributes of the user or group. */
export interface ReadEntry {
  readonly dn: string
  readonly all: Attributes
}

export function readValues(entry: LdapEntry, { binary }: LdapLayout): ReadEntry {
  return { dn: entry.dn, all: Attributes.from(textsOf(entry, (name) => binary.has(name.toLowerCase()))) }
}

/** The values in the server's form. BAD_REQUEST, naming the attribute, for a value that no server can store. */
export function wireValues(name: string, values: readonly string[], { binary }: LdapLayout): (string | Buffer)[] {
  if (!isAttributeDescription(name)) throw unfit(name, 'cannot be an attribute’s name')
  const unique = [...new Set(values)]
  if (binary.has(name.toLowerCase()) || /;binary$/i.test(name)) return unique.map((value) => fromBase64(name, value))
  for (const value of unique) if (!value.isWellFormed()) throw unfit(name, 'has half a surrogate pair')
  return unique
}

/** The identifier; binary ones in hex, since they are part of URLs. */
export function idOf({ all }: ReadEntry, { id, binary }: LdapLayout): string | undefined {
  const value = id === undefined ? undefined : all.first(id)
  if (value === undefined || id === undefined || !binary.has(id.toLowerCase())) return value
  return Buffer.from(value, 'base64').toString('hex')
}

/** The value to compare the identifier with; undefined for a text that cannot be one. */
export function idValue(id: string, { id: attribute = '', binary }: LdapLayout): string | Buffer | undefined {
  if (!binary.has(attribute.toLowerCase())) return id.isWellFormed() ? id : undefined
  return /^(?:[0-9a-f]{2}){1,64}$/i.test(id) ? Buffer.from(id, 'hex') : undefined
}

/** `20261115073218.067424Z` (RFC 4517 3.3.13), as servers write it. */
function generalizedTime(text: string | undefined): Date | undefined {
  const match = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:[.,]\d+)?Z$/.exec(text ?? '')
  if (match === null) return undefined
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number)
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second))
}

/** The second of a time, as servers compare it. */
export const generalizedText = (millis: number): string =>
  `${new Date(millis).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`

/** How a kind of entry is named. */
interface Naming {
  /** The attribute with the login or the group's name. */
  readonly attribute: string
  readonly pattern: DnPattern
  /** What an error calls the name. */
  readonly field: 'userID' | 'name'
}

/** The values of a new entry, with those of its distinguished name, and the login or group name in its attribute. */
export function newEntry(
  dn: Dn,
  name: string,
  values: Attributes,
  attribute: string,
  layout: LdapLayout,
): (readonly [string, (string | Buffer)[]])[] {
  const all = values.clone()
  for (const { type, value } of dn.rdns[0] ?? []) if (!all.values(type).includes(value)) all.add(type, [value])
  if (!all.values(attribute).includes(name)) all.add(attribute, [name])
  return Array.from(all, ([type, list]) => [type, wireValues(type, list, layout)])
}

/** Changes the login or the group's name, and returns the entry's name afterwards. `dnOf` renders the new one. */
export async function renameEntry(
  server: LdapServer,
  { dn }: ReadEntry,
  name: string,
  { attribute, pattern, field, dnOf }: Naming & { dnOf(): Dn },
  condition: WriteOptions,
): Promise<string> {
  if (!isNamedBy(pattern, attribute)) {
    await server.modify(dn, [{ operation: 'replace', attribute, values: [name] }], condition)
    return dn
  }
  const renamed = renamedDn(dn, dnOf())
  await server.rename(dn, ownPart(renamed).toString(), condition).catch((error: unknown) => {
    throw nameFailure(error, renamed, field)
  })
  return renamed.toString()
}

/** Whether distinguished names contain this attribute. */
export const isNamedBy = ({ ownTypes }: DnPattern, attribute: string): boolean =>
  ownTypes.some((type) => isSameName(type, attribute))

/** The name's own part, as a name of one part. */
const ownPart = (dn: Dn): Dn => new Dn(dn.rdns.slice(0, 1))

/** The entry's name with the own part of `wanted`: a rename never moves the entry. */
function renamedDn(dn: string, wanted: Dn): Dn {
  const parent = tryDn(dn)?.parent
  return parent === undefined ? wanted : new Dn([...ownPart(wanted).rdns, ...parent.rdns])
}

/** OpenLDAP only answers "other" if a name is too long for its index. */
export function nameFailure(error: unknown, dn: Dn, field: Naming['field']): unknown {
  const isLong = Buffer.byteLength(ownPart(dn).toString()) > longName
  return isLong && resultCodeOf(error) === resultCodes.other ? unfit(field, 'is too long for the server', error) : error
}

export const unfit = (name: string, reason: string, cause?: unknown): GatewayError =>
  new GatewayError('BAD_REQUEST', `"${name}" ${reason}`, {
    cause,
    attribute: name,
    publicText: (shown = `"${name}"`) => `The value of ${shown} cannot be stored.`,
  })

function fromBase64(name: string, value: string): Buffer {
  const bytes = Buffer.from(value, 'base64')
  if (bytes.length === 0 || bytes.toString('base64') !== value) throw unfit(name, 'is not base64')
  return bytes
}

/** Rewrites the unchanged classes, so that the server gives the entry a new version. */
export const touch = ({ all }: ReadEntry): LdapChange => ({
  operation: 'replace',
  attribute: 'objectClass',
  values: [...all.values('objectClass')],
})
