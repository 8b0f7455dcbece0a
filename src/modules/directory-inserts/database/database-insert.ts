import { Attributes } from '#identity/attributes.ts'
import type { DirectoryPage, DirectoryPageSearch, InsertEntry } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import type { UserChange, UserDirectory } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Passwords } from '#modules/shared/passwords/passwords.ts'
import type { AccountLayout } from '#sdk/directory/account-layout.ts'
import { AccountsInsert } from '#sdk/directory/accounts-insert.ts'
import type { NewPerson, PeopleInsert, PeoplePage, TargetAccount } from '#sdk/directory/directory-insert.ts'
import { type DemoPasswords, noDemoPasswords } from './demo-passwords.ts'

const passwordChange: UserChange = { subject: 'attribute', action: 'replace', attribute: 'userPassword' }

/** People, groups and passwords in a database. */
export class DatabaseInsert implements PeopleInsert {
  readonly #users: UserDirectory
  readonly #passwords: Passwords
  readonly #accounts: AccountsInsert
  /** Decides about passwords that are for demonstrations only. */
  demo: DemoPasswords = noDemoPasswords
  readonly #system: string | undefined

  /** `system`: what targets on the same users call it (see `databaseSystem`). */
  constructor(users: UserDirectory, passwords: Passwords, layout: AccountLayout, system?: string) {
    this.#users = users
    this.#passwords = passwords
    this.#system = system
    this.#accounts = new AccountsInsert(
      {
        lookupUserByLogin: (login) => users.findByLogin(login),
        lookupUserById: (id) => users.findById(id),
        searchUsers: (query) => users.searchUsers(query),
        lookupGroupByName: (name, options) => users.findGroupByName(name, options),
        searchGroups: (query) => users.searchGroups(query),
        groupMembersAreIds: false,
      },
      layout,
    )
  }

  search(search: DirectoryPageSearch): Promise<DirectoryPage<InsertEntry>> {
    return this.#accounts.search(search)
  }

  isMember(group: Dn, member: Dn): Promise<boolean> {
    return this.#accounts.isMember(group, member)
  }

  members(group: Dn, limit: number): Promise<readonly Dn[]> {
    return this.#accounts.members(group, limit)
  }

  async bind(dn: Dn, password: string, caller?: { readonly local: boolean }): Promise<boolean> {
    const login = this.#accounts.loginOf(dn)
    const user = login === undefined ? undefined : await this.#users.findByLogin(login)
    const checked = await this.#passwords.check(user?.id, password)
    if (checked === false || user === undefined) return false
    if (checked !== 'demo' && !this.demo.isKnown(user.userID, password)) return true
    return this.demo.accepts(user.userID, caller?.local !== false)
  }

  /** Somebody whose password could not be stored is taken out again, so that a second attempt finds nobody in its way. */
  async addPerson({ login, attributes, groups, password }: NewPerson): Promise<readonly UserChange[]> {
    const hash = password === undefined ? undefined : await this.#passwords.hash(password)
    const changes = await this.#users.create({ userID: login, attributes: Attributes.from(attributes), groups })
    if (hash === undefined) return changes
    try {
      await this.#passwords.set(await this.#idOf(login), hash)
    } catch (error) {
      await this.#users.delete(login)
      throw error
    }
    return [...changes, { ...passwordChange, action: 'add' }]
  }

  async setEntryPassword(dn: Dn, password: string, id: string | undefined): Promise<void> {
    const login = this.#accounts.loginOf(dn)
    const user = login === undefined ? undefined : await this.#users.findByLogin(login)
    if (user?.id === undefined || (id !== undefined && user.id !== id)) {
      throw new GatewayError('NOT_FOUND', `no such entry: "${dn}"`)
    }
    await this.#passwords.set(user.id, await this.#passwords.hash(password))
  }

  entryOf({ stored }: TargetAccount): Dn | undefined {
    return stored !== undefined && stored.system === this.#system ? this.#accounts.nameOf(stored.name) : undefined
  }

  async setPassword(login: string, password: string, kind: 'demo' | 'real' = 'real'): Promise<readonly UserChange[]> {
    const id = await this.#idOf(login)
    await this.#passwords.set(id, await this.#passwords.hash(password), undefined, kind)
    return [passwordChange]
  }

  async removePerson(login: string): Promise<readonly UserChange[]> {
    const user = await this.#users.findByLogin(login)
    if (user?.id !== undefined) await this.#passwords.remove(user.id)
    return user === undefined ? [] : this.#users.delete(login)
  }

  async listPeople(limit: number, after?: string): Promise<PeoplePage> {
    const page = await this.#users.searchUsers({ offset: 0, limit, ...(after === undefined ? {} : { after }) })
    const people = []
    for (const user of page.items) {
      const hasPassword = user.id !== undefined && (await this.#passwords.has(user.id))
      people.push({ login: user.userID, entry: this.#accounts.personEntry(user), hasPassword })
    }
    return { people, ...(page.next === undefined ? {} : { next: page.next }) }
  }

  async close(): Promise<void> {
    await this.#users.close()
    await this.#passwords.close()
  }

  async #idOf(login: string): Promise<string> {
    const id = (await this.#users.findByLogin(login))?.id
    if (id === undefined) throw new GatewayError('NOT_FOUND', `there is no user with the login "${login}"`)
    return id
  }
}
