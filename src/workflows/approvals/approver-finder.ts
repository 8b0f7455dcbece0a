import { isDeactivated } from '#identity/attributes.ts'
import type { DirectoryEntry, DirectorySearch, MemberDirectory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { type Identity, isLoginOnly, type UserRef } from '#identity/identity.ts'
import { parseMemberUrl } from '#identity/member-url.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { oneLine } from '#kernel/text/one-line.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { ApprovalUser } from '#workflows/record/operator.ts'

/** A search with this many results may be incomplete. */
const tooMany = 1000
/** The maximum number of directory branches with the same login. */
const maxNamesakes = 20
const maxName = 200

const people: Filter = { kind: 'present', attribute: 'uid' }
const anything: Filter = { kind: 'present', attribute: 'objectClass' }

/** A user that rules name. */
export interface Approver extends UserRef {
  readonly entry: DirectoryEntry
}

interface FinderParts {
  readonly directory: MemberDirectory
  readonly root: Dn
  readonly authorizations: ReadonlyMap<string, Authorization>
  readonly log: Logger
}

/** Finds users in the directory: approvers that rules name, and callers. Its errors are worth a retry. */
export class ApproverFinder {
  readonly #parts: FinderParts

  constructor(parts: FinderParts) {
    this.#parts = parts
  }

  /** All active users that match one of the rules, each once. Throws NO_APPROVERS for 1,000 or more. */
  async find(rules: readonly Rule[]): Promise<readonly Approver[]> {
    const found = new Map<Identity, Approver>()
    for (const rule of rules) {
      for (const entry of await this.#entries(rule)) {
        const login = entry.attributes.first('uid')
        if (login === undefined || login === '' || isDeactivated(entry.attributes)) continue
        const { identity } = entry
        if (!found.has(identity)) found.set(identity, { login, identity, entry })
      }
      if (found.size >= tooMany) throw tooManyFound(rule)
    }
    return [...found.values()]
  }

  /**
   * The user's entry; none for a caller without one, even if an entry has their login. All entries with that login
   * if only the login is known, as in rows from before identities.
   */
  async entriesOf({ identity, login, dn }: ApprovalUser): Promise<readonly DirectoryEntry[]> {
    if (isLoginOnly(identity)) return this.byLogin(login)
    const isOwn = (entry: DirectoryEntry): boolean => entry.identity === identity
    // First by the last known name of the entry, which every system can look up; then by the identifier.
    const seen = dn === undefined ? [] : await this.#search({ base: dn, scope: 'base', filter: people, limit: 1 })
    const known = seen.find(isOwn) ?? (await this.byLogin(login)).find(isOwn)
    const entry = known ?? (await this.#parts.directory.entry(identity))
    return entry === undefined ? [] : [entry]
  }

  /**
   * The display name; the login of a user without one, or who is not in the directory. With `withLogin`, the login
   * follows the name, which may be that of another user.
   */
  async nameOf(user: ApprovalUser, { withLogin = false } = {}): Promise<string> {
    const [entry, namesake] = await this.entriesOf(user)
    const login = oneLine(user.login, maxName)
    const name = oneLine((namesake === undefined ? entry?.attributes.first('displayName') : undefined) ?? '', maxName)
    if (name === '' || name === login) return login
    return withLogin ? `${name} (${login})` : name
  }

  /** Entries of any branch with the login. */
  byLogin(login: string): Promise<readonly DirectoryEntry[]> {
    return this.#holding('uid', login)
  }

  /** Entries with the name as login or mail address. */
  async named(name: string): Promise<readonly DirectoryEntry[]> {
    return [...(await this.byLogin(name)), ...(name.includes('@') ? await this.#holding('mail', name) : [])]
  }

  async #holding(attribute: string, value: string): Promise<readonly DirectoryEntry[]> {
    if (value === '') return []
    const filter: Filter = { kind: 'equal', attribute, value }
    const found = await this.#search({ base: this.#parts.root, scope: 'sub', filter, limit: maxNamesakes })
    return found.filter(({ attributes }) => attributes.values(attribute).some((one) => sameLogin(one, value)))
  }

  async #entries(rule: Rule): Promise<readonly DirectoryEntry[]> {
    const { directory, root } = this.#parts
    switch (rule.scope) {
      case 'dn':
        return this.#all(rule, { base: rule.dn, scope: 'sub', filter: people })
      case 'filter':
        return this.#all(rule, { base: root, scope: 'sub', filter: { kind: 'and', filters: [people, rule.filter] } })
      case 'group': {
        const members = await directory.members(rule.group, tooMany)
        if (members.length >= tooMany) throw tooManyFound(rule)
        return members
      }
      case 'dynamicGroup':
        return this.#dynamicMembers(rule)
      case 'custom':
        return this.#listed(rule)
    }
  }

  async #dynamicMembers(rule: Rule & { readonly group: Dn }): Promise<readonly DirectoryEntry[]> {
    const [group] = await this.#search({ base: rule.group, scope: 'base', filter: anything, limit: 1 })
    const found: DirectoryEntry[] = []
    for (const url of group?.attributes.values('memberURL') ?? []) {
      const { base, scope, filter } = parseMemberUrl(url)
      found.push(...(await this.#all(rule, { base, scope, filter: { kind: 'and', filters: [people, filter] } })))
      if (found.length >= tooMany) throw tooManyFound(rule)
    }
    return found
  }

  /** The users that a custom authorization would allow: names of entries, or logins. */
  async #listed(rule: Rule & { readonly scope: 'custom' }): Promise<readonly DirectoryEntry[]> {
    const authorization = this.#parts.authorizations.get(rule.name)
    if (authorization?.listPossibleApprovers === undefined) {
      this.#parts.log.warn('a custom authorization cannot say who may approve', { authorization: rule.name })
      return []
    }
    const names = await authorization.listPossibleApprovers(rule.params, rule.about)
    if (names.length >= tooMany) throw tooManyFound(rule)
    const found: DirectoryEntry[] = []
    for (const name of names) found.push(...(await this.#listedEntries(name)))
    return found
  }

  async #listedEntries(name: string): Promise<readonly DirectoryEntry[]> {
    if (!name.includes('=')) return this.byLogin(name)
    let base: Dn
    try {
      base = Dn.parse(name)
    } catch {
      return this.byLogin(name)
    }
    return this.#search({ base, scope: 'base', filter: people, limit: 1 })
  }

  async #all(rule: Rule, search: Omit<DirectorySearch, 'limit'>): Promise<readonly DirectoryEntry[]> {
    const found = await this.#search({ ...search, limit: tooMany })
    if (found.length >= tooMany) throw tooManyFound(rule)
    return found
  }

  #search(search: DirectorySearch): Promise<readonly DirectoryEntry[]> {
    return this.#parts.directory.search(search)
  }
}

const tooManyFound = ({ scope, constraint }: Rule): GatewayError =>
  new GatewayError(
    'NO_APPROVERS',
    `the rule ${scope} "${constraint}" finds ${tooMany} people or more, so none is asked`,
  )
