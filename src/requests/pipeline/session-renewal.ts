import { isDeactivated } from '#identity/attributes.ts'
import { type DirectoryEntry, type DirectoryLink, type EntryDirectory, entryId } from '#identity/directory.ts'
import { storeFilter } from '#identity/filter/stored-filter.ts'
import { shownAttributes } from '#identity/shown-attributes.ts'
import type { Subject } from '#identity/subject.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { LoginAudit, LoginEvent, LoginMeter } from '#requests/login/login-audit.ts'
import type { ChainRunner } from '#requests/routing/chain.ts'
import type { LiveSession, Sessions } from '#requests/sessions/sessions.ts'

/** How long directory data of a logged-in user is used without a check. */
export interface RenewalTimes {
  readonly everyMillis: number
  /** How long it is used after the last answer if the directory does not answer. */
  readonly graceMillis: number
}

export const defaultRenewalTimes: RenewalTimes = { everyMillis: 60_000, graceMillis: 900_000 }

interface RenewalParts {
  readonly sessions: Sessions
  readonly directory: Pick<EntryDirectory, 'search'>
  readonly chains: ChainRunner
  readonly loginAudit: LoginAudit
  readonly loginMeter: LoginMeter
  readonly clock: Clock
  readonly log: Logger
  readonly times?: RenewalTimes | undefined
}

type Asker = LoginEvent['request']
type Look = { readonly subject: Subject } | { readonly ended: string }

/** The longest time that a request waits for the directory. */
const waitMillis = 5_000
/** How long to wait before asking again after no answer, per session. */
const retryMillis = 5_000

/**
 * Looks up logged-in users in the directory again, so that deleting or deactivating a user, or removing a group,
 * takes effect within `everyMillis` of the next use of a session.
 */
export class SessionRenewal {
  readonly #parts: RenewalParts
  readonly #times: RenewalTimes
  /** Running checks, by session and by directory query. */
  readonly #renewals = new Map<string, Promise<LiveSession | undefined>>()
  readonly #questions = new Map<string, Promise<DirectoryEntry | undefined>>()

  constructor(parts: RenewalParts) {
    this.#parts = parts
    this.#times = parts.times ?? defaultRenewalTimes
  }

  /**
   * The session with its current subject; undefined if it has ended. Throws TARGET_UNREACHABLE if the directory has
   * not answered for longer than the grace period.
   */
  current(session: LiveSession, asker: Asker): Awaitable<LiveSession | undefined> {
    const { looked, retry, hashedId, foundAt: now } = session
    const { link } = session.subject
    if (link === undefined) return session
    if (now < looked + this.#times.everyMillis) return session
    if (now < retry) return this.#withinGrace(session, now)
    return once(this.#renewals, hashedId, () => this.#renew(session, link, asker))
  }

  async #renew(session: LiveSession, link: DirectoryLink, asker: Asker): Promise<LiveSession | undefined> {
    const { sessions, clock, log } = this.#parts
    let look: Look
    try {
      look = await inTime(this.#look(session, link))
    } catch (err) {
      const now = clock().getTime()
      log.warn('the directory does not answer for a signed-in user', { err, dn: link.dn.toString() })
      return this.#withinGrace(sessions.postponed(session, new Date(now + retryMillis)), now, err)
    }
    if ('subject' in look) return await sessions.renewed(session, look.subject)
    await this.#end(session, look.ended, asker)
    return undefined
  }

  async #look({ subject, renewals }: LiveSession, link: DirectoryLink): Promise<Look> {
    const key = JSON.stringify([link.dn.key, storeFilter(link.filter)])
    const entry = await once(this.#questions, key, () => inTime(this.#ask(link)))
    if (entry === undefined) return { ended: 'the directory has no active user of that name' }
    if (isDeactivated(entry.attributes)) return { ended: 'switched off in the directory' }
    if (link.id !== undefined && entryId(entry.attributes) !== link.id) return { ended: 'the name is another’s now' }
    const attributes = shownAttributes(entry)
    for (const [name, values] of link.added) if (!attributes.has(name)) attributes.setClaim(name, values)
    const login = (link.uidAttr === undefined ? undefined : attributes.first(link.uidAttr)) ?? subject.uid
    if (login.toLowerCase() !== subject.uid.toLowerCase()) return { ended: 'the login is another one now' }
    const renewed = await this.#parts.chains.renew({ ...subject, attributes }, renewals)
    return 'reason' in renewed ? { ended: renewed.reason } : { subject: renewed }
  }

  async #ask({ dn: base, filter }: DirectoryLink): Promise<DirectoryEntry | undefined> {
    const [entry] = await this.#parts.directory.search({ base, scope: 'base', filter, limit: 1 })
    return entry
  }

  /** Tokens that an own issuer issued for the sessions end with them. */
  async #end(session: LiveSession, reason: string, request: Asker): Promise<void> {
    const { sessions, loginAudit, loginMeter } = this.#parts
    const { uid: login, chain } = session.subject
    for (const { id: sessionId, application } of await sessions.endLinked(session)) {
      loginMeter.counted(chain, 'ended')
      await loginAudit.note({
        action: 'delete',
        request,
        login,
        chain,
        application,
        sessionId,
        reason,
        by: 'gatehouse',
      })
    }
  }

  #withinGrace(session: LiveSession, now: number, cause?: unknown): LiveSession {
    const { everyMillis, graceMillis } = this.#times
    if (now < session.looked + Math.max(everyMillis, graceMillis)) return session
    throw new GatewayError(
      'TARGET_UNREACHABLE',
      `the directory has not answered about "${session.subject.uid}" for too long`,
      { cause, retryAfter: retryMillis / 1000 },
    )
  }
}

/** The running check for that key, or a new one. */
function once<T>(underWay: Map<string, Promise<T>>, key: string, begin: () => Promise<T>): Promise<T> {
  let work = underWay.get(key)
  if (work === undefined) {
    work = begin().finally(() => underWay.delete(key))
    underWay.set(key, work)
  }
  return work
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(new GatewayError('TARGET_TIMEOUT', `the directory took longer than ${waitMillis} ms`))
  }, waitMillis)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
