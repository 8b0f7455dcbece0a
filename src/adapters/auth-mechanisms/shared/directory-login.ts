import { setTimeout as wait } from 'node:timers/promises'
import { isDeactivated } from '#identity/attributes.ts'
import { type DirectoryEntry, directoryLink } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { type FilterTemplate, parseFilterTemplate } from '#identity/filter/filter-template.ts'
import type { UserRef } from '#identity/identity.ts'
import { shownAttributes } from '#identity/shown-attributes.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import type { LoginGuard } from '#sdk/auth/login.ts'
import type { Params } from '#sdk/module/params.ts'

/** The maximum length of a login. */
export const maxUser = 256
const maxPassword = 1024
/** A failed login is answered at a multiple of this, so that the time does not reveal why. */
const answerEveryMillis = 250
const refused = { kind: 'refused' } as const

/**
 * The filter that finds the user of a typed login, which only ever becomes a value of it. Undefined, with an issue
 * filed, if it is invalid.
 */
export function parseLookup(
  { uidAttr, uidIsFilter = false }: { readonly uidAttr: string; readonly uidIsFilter?: boolean },
  params: Params,
  issues: Issues,
): FilterTemplate | undefined {
  const at = params.pathOf('uidAttr')
  try {
    if (!uidIsFilter) Dn.of([uidAttr, 'x'])
    const lookup = parseFilterTemplate(uidIsFilter ? uidAttr : `(${uidAttr}=\${user})`)
    const [unknown] = [...lookup.placeholders].filter((name) => name !== 'user')
    if (unknown === undefined && lookup.placeholders.size === 1) return lookup
    issues.error(
      at,
      unknown === undefined
        ? '"uidAttr": the filter must contain ${user}; without it, every login would find the same user'
        : `"uidAttr": the form has no field "${unknown}", only \${user}`,
    )
  } catch (error) {
    issues.error(at, `"uidAttr": ${error instanceof Error ? error.message : String(error)}`)
  }
  return undefined
}

type FoundSubject = Pick<Subject, 'dn' | 'identity' | 'uid' | 'attributes' | 'link'>

type FoundLogin =
  | { readonly subject: FoundSubject; readonly isActive: boolean }
  /** No user matches, or several do. The reason is for the log. */
  | { readonly reason: string }

type PasswordCheck =
  | { readonly ok: true; readonly subject: FoundSubject }
  /** `login` is present if the user exists. The reason is for the log. */
  | { readonly ok: false; readonly reason: string; readonly login?: string }

/** A login and password, from a caller who may be on this machine. */
interface GivenLogin {
  readonly user: string
  readonly password: string
  readonly root: string
  readonly local: boolean
}

type PasswordLogin =
  | { readonly kind: 'authenticated'; readonly subject: FoundSubject }
  /** Wrong, or locked under another name of the account: the two must look the same. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'locked'; readonly retryAfterSeconds: number }

/** Finds the user of a typed login, and lets the directory check the password. */
export class DirectoryLogin {
  readonly #lookup: FilterTemplate
  readonly #uidAttr: string
  readonly #host: Pick<AuthHost, 'directory' | 'log'>
  /** A parent of users, by root, so that an unknown login costs as much work as a known one. */
  readonly #neighbours = new Map<string, Dn>()

  constructor(lookup: FilterTemplate, uidAttr: string, host: Pick<AuthHost, 'directory' | 'log'>) {
    this.#lookup = lookup
    this.#uidAttr = uidAttr
    this.#host = host
  }

  /** Counts the try. A refusal takes a time that does not reveal why. Throws only when the directory does not answer. */
  async logIn(given: GivenLogin, guard: LoginGuard): Promise<PasswordLogin> {
    const started = performance.now()
    const outcome = await this.#logIn(given, guard)
    if (outcome.kind === 'refused') {
      await wait(answerEveryMillis - ((performance.now() - started) % answerEveryMillis))
    }
    return outcome
  }

  async #logIn({ user, password, root, local }: GivenLogin, guard: LoginGuard): Promise<PasswordLogin> {
    if (user === '' || password === '' || user.length > maxUser || password.length > maxPassword) return refused
    let found: FoundLogin | undefined
    const find = async (): Promise<UserRef | undefined> => {
      found = await this.#find(user, root)
      return 'subject' in found ? { identity: found.subject.identity, login: found.subject.uid } : undefined
    }
    const turn = await guard.begin(user, { find })
    if (!turn.allowed) {
      if (!turn.concealed) return { kind: 'locked', retryAfterSeconds: turn.retryAfterSeconds }
      await this.#checkUnknownLogin(password, root)
      return refused
    }
    let checked: PasswordCheck
    try {
      checked = await this.#check(found ?? (await this.#find(user, root)), password, root, local)
    } catch (error) {
      await turn.abandoned()
      throw error
    }
    if (checked.ok) {
      await turn.succeeded()
      return { kind: 'authenticated', subject: checked.subject }
    }
    await turn.failed(checked.reason, checked.login)
    return refused
  }

  async #find(user: string, root: string): Promise<FoundLogin> {
    const base = Dn.parse(root)
    const filter = this.#lookup.bind(() => [user])
    const found =
      filter === undefined ? [] : await this.#host.directory.search({ base, scope: 'sub', filter, limit: 2 })
    const [entry, second] = found
    if (filter === undefined || entry === undefined) return { reason: 'no such user' }
    if (second !== undefined) return { reason: 'several users match' }
    this.#neighbours.set(base.key, entry.dn)
    return { subject: this.#subjectOf(entry, user, filter), isActive: !isDeactivated(entry.attributes) }
  }

  async #check(found: FoundLogin, password: string, root: string, local: boolean): Promise<PasswordCheck> {
    if ('reason' in found) {
      await this.#checkUnknownLogin(password, root)
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

  /** Does the work of a check, for a login that no user has. */
  async #checkUnknownLogin(password: string, root: string): Promise<void> {
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
