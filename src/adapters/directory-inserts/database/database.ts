import { readFile, stat } from 'node:fs/promises'
import * as z from 'zod'
import {
  configuredFile,
  databaseSystem,
  openPasswords,
  type Passwords,
} from '#adapters/targets/database/password-hash.ts'
import type { EntryChange } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import type { DirectoryPage, DirectoryPageSearch, InsertEntry } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import { changesOf, unaudited } from '#identity/entry-changes.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type AccountLayout, layoutParameters, parseLayout } from '#sdk/directory/account-layout.ts'
import { AccountsInsert } from '#sdk/directory/accounts-insert.ts'
import {
  defineDirectoryInsert,
  type InsertHost,
  type NewPerson,
  type PeopleInsert,
  type PeoplePage,
  type TargetAccount,
} from '#sdk/directory/directory-insert.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  directory: text({
    about:
      'The name under which its users and groups are stored in the database; the name of the insert when absent. A [targets.Database](../targets/targets.Database.md) with the same `directory` has the same users, so that workflows can write them and their passwords.',
  }),
  demoPasswords: text({
    about:
      'A JSON file in the configuration folder with passwords by login, `{"ada": "..."}`, set once, while no user has a password. For demonstrations: everyone who reads the file knows them, so they work [on this machine only](#demo-passwords).',
  }),
  ...layoutParameters,
}

/** Users who log in, their groups and passwords, in the database that Gatehouse runs on. */
export default defineDirectoryInsert({
  className: 'directory.Database',
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    const { directory, demoPasswords } = given
    return {
      directory,
      layout: parseLayout(given, params, issues),
      demoPasswords:
        demoPasswords === undefined
          ? undefined
          : configuredFile('demoPasswords', demoPasswords, params, issues, context),
    }
  },
  create: async ({ directory, layout, demoPasswords }, host) => {
    const name = directory ?? host.name
    const users = await host.openUserDirectory({ name })
    const passwords = await openPasswords(host, { name })
    const insert = new DatabaseInsert(users, passwords, layout(host.suffix), databaseSystem({ name }))
    try {
      if (demoPasswords !== undefined) insert.demo = await loadDemoPasswords(demoPasswords, insert, passwords, host)
    } catch (error) {
      await insert.close()
      throw error
    }
    return insert
  },
})

const passwordChange: EntryChange = { subject: 'attribute', action: 'replace', attribute: 'userPassword' }

/** Users, groups and passwords in a database. */
export class DatabaseInsert implements PeopleInsert {
  readonly #users: UserDirectory
  readonly #passwords: Passwords
  readonly #accounts: AccountsInsert
  /** Decides about passwords for demonstrations. */
  demo: DemoPasswords = noDemoPasswords
  readonly #system: string | undefined

  /** `system`: what targets with the same users call it (see `databaseSystem`). */
  constructor(users: UserDirectory, passwords: Passwords, layout: AccountLayout, system?: string) {
    this.#users = users
    this.#passwords = passwords
    this.#system = system
    this.#accounts = new AccountsInsert({ ...users, groupMembersAreIds: false }, layout)
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
    const user = login === undefined ? undefined : await this.#users.lookupUserByLogin(login)
    const checked = await this.#passwords.check(user?.id, password)
    if (checked === false || user === undefined) return false
    if (checked !== 'demo' && !this.demo.isKnown(user.userID, password)) return true
    return this.demo.accepts(user.userID, caller?.local !== false)
  }

  /** A user whose password could not be stored is removed, so that a second attempt finds the login free. */
  async addPerson({ login, attributes, groups, password }: NewPerson): Promise<readonly EntryChange[]> {
    const hash = password === undefined ? undefined : await this.#passwords.hash(password)
    const user = { userID: login, attributes: Attributes.from(attributes), groups }
    const changes = await changesOf((request) =>
      this.#users.createUser(user, user.attributes.names(), request, { mustBeNew: true }),
    )
    if (hash === undefined) return changes
    try {
      await this.#passwords.set(await this.#idOf(login), hash)
    } catch (error) {
      await this.#users.deleteUser(user, unaudited)
      throw error
    }
    return [...changes, { ...passwordChange, action: 'add' }]
  }

  async setEntryPassword(dn: Dn, password: string, id: string | undefined): Promise<void> {
    const login = this.#accounts.loginOf(dn)
    const user = login === undefined ? undefined : await this.#users.lookupUserByLogin(login)
    if (user?.id === undefined || (id !== undefined && user.id !== id)) {
      throw new GatewayError('NOT_FOUND', `no such entry: "${dn}"`)
    }
    await this.#passwords.set(user.id, await this.#passwords.hash(password))
  }

