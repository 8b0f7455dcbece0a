import { Attributes } from '#identity/attributes.ts'
import type { Dn } from '#identity/dn.ts'
import { entryChange, userChanges } from '#identity/entry-changes.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import { requireVersion } from '#modules/shared/targets/user-reconciler.ts'
import { resultCodeOf, resultCodes } from '#protocols/ldap/ldap-failure.ts'
import type { LdapChange, WriteOptions } from '#protocols/ldap/ldap-server.ts'
import { unicodePassword } from '#protocols/ldap/password-modify.ts'
import type { PasswordTarget, SyncOptions, TargetChange, TargetRequest } from '#sdk/target.ts'
import { type LdapMemberships, namesMissing } from './ldap-memberships.ts'
import { equal, type LdapTree } from './ldap-tree.ts'
import { nameFailure, ownPart, type ReadEntry, renamedDn, unfit, wireValues } from './ldap-values.ts'

/** Attempts of a change that others were quicker with. */
const attempts = 3

/** Accounts come, change and go. Changes to one user follow one another. */
export class LdapAccounts {
  readonly #tree: LdapTree
  readonly #memberships: LdapMemberships
  readonly #queue = new KeyedQueue()

  constructor(tree: LdapTree, memberships: LdapMemberships) {
    this.#tree = tree
    this.#memberships = memberships
  }

  async find(userID: string, attributes: readonly string[]): Promise<User | undefined> {
    const entry = await this.#tree.userEntry(userID, attributes)
    return entry === undefined ? undefined : this.#tree.toUser(entry, attributes)
  }

