import { Dn } from '#identity/dn.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isAttributeDescription } from '#protocols/ldap/attribute-description.ts'
import type { LdapFilter } from '#protocols/ldap/ldap-filter.ts'
import type { LdapServer } from '#protocols/ldap/ldap-server.ts'
import { ownValue, tryDn } from './dn-pattern.ts'
import type { LdapLayout } from './ldap-config.ts'
import { generalizedTime, idOf, idValue, type ReadEntry, readValues } from './ldap-values.ts'

export const equal = (attribute: string, value: string | Buffer): LdapFilter => ({ kind: 'equal', attribute, value })
export const both = (...filters: readonly LdapFilter[]): LdapFilter => ({ kind: 'and', filters })

/** Entries whose names do not tell the login or the group's name are asked, so many at a time. */
const readWidth = 20

/** Reads users and groups out of a server's tree. */
export class LdapTree {
  readonly server: LdapServer
  readonly layout: LdapLayout

  constructor(server: LdapServer, layout: LdapLayout) {
    this.server = server
    this.layout = layout
  }

  get userFilter(): LdapFilter {
    return both(...this.layout.users.objectClasses.slice(0, 1).map((name) => equal('objectClass', name)))
  }

  get groupFilter(): LdapFilter {
    return both(...this.layout.groups.objectClasses.slice(0, 1).map((name) => equal('objectClass', name)))
  }

  /** What is read besides the attributes that were asked for; all of those when none are named. */
  userAttributes(asked: readonly string[] = ['*']): string[] {
    const { users, groups, id, version } = this.layout
    const own = [users.login, 'objectClass', 'createTimestamp', 'modifyTimestamp', id, version, groups.memberOf]
    return [...asked, ...own.filter((name) => name !== undefined)].filter(isWanted)
  }

  groupAttributes(asked: readonly string[] = ['*']): string[] {
    const { groups, id, version } = this.layout
    const own = [groups.name, 'objectClass', 'createTimestamp', 'modifyTimestamp', id, version]
    return [...asked, ...own.filter((name) => name !== undefined)].filter(isWanted)
  }

  /**
   * Those whom the server takes for the login, which may be wider than we do: it ignores white space that we do not. Letter
   * case counts for neither.
   */
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