  entryOf({ stored }: TargetAccount): Dn | undefined {
    return stored !== undefined && stored.system === this.#system ? this.#accounts.nameOf(stored.name) : undefined
  }

  async setPassword(login: string, password: string, kind: 'demo' | 'real' = 'real'): Promise<readonly EntryChange[]> {
    const id = await this.#idOf(login)
    await this.#passwords.set(id, await this.#passwords.hash(password), undefined, kind)
    return [passwordChange]
  }

  async removePerson(login: string): Promise<readonly EntryChange[]> {
    const user = await this.#users.lookupUserByLogin(login)
    if (user?.id !== undefined) await this.#passwords.remove(user.id)
    return user === undefined ? [] : changesOf((request) => this.#users.deleteUser(user, request))
  }

  async listPeople(limit: number, after?: string): Promise<PeoplePage> {
    const page = await this.#users.searchUsers({ offset: 0, limit, after })
    const people = []
    for (const user of page.items) {
      const hasPassword = user.id !== undefined && (await this.#passwords.has(user.id))
      people.push({ login: user.userID, entry: this.#accounts.personEntry(user), hasPassword })
    }
    return { people, next: page.next }
  }

  async close(): Promise<void> {
    await this.#users.close()
    await this.#passwords.close()
  }

  async #idOf(login: string): Promise<string> {
    const id = (await this.#users.lookupUserByLogin(login))?.id
    if (id === undefined) throw new GatewayError('NOT_FOUND', `there is no user with the login "${login}"`)
    return id
  }
}

const schema = z.record(z.string(), z.string())

/** Passwords that are known to everyone who has the configuration. */
interface DemoPasswords {
  /** Whether it is the login's password in the file, whether or not this gateway stored it. */
  isKnown(login: string, password: string): boolean
  /** Whether the password is accepted from this caller; logs a refusal. */
  accepts(login: string, local: boolean): boolean
}

/** For configurations without demo passwords: an earlier one may have left some in the database. */
const noDemoPasswords: DemoPasswords = { isKnown: () => false, accepts: () => false }

/**
 * Sets the file's passwords, unless a user has one already, or the database does not answer. Skips logins that no user
 * has. They work on a loopback listener, for callers on the same machine; another listener sets and accepts none.
 * Throws if the file cannot be used.
 */
export async function loadDemoPasswords(
  file: string,
  people: { setPassword(login: string, password: string, kind: 'demo'): Promise<unknown> },
  passwords: Pick<Passwords, 'any'>,
  { log, loopbackOnly = false }: Pick<InsertHost, 'log' | 'loopbackOnly'>,
): Promise<DemoPasswords> {
  const wanted = await read(file)
  const known = new Map(Object.entries(wanted).map(([login, password]) => [login.toLowerCase(), password]))
  const demo: DemoPasswords = {
    isKnown: (login, password) => known.get(login.toLowerCase()) === password,
    accepts: (login, local) => {
      if (loopbackOnly && local) return true
      log.warn('login rejected: demo passwords work only on this machine, on a loopback listener', { login })
      return false
    },
  }
  if (!loopbackOnly) {
    log.warn('demo passwords are off: the listener is not a loopback address', { file, logins: Object.keys(wanted) })
    return demo
  }
  try {
    if (await passwords.any()) return demo
    await Promise.all(Object.entries(wanted).map(([login, password]) => setUnlessAbsent(people, login, password)))
    const mode = ((await stat(file)).mode & 0o7777).toString(8).padStart(4, '0')
    log.warn(
      'demo passwords were set: anyone who can read the file can sign in on this machine. Run "gatehouse user passwd LOGIN" for each login to replace them',
      { file, mode, logins: Object.keys(wanted) },
    )
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'TARGET_UNREACHABLE') throw error
    log.warn('demo passwords not set, since the database does not answer', { file, error: error.message })
  }
  return demo
}

async function setUnlessAbsent(people: Parameters<typeof loadDemoPasswords>[1], login: string, password: string) {
  try {
    await people.setPassword(login, password, 'demo')
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'NOT_FOUND') throw error
  }
}

/** Messages describe the problem without the values. */
async function read(file: string): Promise<Readonly<Record<string, string>>> {
  let parsed: unknown
  try {
    parsed = JSON.parse(await readFile(file, 'utf8'))
  } catch (cause) {
    throw new Error(`demo passwords ${file}: cannot be read as JSON`, { cause })
  }
  const checked = schema.safeParse(parsed)
  if (!checked.success) throw new Error(`demo passwords ${file}: must be texts by login`)
  return checked.data
}
