import { retry } from '#adapters/targets/shared/retry.ts'
import {
  type AcceptedUser,
  type CreateCall,
  type DeleteCall,
  type Exclusively,
  hasCode,
  loginTaken,
  reconcilePasswords,
  reconcileUsers,
  report,
  type StoredUser,
  type UserStore,
  type WriteCall,
} from '#adapters/targets/shared/user-reconciler.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Dn } from '#identity/dn.ts'
import { missingNames } from '#identity/entry-changes.ts'
import type { NamedGroup } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { resultCodeOf, resultCodes } from '#protocols/ldap/ldap-failure.ts'
import { type LdapChange, unicodePassword, type WriteOptions } from '#protocols/ldap/ldap-server.ts'
import type { PasswordTarget, PlannedWrite, TargetChange, TargetRequest } from '#sdk/target/target.ts'
import type { LdapMemberships } from './ldap-memberships.ts'
import {
  isNamedBy,
  type LdapTree,
  nameFailure,
  newEntry,
  type ReadEntry,
  renameEntry,
  touch,
  unfit,
  wireValues,
} from './ldap-tree.ts'

interface StoredEntry extends StoredUser {
  readonly entry: ReadEntry
}

type Users = Pick<PasswordTarget, 'createUser' | 'syncUser' | 'deleteUser' | 'setUserPassword' | 'defaultValue'> &
  Required<Pick<PasswordTarget, 'requirePlaces'>>

/** `forget` is called after each change, also after a failed one. */
export function ldapUsers(tree: LdapTree, memberships: LdapMemberships, forget: () => void): Users {
  const store = new LdapUserStore(tree, memberships)
  const exclusively = retryingRaces(store, 'userID', forget)
  return {
    ...reconcileUsers<StoredEntry>(exclusively),
    defaultValue: (attribute, user) => store.defaultValue(attribute, user),
    requirePlaces: (user, write) => store.requirePlaces(user, write),
    ...reconcilePasswords<StoredEntry>(exclusively, ({ entry }, password) => store.setPassword(entry, password)),
  }
}

/** Attempts of a change while other writers change the same values. */
const maxAttempts = 3

/** Reads and compares again if another writer added or removed the same value at the same time. */
export function retryingRaces<T>(store: T, field: 'userID' | 'name', forget: () => void): Exclusively<T> {
  const queue = new KeyedQueue()
  const isRace = (error: unknown): boolean => {
    const code = resultCodeOf(error)
    return code === resultCodes.attributeOrValueExists || code === resultCodes.noSuchAttribute
  }
  return async (name, work) => {
    if (!name.isWellFormed() || name === '') {
      throw unfit(field, field === 'userID' ? 'is not a valid login' : 'is not a valid group name')
    }
    return queue.run(name.toLowerCase(), () => retry(maxAttempts, isRace, () => work(store))).finally(forget)
  }
}

class LdapUserStore implements UserStore<StoredEntry> {
  readonly renames = true
  readonly foldGroups = true
  readonly rereadsConflicts = true
  readonly #tree: LdapTree
  readonly #memberships: LdapMemberships

  constructor(tree: LdapTree, memberships: LdapMemberships) {
    this.#tree = tree
    this.#memberships = memberships
  }

  async read(
    userID: string,
    attributes: readonly string[],
    _: TargetRequest,
    { groups }: { readonly groups: boolean },
  ): Promise<StoredEntry | undefined> {
    const entry = await this.#tree.userEntry(userID, attributes)
    if (entry === undefined) return undefined
    const user = groups ? await this.#tree.toUser(entry, attributes) : this.#tree.userWithoutGroups(entry, attributes)
    return { entry, user }
  }

