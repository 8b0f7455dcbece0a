import type { DirectoryEntry } from '#identity/directory.ts'
import { directoryLink } from '#identity/directory-link.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { FilterTemplate } from '#identity/filter/filter-template.ts'
import type { Subject } from '#identity/subject.ts'
import { isSwitchedOff } from '#identity/switched-off.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import { shownAttributes } from '#sdk/module/shown-attributes.ts'

export type FoundSubject = Pick<Subject, 'dn' | 'identity' | 'uid' | 'attributes' | 'link'>

export type FoundLogin =
  | { readonly subject: FoundSubject; readonly isActive: boolean }
  /** No user matches, or several do. The reason is for the log. */
  | { readonly reason: string }

export type PasswordCheck =
  | { readonly ok: true; readonly subject: FoundSubject }
  /** `login` where there is such a person. The reason is for the log. */
  | { readonly ok: false; readonly reason: string; readonly login?: string }

/** Finds who a typed login is, and asks the directory whether the password is theirs. */
export class DirectoryLogin {
  readonly #lookup: FilterTemplate
  readonly #uidAttr: string
  readonly #host: Pick<ModuleHost, 'directory' | 'log'>
  /** Where people stand, by root, so that somebody unknown costs as much work as somebody known. */
  readonly #neighbours = new Map<string, Dn>()

  constructor(lookup: FilterTemplate, uidAttr: string, host: Pick<ModuleHost, 'directory' | 'log'>) {
    this.#lookup = lookup
    this.#uidAttr = uidAttr
    this.#host = host
  }

  /** The user who has the login. Throws only when the directory does not answer. */
  async find(user: string, root: string): Promise<FoundLogin> {
    const base = Dn.parse(root)
    const filter = this.#lookup.bind(() => [user])
    const found =
      filter === undefined ? [] : await this.#host.directory.search({ base, scope: 'sub', filter, limit: 2 })
    const [entry, second] = found
    if (filter === undefined || entry === undefined) return { reason: 'no such user' }
    if (second !== undefined) return { reason: 'several users match' }
    this.#neighbours.set(base.key, entry.dn)
    return { subject: this.#subjectOf(entry, user, filter), isActive: !isSwitchedOff(entry.attributes) }
  }

  /** Throws only when the directory does not answer. */
  async check(found: FoundLogin, password: string, root: string, local: boolean): Promise<PasswordCheck> {
    if ('reason' in found) {
      await this.checkNobody(password, root)
      return { ok: false, reason: found.reason }
    }
    const { subject, isActive } = found
    const { dn, uid: login } = subject
    if (!(await this.#bind(dn, password, local))) return { ok: false, reason: 'wrong password', login }
    return isActive ? { ok: true, subject } : { ok: false, reason: 'switched off', login }
  }

  async #bind(dn: Dn, password: string, local = false): Promise<boolean> {
    try {
      return await this.#host.directory.bind(dn, password, { local })
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'NOT_SUPPORTED') throw error
      this.#host.log.warn('login rejected: the directory of this user does not check passwords', { dn: dn.toString() })
      return false
    }
  }

  /** The work of a check, for a name beside that of somebody real. */
  async checkNobody(password: string, root: string): Promise<void> {
    const base = Dn.parse(root)
    const neighbour = this.#neighbours.get(base.key) ?? (await this.#anybody(base))
    const parent = neighbour?.parent
    if (parent !== undefined) await this.#bind(parent.child(this.#uidAttr, 'nobody-of-this-name'), password)
  }

  async #anybody(base: Dn): Promise<Dn | undefined> {
    const filter = { kind: 'present', attribute: this.#uidAttr } as const
    const [entry] = await this.#host.directory.search({ base, scope: 'sub', filter, limit: 1 })
    if (entry !== undefined) this.#neighbours.set(base.key, entry.dn)
    return entry?.dn
  }

  #subjectOf(entry: DirectoryEntry, user: string, filter: Filter): FoundSubject {
    const attributes = shownAttributes(entry)
    const link = directoryLink(entry, { filter, uidAttr: this.#uidAttr })
    const uid = attributes.first(this.#uidAttr) ?? user
    return { dn: entry.dn, identity: entry.identity, uid, attributes, link }
  }
}
