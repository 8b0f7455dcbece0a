import type { Configuration } from '#config/configuration/configuration.ts'
import type { VirtualDirectory } from '#directory/virtual-directory.ts'
import { isDeactivated } from '#identity/attributes.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { type Identity, storedIdentity } from '#identity/identity.ts'
import { shownAttributes } from '#identity/shown-attributes.ts'
import type { Subject } from '#identity/subject.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { newId, newSecret, secretHash } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import { mailLanguage } from '#mail/mail-reader.ts'
import type { NotificationStore } from '#mail/notification-store.ts'
import { entryKey } from '#requests/login/device-cookie.ts'
import type { LoginServices } from '#requests/login/login-desk.ts'
import { createGuard } from '#requests/login/login-guard.ts'
import type { ChangeClaim, PasswordChangeStore } from '#requests/login/password-change-store.ts'
import { endedRows } from '#requests/sessions/session-end-audit.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'
import { checkMail, isMailAddress, type MailText } from '#sdk/mail/mail.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import { languageOf, type PageReader, type TextsLanguage, textsFor } from '#sdk/page/page-texts.ts'
import { hasPasswords } from '#sdk/target/target.ts'
import type { TaskTargets } from '#sdk/workflow/workflow-task.ts'
import {
  type Asker,
  causeOf,
  changeName,
  PasswordAudit,
  type PasswordAuditParts,
  resetLink,
  unknownOutcome,
} from './password-audit.ts'
import type { PasswordWriter } from './password-writer.ts'
import type { ResetLinks } from './reset-links.ts'

/** A request for a mail with a link to reset a password. */
export interface ResetRequest extends ResetLinks {
  /** Where the new password is written. */
  readonly form: string
  /** Finds the user by the typed text. */
  readonly filter: Filter
  readonly request: Pick<GatewayRequest, 'id' | 'remoteAddress' | 'headers'>
  /** The run that mails the link, for the audit; absent if anyone requested it. */
  readonly cause?: { readonly requestor: string; readonly workflow: { readonly id: string; readonly name: string } }
}

/** `unknown`: not exactly one active user with a mail address and a password here was found. */
export type ResetOutcome = 'sent' | 'unknown' | 'too many'

/** A new password, with the secret of the mailed link. */
export interface PasswordReset {
  readonly form: string
  readonly secret: string
  readonly password: string
  readonly writer: PasswordWriter
  readonly request: Pick<GatewayRequest, 'id' | 'remoteAddress' | 'headers'>
}

/** A new password of a user who is logged in. */
interface OwnPasswordChange {
  readonly subject: Subject
  /** The public id of the session that stays. */
  readonly session: string | undefined
  readonly application: string
  readonly current: string
  readonly password: string
  readonly writer: PasswordWriter
  readonly request: GatewayRequest
}

export interface PasswordServices
  extends Pick<LoginServices, 'loginFailures' | 'loginAudit' | 'loginMeter'>,
    PasswordAuditParts {
  readonly passwordChanges: PasswordChangeStore
  readonly notifications: Pick<NotificationStore, 'settingsOf'>
}

interface PasswordParts {
  readonly services: PasswordServices
  readonly configuration: Pick<Configuration, 'directoryRoot' | 'chains'>
  readonly directory: VirtualDirectory
  readonly targets: Required<Pick<TaskTargets, 'get' | 'ownersOf'>>
}

/** How long one write may take before the outcome counts as unknown. */
const leaseMillis = 120_000
/** A search that finds more users than this counts as no match. */
const maxFound = 10

/** The user whose password it is about. */
interface Person {
  readonly dn: Dn
  /** Stored because another entry may get the name later. */
  readonly identity: Identity
  readonly login: string
}

/** Passwords that users set themselves. Every change ends sessions, and is audited, with the commit that reports it. */
export class PasswordChanges {
  readonly #parts: PasswordParts
  readonly #audit: PasswordAudit

  constructor(parts: PasswordParts) {
    this.#parts = parts
    this.#audit = new PasswordAudit(parts.services)
  }