  create(user: User, attributes: readonly string[], request: TargetRequest, mustBeNew = false): Promise<void> {
    return this.#one(user.userID, async () => {
      const wanted = this.#wanted(user, attributes)
      const [like] = await this.#tree.usersLike(user.userID, attributes)
      if (like !== undefined && mustBeNew) throw taken(this.#tree.loginOf(like))
      if (like !== undefined) return this.#finish(like, wanted, attributes, request)
      const groups = await this.#memberships.resolve(namesMissing(user.groups, []))
      const name = this.#dnOf(wanted)
      const dn = name.toString()
      try {
        await this.#tree.server.add(dn, this.#newEntry(wanted, attributes))
      } catch (error) {
        if (resultCodeOf(error) !== resultCodes.entryAlreadyExists) throw nameFailure(error, name, 'userID')
        const entry = await this.#tree.userEntry(user.userID, attributes)
        if (entry === undefined || mustBeNew) throw mustBeNew ? taken(user.userID) : error
        return this.#finish(entry, wanted, attributes, request)
      }
      await this.#requireOnly(dn, user.userID)
      const told = userChanges(undefined, { ...wanted, groups: [] }, { addOnly: false, attributes })
      try {
        const member = this.#tree.memberValue({ dn, login: user.userID })
        const joined: TargetChange[] = []
        // Somebody of the same name may have left memberships behind, which are not this user's.
        await this.#memberships.leaveAll(member)
        await this.#memberships.change(member, { add: groups, remove: [] }, (change) => joined.push(change))
        for (const change of [...told, ...joined]) request.audit(change)
      } catch (error) {
        const undone = await this.#undoCreation(dn, user.userID, error)
        if (!undone) for (const change of told) request.audit(change)
        throw error
      }
    })
  }

  sync(user: User, options: SyncOptions, request: TargetRequest): Promise<void> {
    return this.#one(user.userID, async () => {
      for (let left = attempts; ; left--) {
        try {
          return await this.#sync(user, options, request)
        } catch (error) {
          // What was to be added is there by now, or what was to go is not.
          const code = resultCodeOf(error)
          const lost = code === resultCodes.attributeOrValueExists || code === resultCodes.noSuchAttribute
          if (!lost || left <= 1) throw error
        }
      }
    })
  }

  delete(user: User, request: TargetRequest, expectedVersion?: string): Promise<void> {
    return this.#one(user.userID, async () => {
      const entry = await this.#tree.userEntry(user.userID, [])
      if (entry === undefined) return this.#leaveBehind(user)
      const stored = this.#tree.userWithoutGroups(entry, [])
      requireVersion(stored, expectedVersion)
      try {
        await this.#tree.server.delete(entry.dn, this.#while(expectedVersion))
        for (const change of [entryChange('entry', 'delete', 'userID', stored.userID)]) request.audit(change)
      } catch (error) {
        if (resultCodeOf(error) !== resultCodes.noSuchObject) throw error
      }
      await this.#memberships.leaveAll(this.#tree.memberValue({ dn: entry.dn, login: stored.userID }))
    })
  }

  readonly setPassword: PasswordTarget['setUserPassword'] = (user, password, request) =>
    this.#one(user.userID, async () => {
      if (password === '') throw new GatewayError('BAD_REQUEST', 'a password may not be empty')
      const entry = await this.#tree.userEntry(user.userID, [])
      if (entry === undefined) throw new GatewayError('NOT_FOUND', `no user "${user.userID}"`)
      if (this.#tree.layout.passwords === 'modify') await this.#tree.server.setPassword(entry.dn, password)
      else {
        const values = [unicodePassword(password)]
        await this.#tree.server.modify(entry.dn, [{ operation: 'replace', attribute: 'unicodePwd', values }])
      }
      request.audit({ subject: 'attribute', action: 'replace', attribute: 'password' })
    })

  async #sync(user: User, options: SyncOptions, request: TargetRequest): Promise<void> {
    const { addOnly, keepGroups, expectedVersion, expectedGroup, newUserID } = options
    const entry = await this.#tree.userEntry(user.userID, options.attributes)
    if (entry === undefined) throw new GatewayError('NOT_FOUND', `no user "${user.userID}"`)
    const stored = keepGroups
      ? this.#tree.userWithoutGroups(entry, options.attributes)
      : await this.#tree.toUser(entry, options.attributes)
    requireVersion(stored, expectedVersion)
    const attributes = this.#changeable(options.attributes)
    const wanted = this.#wanted({ ...user, groups: keepGroups ? stored.groups : user.groups }, attributes)
    const joins = namesMissing(wanted.groups, stored.groups)
    const leaves = addOnly ? [] : namesMissing(stored.groups, wanted.groups)
    const add = await this.#memberships.resolve(joins, expectedGroup)
    const remove = await this.#memberships.resolveKnown(leaves)

    let present = entry
    let condition = this.#while(expectedVersion)
    const renamed = newUserID === undefined || newUserID === stored.userID ? undefined : newUserID
    if (renamed !== undefined) {
      const change = { subject: 'entry', action: 'replace', attribute: 'userID', value: renamed } as const
      present = await this.#rename(entry, { ...wanted, userID: renamed }, condition)
      condition = {}
      request.audit(change)
    }
    const changes = userChanges(stored, { ...wanted, groups: stored.groups }, { addOnly, attributes })
    const writes = this.#writes(stored, wanted, changes, addOnly)
    // A version is to be new whenever anything of the user is, and the server sees no change of the user in a group's.
    const touches = this.#tree.layout.version !== undefined && writes.length === 0 && add.length + remove.length > 0
    if (touches) writes.push(touch(entry))
    if (writes.length > 0) await this.#tree.server.modify(present.dn, writes, condition)
    for (const change of changes) request.audit(change)
    const member = this.#tree.memberValue({ dn: present.dn, login: renamed ?? stored.userID })
    await this.#memberships.change(member, { add, remove }, request.audit.bind(request))
  }

  /** There is such an entry: as it should be, or with memberships missing, as an attempt that broke off leaves it. */
  async #finish(entry: ReadEntry, wanted: User, attributes: readonly string[], request: TargetRequest): Promise<void> {
    const stored = await this.#tree.toUser(entry, attributes)
    const changes = userChanges(stored, wanted, { addOnly: false, attributes: this.#changeable(attributes) })
    const isOwn = changes.every(({ subject, action }) => subject === 'group' && action === 'add')
    if (stored.userID !== wanted.userID || !isOwn) {
      throw taken(stored.userID)
    }
    const add = await this.#memberships.resolve(namesMissing(wanted.groups, stored.groups))
    const member = this.#tree.memberValue({ dn: entry.dn, login: stored.userID })
    await this.#memberships.change(member, { add, remove: [] }, request.audit.bind(request))
  }

  async #rename(entry: ReadEntry, wanted: User, condition: WriteOptions): Promise<ReadEntry> {
    const { layout, server } = this.#tree
    const others = await this.#tree.usersLike(wanted.userID, [])
    if (others.some(({ dn }) => dn !== entry.dn)) {
      throw taken(wanted.userID)
    }
    let { dn } = entry
    if (this.#isNamedByLogin) {
      const name = renamedDn(dn, this.#dnOf({ ...wanted, attributes: merged(entry, wanted) }))
      await server.rename(dn, ownPart(name).toString(), condition).catch((error) => {
        throw nameFailure(error, name, 'userID')
      })
      dn = name.toString()
    } else {
      const values = [wanted.userID]
      await server.modify(dn, [{ operation: 'replace', attribute: layout.users.login, values }], condition)
    }
    const from = this.#tree.memberValue({ dn: entry.dn, login: this.#tree.loginOf(entry) })
    await this.#memberships.replace(from, this.#tree.memberValue({ dn, login: wanted.userID }))
    return { ...entry, dn }
  }

  get #isNamedByLogin(): boolean {
    const { dn, login } = this.#tree.layout.users
    return dn.ownTypes.some((type) => type.toLowerCase() === login.toLowerCase())
  }

  /** Where names do not keep logins apart, another gateway may have made the same one under another: then ours goes. */
  async #requireOnly(dn: string, login: string): Promise<void> {
    if (this.#isNamedByLogin || (await this.#tree.usersLike(login, [])).length < 2) return
    await this.#tree.server.delete(dn)
    throw taken(login)
  }

  /** With what the layout puts in the place of values that are missing. */
  #wanted(user: User, attributes: readonly string[]): User {
    const { defaults } = this.#tree.layout.users
    const all = user.attributes.pick(attributes)
    for (const [name, template] of defaults) {
      if (all.has(name)) continue
      const value = template.render({ attribute: (place) => this.#place(user, place) })
      if (value !== '') all.set(name, [value])
    }
    return { ...user, attributes: all }
  }

  #newEntry(user: User, attributes: readonly string[]): Map<string, (string | Buffer)[]> {
    const { layout } = this.#tree
    const { users } = layout
    const entry = new Map<string, (string | Buffer)[]>([['objectClass', [...users.objectClasses]]])
    const names = [...attributes, ...users.defaults.keys()]
    const values = new Attributes()
    for (const name of this.#changeable(names)) values.set(name, user.attributes.values(name))
    for (const { type, value } of this.#dnOf(user).rdns[0] ?? []) {
      if (!values.values(type).includes(value)) values.add(type, [value])
    }
    if (!values.values(users.login).includes(user.userID)) values.add(users.login, [user.userID])
    for (const [name, list] of values) entry.set(name, wireValues(name, list, layout))
    return entry
  }

  #writes(stored: User, wanted: User, changes: readonly TargetChange[], addOnly: boolean): LdapChange[] {
    const names = new Set(changes.map(({ attribute }) => attribute))
    return Array.from(names, (attribute) => {
      const held = new Set(addOnly ? stored.attributes.values(attribute) : [])
      const values = wanted.attributes.values(attribute).filter((value) => !held.has(value))
      const operation = addOnly ? 'add' : 'replace'
      return { operation, attribute, values: wireValues(attribute, values, this.#tree.layout) }
    })
  }

  /** The login and the classes are the layout's own, whatever attributes a workflow names. */
  #changeable(names: readonly string[]): string[] {
    const { login } = this.#tree.layout.users
    const own = new Set(['objectclass', login.toLowerCase()])
    const seen = new Map(names.map((name) => [name.toLowerCase(), name]))
    return Array.from(seen).flatMap(([key, name]) => (own.has(key) ? [] : [name]))
  }

  #dnOf(user: User): Dn {
    return this.#tree.layout.users.dn.render((place) => this.#place(user, place))
  }

  #place(user: User, name: string): string | undefined {
    const isLogin = name === 'userID' || name.toLowerCase() === this.#tree.layout.users.login.toLowerCase()
    return isLogin ? user.userID : user.attributes.first(name)
  }

  #while(expectedVersion: string | undefined): WriteOptions {
    const { version } = this.#tree.layout
    return expectedVersion === undefined || version === undefined ? {} : { while: equal(version, expectedVersion) }
  }

  /** Of an attempt that broke off between the entry and its memberships. */
  async #leaveBehind(user: User): Promise<void> {
    const { layout } = this.#tree
    if (layout.groups.memberOf !== undefined && !layout.groups.membersAreLogins) return
    let dn: string
    try {
      dn = this.#dnOf(user).toString()
    } catch {
      return
    }
    await this.#memberships.leaveAll(this.#tree.memberValue({ dn, login: user.userID }))
  }

  /** Nothing is half done: where the groups refuse a new user, it goes again. What cannot be undone now is finished later. */
  async #undoCreation(dn: string, login: string, reason: unknown): Promise<boolean> {
    if (reason instanceof GatewayError && reason.code === 'TARGET_UNREACHABLE') return false
    try {
      await this.#memberships.leaveAll(this.#tree.memberValue({ dn, login }))
      await this.#tree.server.delete(dn)
      return true
    } catch {
      return false
    }
  }

  async #one<T>(userID: string, work: () => Promise<T>): Promise<T> {
    if (!userID.isWellFormed() || userID === '') throw unfit('userID', 'cannot be a login')
    return this.#queue.run(userID.toLowerCase(), work)
  }
}

const taken = (login: string): GatewayError =>
  new GatewayError('CONFLICT', `there is a user "${login}" already`, { keyword: 'uniqueness' })

const touch = ({ all }: ReadEntry): LdapChange => ({
  operation: 'replace',
  attribute: 'objectClass',
  values: [...all.values('objectClass')],
})

function merged(entry: ReadEntry, { attributes }: User): Attributes {
  const all = entry.all.clone()
  for (const [name, values] of attributes) all.set(name, values)
  return all
}