  async readAlike(userID: string, attributes: readonly string[]): Promise<StoredEntry | undefined> {
    const [entry] = await this.#tree.usersLike(userID, attributes)
    return entry && { entry, user: await this.#tree.toUser(entry, attributes) }
  }

  /** With the layout's defaults for missing values, and without the login and the classes, which the layout decides. */
  accept(user: User, attributes: readonly string[]): AcceptedUser {
    const values = user.attributes.pick(attributes)
    for (const name of this.#tree.layout.users.defaults.keys()) {
      const value = values.has(name) ? undefined : this.defaultValue(name, user)
      if (value !== undefined) values.set(name, [value])
    }
    return { user: { ...user, attributes: values }, attributes: this.#changeable(attributes) }
  }

  /** An entry that exists may have more classes than those of the layout. */
  async requirePlaces({ userID, attributes: values }: User, { attributes, isNew }: PlannedWrite): Promise<void> {
    const schema = await this.#tree.schema()
    const entry = isNew ? undefined : await this.#tree.userEntry(userID, [])
    const classes = [
      ...(entry?.all.values('objectClass') ?? []),
      ...(await this.#tree.classesOf(this.#tree.layout.users)),
    ]
    const odd = this.#changeable(attributes).find((name) => values.has(name) && schema?.refuses(classes, name) === true)
    if (odd !== undefined) throw unfit(odd, 'is not allowed by the object classes of the entry')
  }

  defaultValue(attribute: string, user: User): string | undefined {
    const template = this.#tree.layout.users.defaults.get(attribute.toLowerCase())
    return template?.render({ attribute: (place) => this.#place(user, place) }) || undefined
  }

  async create(user: User, { attributes, changes, request }: CreateCall): Promise<readonly TargetChange[]> {
    const groups = await this.#memberships.resolve(missingNames([], user.groups))
    const { server, layout } = this.#tree
    const { users } = layout
    const name = this.#dnOf(user)
    const dn = name.toString()
    const values = new Attributes()
    for (const each of this.#changeable([...attributes, ...users.defaults.keys()])) {
      values.set(each, user.attributes.values(each))
    }
    const entry = newEntry(name, user.userID, values, users.login, layout)
    await server
      .add(dn, [['objectClass', await this.#tree.classesOf(this.#tree.layout.users)], ...entry])
      .catch((error: unknown) => {
        throw nameFailure(error, name, 'userID')
      })
    await this.#requireOnly(dn, user.userID)
    const created = changes.filter(({ subject }) => subject !== 'group')
    try {
      const member = this.#tree.memberValue({ dn, login: user.userID })
      const joined: TargetChange[] = []
      // A deleted user of the same name may have left memberships behind.
      await this.#memberships.leaveAll(member)
      await this.#memberships.change(member, { add: groups, remove: [] }, (change) => joined.push(change))
      return [...created, ...joined]
    } catch (error) {
      if (!(await this.#undoCreation(dn, user.userID, error))) report(created, request)
      throw error
    }
  }

  /** An attempt that failed after it added the entry leaves memberships missing, and nothing else. */
  finish({ entry, user }: StoredEntry, missing: readonly TargetChange[], request: TargetRequest) {
    if (!missing.every(({ subject, action }) => subject === 'group' && action === 'add')) return undefined
    return this.#changeMemberships(entry, user.userID, missing, request)
  }

  async write({ entry, user }: StoredEntry, wanted: User, { changes, options, request }: WriteCall) {
    const { addOnly, expectedVersion } = options
    const groupChanges = changes.filter(({ subject }) => subject === 'group')
    const resolved = await this.#resolve(groupChanges)
    let present = entry
    let condition = this.#tree.whileVersion(expectedVersion)
    if (wanted.userID !== user.userID) {
      present = await this.#rename(entry, wanted, condition)
      condition = {}
      report(
        changes.filter(({ subject }) => subject === 'entry'),
        request,
      )
    }
    const attributeChanges = changes.filter(({ subject }) => subject === 'attribute')
    const writes = this.#writes(user, wanted, attributeChanges, addOnly)
    const set = writes.flatMap(({ attribute, values }) => (values.length === 0 ? [] : [attribute]))
    const classes = await this.#tree.missingClasses(this.#tree.layout.users, present, set)
    if (classes.length > 0) writes.push({ operation: 'add', attribute: 'objectClass', values: [...classes] })
    // The server gives the user no new version when only a group changes.
    const touches = this.#tree.layout.version !== undefined && writes.length === 0
    if (touches && resolved.add.length + resolved.remove.length > 0) writes.push(touch(entry))
    if (writes.length > 0) await this.#tree.server.modify(present.dn, writes, condition)
    report(attributeChanges, request)
    const member = this.#tree.memberValue({ dn: present.dn, login: wanted.userID })
    await this.#memberships.change(member, resolved, (change) => request.audit(change))
    return []
  }

  async delete({ entry, user }: StoredEntry, { changes, expectedVersion, request }: DeleteCall) {
    try {
      await this.#tree.server.delete(entry.dn, this.#tree.whileVersion(expectedVersion))
      report(changes, request)
    } catch (error) {
      if (resultCodeOf(error) !== resultCodes.noSuchObject) throw error
    }
    await this.#memberships.leaveAll(this.#tree.memberValue({ dn: entry.dn, login: user.userID }))
    return []
  }

  /** An attempt that failed after it deleted the entry leaves memberships behind. */
  async cleanUp(user: User): Promise<void> {
    const { groups } = this.#tree.layout
    if (groups.memberOf !== undefined && !groups.membersAreLogins) return
    let dn: string
    try {
      dn = this.#dnOf(user).toString()
    } catch {
      return
    }
    await this.#memberships.leaveAll(this.#tree.memberValue({ dn, login: user.userID }))
  }

  requireGroup(expected: NamedGroup): Promise<void> {
    return this.#memberships.requireGroup(expected)
  }

  async isTaken(userID: string, { entry }: StoredEntry): Promise<boolean> {
    return (await this.#tree.usersLike(userID, [])).some(({ dn }) => dn !== entry.dn)
  }

  async setPassword({ dn }: ReadEntry, password: string): Promise<boolean> {
    const { server, layout } = this.#tree
    if (password === '') throw new GatewayError('BAD_REQUEST', 'the password is empty')
    if (layout.passwords === 'modify') await server.setPassword(dn, password)
    else {
      const values = [unicodePassword(password)]
      await server.modify(dn, [{ operation: 'replace', attribute: 'unicodePwd', values }])
    }
    return true
  }

  async #resolve(changes: readonly TargetChange[]) {
    const names = (wanted: TargetChange['action']) =>
      changes.flatMap(({ action, value = '' }) => (action === wanted ? [value] : []))
    return {
      add: await this.#memberships.resolve(names('add')),
      remove: await this.#memberships.resolveKnown(names('delete')),
    }
  }

  async #changeMemberships(
    entry: ReadEntry,
    login: string,
    changes: readonly TargetChange[],
    request: TargetRequest,
  ): Promise<readonly TargetChange[]> {
    const member = this.#tree.memberValue({ dn: entry.dn, login })
    await this.#memberships.change(member, await this.#resolve(changes), (change) => request.audit(change))
    return []
  }

  async #rename(entry: ReadEntry, wanted: User, condition: WriteOptions): Promise<ReadEntry> {
    const { login: attribute, dn: pattern } = this.#tree.layout.users
    const dnOf = () => this.#dnOf({ ...wanted, attributes: merged(entry, wanted) })
    const naming = { attribute, pattern, field: 'userID', dnOf } as const
    const dn = await renameEntry(this.#tree.server, entry, wanted.userID, naming, condition)
    const from = this.#tree.memberValue({ dn: entry.dn, login: this.#tree.loginOf(entry) })
    await this.#memberships.replace(from, this.#tree.memberValue({ dn, login: wanted.userID }))
    return { ...entry, dn }
  }

  /** If distinguished names don't contain the login, another gateway may have created it under another name. */
  async #requireOnly(dn: string, login: string): Promise<void> {
    const { users } = this.#tree.layout
    if (isNamedBy(users.dn, users.login) || (await this.#tree.usersLike(login, [])).length < 2) return
    await this.#tree.server.delete(dn)
    loginTaken(login)
  }

  /** With `addOnly`, values are added one by one, so that those of other writers stay. */
  #writes(stored: User, wanted: User, changes: readonly TargetChange[], addOnly: boolean): LdapChange[] {
    const names = new Set(changes.map(({ attribute }) => attribute))
    return Array.from(names, (attribute) => {
      const present = new Set(addOnly ? stored.attributes.values(attribute) : [])
      const values = wanted.attributes.values(attribute).filter((value) => !present.has(value))
      const operation = addOnly ? 'add' : 'replace'
      return { operation, attribute, values: wireValues(attribute, values, this.#tree.layout) }
    })
  }

  #changeable(names: readonly string[]): string[] {
    const own = new Set(['objectclass', this.#tree.layout.users.login.toLowerCase()])
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

  /** If the groups reject a new user, its entry is deleted again. The next attempt finishes a failed undo. */
  async #undoCreation(dn: string, login: string, reason: unknown): Promise<boolean> {
    if (hasCode(reason, 'TARGET_UNREACHABLE')) return false
    try {
      await this.#memberships.leaveAll(this.#tree.memberValue({ dn, login }))
      await this.#tree.server.delete(dn)
      return true
    } catch {
      return false
    }
  }
}

function merged(entry: ReadEntry, { attributes }: User): Attributes {
  const all = entry.all.clone()
  for (const [name, values] of attributes) all.set(name, values)
  return all
}