  /**
   * Sends a link if exactly one active user with a mail address is found. An anonymous caller must not learn the
   * outcome. Throws only if the directory or the database doesn't answer.
   */
  async requestReset({ form, filter, root, writer, ...rest }: ResetRequest): Promise<ResetOutcome> {
    const { services, configuration } = this.#parts
    const { request, cause, validMillis, perHour, write } = rest
    const base = root ?? configuration.directoryRoot
    const found = await this.#parts.directory.search({ base, scope: 'sub', filter, limit: maxFound })
    const people = found.flatMap((entry) => this.#reachable(entry, writer))
    const [person, another] = people
    if (person === undefined || another !== undefined || found.length >= maxFound) {
      const reason = another === undefined ? 'no active user with a mail address' : 'several users match'
      await this.#audit.refuse('unknown', reason, request)
      return 'unknown'
    }
    const secret = newSecret()
    const link = {
      // A repeated step of a run finds the link that it mailed before.
      id: cause === undefined ? newId() : secretHash(JSON.stringify([cause.workflow.id, form, person.identity])),
      form,
      owner: person.identity,
      data: { ...personToJson(person), mail: mailHash(person.mail) },
      tokenHash: secretHash(secret),
      validMillis,
    }
    const mail = outgoing(`link ${link.id}`, person.mail, write(secret, await this.#languageOf(person.entry, request)))
    const row = this.#audit.row(person.login, request, { ...resetLink, ...cause, action: 'issue' })
    const outcome = await services.passwordChanges.addLink(link, perHour, [mail], [row])
    if (outcome !== 'too many') return 'sent'
    await this.#audit.refuse(person.login, `more than ${perHour} links in an hour`, request)
    return 'too many'
  }

  /** Whether the secret's link can be used now. */
  async hasLink(form: string, secret: string): Promise<boolean> {
    return (await this.#parts.services.passwordChanges.findLink(form, secretHash(secret))) !== undefined
  }

  /**
   * Sets the password and uses up the link; all sessions of the user end. `no link`: the link was used or replaced,
   * has expired, or its user is gone or deactivated. `in use`: the link is being used right now. Throws
   * WEAK_PASSWORD, and errors of the target; the link can then be used again.
   */
  async reset({ form, secret, password, writer, request }: PasswordReset): Promise<'changed' | 'no link' | 'in use'> {
    const store = this.#parts.services.passwordChanges
    const tokenHash = secretHash(secret)
    const link = await store.findLink(form, tokenHash)
    const person = link && personFromJson(link.data)
    if (person === undefined) {
      await this.#audit.refuse('unknown', 'the link was used or replaced, or has expired', request)
      return 'no link'
    }
    const entry = await this.#entryOf(person)
    if (entry === undefined) {
      await this.#audit.refuse(person.login, 'the user is gone or deactivated', request)
      return 'no link'
    }
    const sentTo = link?.data['mail']
    const isTheirs = entry.attributes.values(writer.mailAttribute).some((mail) => mailHash(mail) === sentTo)
    if (!isTheirs) {
      await this.#audit.refuse(person.login, 'the user has another mail address now', request)
      return 'no link'
    }
    await writer.check(password, valuesOf(entry), request)
    const claim = await store.claimLink(form, tokenHash, leaseMillis)
    if (claim === undefined) {
      await this.#audit.refuse(person.login, 'the link is being used', request)
      return 'in use'
    }
    await this.#write(claim, { person, entry, password, writer, request, how: 'reset link', session: undefined })
    return 'changed'
  }

  /** Whether the subject has a password here that `change` can change. */
  canChange({ link, attributes }: Subject, writer: PasswordWriter): boolean {
    if (link === undefined) return false
    return writer.target === undefined
      ? this.#parts.directory.keepsPassword(link.dn)
      : attributes.first(writer.loginAttribute) !== undefined
  }

  /**
   * Sets the subject's own password; ends the other sessions of the user, and returns their number. Throws
   * WRONG_PASSWORD, WEAK_PASSWORD, TOO_MANY_REQUESTS after failed attempts, and NOT_SUPPORTED if `canChange` is
   * false.
   */
  async change(change: OwnPasswordChange): Promise<number> {
    const { subject, session, current, password, writer, request } = change
    const { link, identity, uid: login } = subject
    const entry = link && (await this.#entryOf({ dn: link.dn, identity, login }))
    if (link === undefined || entry === undefined || !this.canChange(subject, writer)) {
      throw new GatewayError('NOT_SUPPORTED', `"${login}" has no password that can be changed here`, {
        publicText: 'Your password can’t be changed here.',
      })
    }
    await this.#verify(change, entry.dn, current)
    if (password === current) {
      throw new GatewayError('WEAK_PASSWORD', 'the new password is the current one', {
        publicText: textsFor(request)('password.same'),
      })
    }
    await writer.check(password, valuesOf(entry), request)
    const person = { dn: entry.dn, identity, login }
    const begun = { id: newId(), form: change.application, owner: identity, data: personToJson(person) }
    const stored = session === undefined ? begun : { ...begun, data: { ...begun.data, session } }
    const claim = await this.#parts.services.passwordChanges.begin(stored, leaseMillis)
    return await this.#write(claim, { person, entry, password, writer, request, how: 'current password', session })
  }

  /** Throws WRONG_PASSWORD and TOO_MANY_REQUESTS. Failures count like those of logins. */
  async #verify({ subject, application, request, session }: OwnPasswordChange, dn: Dn, current: string): Promise<void> {
    const { services, configuration } = this.#parts
    const { loginFailures: failures, loginAudit: audit, loginMeter: meter, clock, passwordChanges } = services
    const { chain, uid, identity } = subject
    const limits = configuration.chains.get(chain)?.limits
    // A session counts as a known device: failed logins of others don't lock its user out of the change. It would
    // have ended with an earlier change.
    const issued = Number.MAX_SAFE_INTEGER
    const devices = session === undefined ? [] : [{ entry: entryKey(identity), id: session, issued }]
    const guard = createGuard(
      { failures, audit, meter, clock, passwordChanges },
      { request, chain, application, limits, devices },
    )
    const turn = await guard.begin(uid, { find: async () => ({ identity, login: uid }) })
    if (!turn.allowed) {
      throw new GatewayError('TOO_MANY_REQUESTS', `the account "${uid}" is locked after failed attempts`, {
        publicText: 'Too many attempts failed. Try again later.',
        retryAfter: turn.retryAfterSeconds,
      })
    }
    let right: boolean
    try {
      right = await this.#parts.directory.bind(dn, current, { local: request.isLocal === true })
    } catch (error) {
      await turn.abandoned()
      throw error
    }
    if (right) return await turn.succeeded()
    await turn.failed('wrong current password', uid)
    throw new GatewayError('WRONG_PASSWORD', `wrong current password of "${uid}"`)
  }

  /** Sessions end with the commit that reports the change; if this process dies before, `settleAbandoned` ends them. */
  async #write(claim: ChangeClaim, write: Write): Promise<number> {
    const store = this.#parts.services.passwordChanges
    const { person, entry, writer, request, session, how } = write
    let target: string
    let others: readonly Identity[]
    try {
      ;({ target, others } = await this.#set(claim.id, write))
    } catch (thrown) {
      const error = asGatewayError(thrown)
      const isUnknown = !error.isRefusal && error.code !== 'TARGET_FAILED'
      await store.release(claim, isUnknown ? unknownOutcome(claim) : { audit: [] })
      if (error.code === 'NOT_FOUND') {
        throw new GatewayError('CONFLICT', `the account of "${person.login}" is not where passwords are stored`, {
          cause: error,
          publicText: 'Your account isn’t in the system that stores passwords. Ask your administrator.',
        })
      }
      if (error.code !== 'BAD_REQUEST') throw error
      throw new GatewayError('WEAK_PASSWORD', `the password of "${person.login}" was rejected: ${error.message}`, {
        cause: error,
        publicText: textsFor(request)('password.refused'),
      })
    }
    const { workflow } = causeOf(claim.id, person.login, request)
    const change = { kind: 'attribute', action: 'replace', attribute: 'password', target, workflow } as const
    const mail = entry.attributes.first(writer.mailAttribute)
    const text =
      mail === undefined || !isMailAddress(mail)
        ? undefined
        : writer.confirmation(await this.#languageOf(entry, request))
    return await store.finish(claim, {
      ending: {
        owners: [claim.owner, ...others],
        logins: [],
        exceptPublicId: session,
        audit: (ended) => endedRows(ended, causeOf(claim.id, person.login, request)),
      },
      mails: mail === undefined || text === undefined ? [] : [outgoing(`confirmation ${claim.id}`, mail, text)],
      audit: [this.#audit.row(person.login, request, change, how)],
    })
  }

  /** The system that was written to, and other entries that show the same account. */
  async #set(
    id: string,
    { person, entry, password, writer }: Write,
  ): Promise<{ target: string; others: readonly Identity[] }> {
    const { targets, services } = this.#parts
    if (writer.target === undefined) {
      return { target: await this.#parts.directory.setPassword(person.dn, password, entry.id), others: [] }
    }
    const target = targets.get(writer.target)
    const userID = entry.attributes.first(writer.loginAttribute)
    if (userID === undefined || !hasPasswords(target)) {
      throw new GatewayError('NOT_SUPPORTED', `target "${writer.target}" can't store the password of "${person.dn}"`)
    }
    // A login does not prove ownership: if the account's owner is known, it must be this user.
    const owners = await targets.ownersOf(writer.target, userID)
    if (owners.length > 0 && !owners.includes(person.identity)) {
      throw new GatewayError('CONFLICT', `"${userID}" at target "${writer.target}" is not "${person.dn}"`)
    }
    const user = { userID, attributes: entry.attributes, groups: [] }
    const workflow = { id, name: changeName }
    const common = { workflow, idempotencyKey: id, requestor: person.login, params: {}, log: services.log }
    await target.setUserPassword(user, password, { ...common, audit: () => {} })
    return { target: writer.target, others: owners }
  }

  /** The current entry; undefined if it is gone, was replaced by another user's, or is deactivated. */
  async #entryOf({ dn, identity }: Person): Promise<DirectoryEntry | undefined> {
    const filter = { kind: 'present', attribute: 'objectClass' } as const
    const [entry] = await this.#parts.directory.search({ base: dn, scope: 'base', filter, limit: 1 })
    if (entry === undefined || isDeactivated(entry.attributes)) return undefined
    return entry.identity === identity ? entry : undefined
  }

  /** The user with a mail address whose password can be set. */
  #reachable(
    entry: DirectoryEntry,
    writer: ResetRequest['writer'],
  ): (Person & { readonly mail: string; readonly entry: DirectoryEntry })[] {
    const { dn, identity, attributes } = entry
    const mail = attributes.first(writer.mailAttribute)
    const login = attributes.first(writer.loginAttribute)
    if (mail === undefined || login === undefined || !isMailAddress(mail) || isDeactivated(attributes)) return []
    if (writer.target === undefined && !this.#parts.directory.keepsPassword(dn)) return []
    return [{ dn, identity, login, mail, entry }]
  }

  /** The language of a mail to the user; that of the request if no other is known. */
  async #languageOf({ identity, attributes }: DirectoryEntry, request: PageReader): Promise<TextsLanguage> {
    const settings = await this.#parts.services.notifications.settingsOf([identity])
    return mailLanguage(settings.get(identity), attributes, { fallback: languageOf(request) })
  }
}

interface Write {
  readonly person: Person
  readonly entry: DirectoryEntry
  readonly password: string
  readonly writer: PasswordWriter
  readonly request: Asker & PageReader
  readonly how: string
  readonly session: string | undefined
}

const valuesOf = (entry: DirectoryEntry): string[] => [...shownAttributes(entry)].flatMap(([, values]) => [...values])

/** A hash, since the address itself is not needed. */
const mailHash = (mail: string): string => secretHash(mail.trim().toLowerCase())

const personToJson = ({ dn, identity, login }: Person): JsonObject => ({ dn: dn.toString(), identity, login })

function personFromJson({ dn, identity, login }: JsonObject): Person | undefined {
  if (typeof dn !== 'string' || typeof identity !== 'string' || typeof login !== 'string') return undefined
  return { dn: Dn.parse(dn), identity: storedIdentity(identity), login }
}

function outgoing(occasion: string, recipient: string, text: MailText): NewMail {
  const mail = { ...text, recipient }
  checkMail(mail)
  return { ...mail, id: secretHash(`password ${occasion}`) }
}