  async userEntryById(id: string): Promise<ReadEntry | undefined> {
    const value = this.layout.id === undefined ? undefined : idValue(id, this.layout)
    if (value === undefined || this.layout.id === undefined) return undefined
    const filter = both(this.userFilter, equal(this.layout.id, value))
    return (await this.#find(this.layout.users.base, filter, this.userAttributes()))[0]
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

  async groupEntryById(id: string, asked?: readonly string[]): Promise<ReadEntry | undefined> {
    const value = this.layout.id === undefined ? undefined : idValue(id, this.layout)
    if (value === undefined || this.layout.id === undefined) return undefined
    const filter = both(this.groupFilter, equal(this.layout.id, value))
    return (await this.#find(this.layout.groups.base, filter, this.groupAttributes(asked)))[0]
  }

  /** The group with all it has but its members, who may be many. */
  async groupWithoutMembers(by: { readonly name: string } | { readonly id: string }): Promise<ReadEntry | undefined> {
    const found = 'name' in by ? await this.groupEntry(by.name, []) : await this.groupEntryById(by.id, [])
    if (found === undefined) return undefined
    const search = { base: found.dn, scope: 'base', filter: both(), attributes: ['*'] } as const
    const [{ names } = { names: [] }] = await this.server.findNames(search)
    const member = this.layout.groups.member.toLowerCase()
    const others = names.filter((name) => name !== '*' && name.toLowerCase().split(';')[0] !== member)
    return this.entryAt(found.dn, this.groupAttributes(others))
  }

  /** The entry of this name; undefined when it is gone. */
  async entryAt(dn: string, attributes: readonly string[]): Promise<ReadEntry | undefined> {
    const search = { base: dn, scope: 'base', filter: both(), attributes } as const
    const [entry] = await this.server.find(search)
    return entry === undefined ? undefined : readValues(entry, this.layout)
  }

  loginOf({ dn, all }: ReadEntry): string {
    const { base, login } = this.layout.users
    const values = all.values(login)
    if (values.length < 2) return values[0] ?? dn
    const own = ownValue(tryDn(dn) ?? new Dn([]), base, login)
    return values.find((value) => value === own) ?? values[0] ?? dn
  }

  /** The value that the group holds for the user. */
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
    const hidden = ['objectClass', 'createTimestamp', 'modifyTimestamp', groups.memberOf, id, this.layout.version]
    const attributes = asked === undefined ? without(entry, hidden) : entry.all.pick(asked)
    return { userID: this.loginOf(entry), attributes, groups: [], ...this.#known(entry) }
  }

  async toGroup(entry: ReadEntry, members: boolean): Promise<Group> {
    const { groups, id, version } = this.layout
    const hidden = ['objectClass', 'createTimestamp', 'modifyTimestamp', groups.name, groups.member, id, version]
    const attributes = without(entry, hidden)
    const description = attributes.first('description')
    const name = entry.all.first(groups.name) ?? entry.dn
    return {
      id: name,
      name,
      members: members ? await this.membersOf(entry) : [],
      attributes,
      ...(description === undefined ? {} : { description }),
      ...this.#known(entry),
    }
  }

  /** Members as logins. Those who are no users of this target, such as nested groups, are left out. */
  async membersOf({ all }: ReadEntry): Promise<string[]> {
    const { groups, users } = this.layout
    const values = all.values(groups.member)
    if (groups.membersAreLogins) return [...values]
    const logins = await this.#eachName(values, users.base, users.login, this.userFilter)
    return logins.filter((login) => login !== undefined)
  }

  #known(entry: ReadEntry): Pick<User, 'id' | 'version' | 'created' | 'modified'> {
    const id = idOf(entry, this.layout)
    const version = this.layout.version === undefined ? undefined : entry.all.first(this.layout.version)
    return {
      ...(id === undefined ? {} : { id }),
      ...(version === undefined ? {} : { version }),
      ...this.timesOf(entry),
    }
  }

  timesOf(entry: ReadEntry): Pick<User, 'created' | 'modified'> {
    const created = generalizedTime(entry.all.first('createTimestamp'))
    const modified = generalizedTime(entry.all.first('modifyTimestamp'))
    return { ...(created === undefined ? {} : { created }), ...(modified === undefined ? {} : { modified }) }
  }

  async #namesOf(dns: readonly string[]): Promise<string[]> {
    const { base, name } = this.layout.groups
    const names = await this.#eachName(dns, base, name, this.groupFilter)
    return names.filter((found) => found !== undefined)
  }

  /** Most names tell it themselves; the others' entries are read. */
  async #eachName(
    dns: readonly string[],
    base: Dn,
    attribute: string,
    filter: LdapFilter,
  ): Promise<(string | undefined)[]> {
    const names = dns.map((text) => {
      const dn = tryDn(text)
      if (dn === undefined || !dn.isWithin(base) || this.#isPlaceholder(dn)) return { dn: text, name: '' }
      return { dn: text, name: ownValue(dn, base, attribute) }
    })
    const result = names.map(({ name }) => (name === '' ? undefined : name))
    const unknown = names.flatMap(({ name }, i) => (name === undefined ? [i] : []))
    await inParallel(unknown, readWidth, async (i) => {
      const search = { base: names[i]?.dn ?? '', scope: 'base', filter, attributes: [attribute] } as const
      const [entry] = await this.server.find(search)
      result[i] = entry === undefined ? undefined : readValues(entry, this.layout).all.first(attribute)
    })
    return result
  }

  #isPlaceholder(dn: Dn): boolean {
    return this.layout.groups.placeholder?.equals(dn) === true
  }

  async #find(base: Dn, filter: LdapFilter, attributes: readonly string[]): Promise<ReadEntry[]> {
    const found = await this.server.find({ base: base.toString(), scope: 'sub', filter, attributes })
    return found.map((entry) => readValues(entry, this.layout))
  }
}

/** What is no attribute's name has no values, and some servers would refuse to be asked. */
const isWanted = (name: string): boolean => name === '*' || isAttributeDescription(name)

export const isSameName = (a: string | undefined, b: string): boolean => a?.toLowerCase() === b.toLowerCase()

/** Of several, acting on the wrong one would be worse than not to act. */
function only([entry, second]: readonly ReadEntry[], several: string): ReadEntry | undefined {
  if (entry === undefined || second === undefined) return entry
  throw new GatewayError('TARGET_FAILED', `several ${several}: ${entry.dn} and ${second.dn}`)
}

function without({ all }: ReadEntry, names: readonly (string | undefined)[]) {
  const rest = all.clone()
  for (const name of names) if (name !== undefined) rest.delete(name)
  return rest
}
