import { z } from 'zod'
import type { Configuration, CookieConfig } from '#config/configuration/configuration.ts'
import type { Identity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId, newSecret, secretHash } from '#kernel/ids.ts'
import { isForbiddenKey, isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import type { ChainStep } from '#requests/routing/chain.ts'
import type { OperatorChange } from '#sdk/auth/operator-change.ts'
import type {
  CompanionSession,
  SessionAccess,
  SessionContribution,
  SessionHandle,
  SessionView,
} from '#sdk/auth/session.ts'
import { type GatewayRequest, header } from '#sdk/http/http.ts'
import { type Session, sessionExpiry, touchEverySeconds } from './session.ts'
import { readSessionCookie, writeSessionCookie } from './session-cookie.ts'
import { endedRows } from './session-end-audit.ts'
import type { SessionStore } from './session-store.ts'
import { storedSteps, storedSubject, storeSteps, storeSubject } from './stored-subject.ts'

interface SessionApplication {
  readonly name: string
  readonly cookies: CookieConfig | undefined
}

type CookieRequest = Pick<GatewayRequest, 'headers' | 'host'>

export interface SessionStart {
  readonly request: Pick<GatewayRequest, 'headers' | 'host' | 'remoteAddress'>
  readonly subject: Subject
  /** The session that this one replaces. It ends, so that a planted id is useless. */
  readonly before: LiveSession | undefined
  /** The announced public id; that of the previous session for a step-up of the same user. */
  readonly id?: string
  readonly contribution?: SessionContribution
  /** The links to ask again with the directory; none if absent. */
  readonly renewals?: readonly ChainStep[]
}

export type CompanionStart = Pick<SessionStart, 'request' | 'subject' | 'renewals'> & {
  readonly companions: readonly CompanionSession[]
  /** When the user logged in; now if absent. */
  readonly authenticated?: Date
}

/** What this process knows of a session's user. */
interface SessionHolder {
  /** One object until the next directory check, so that decisions about it can be cached until then. */
  readonly subject: Subject
  readonly renewals: readonly ChainStep[]
  /** When the directory last confirmed the subject, in milliseconds. */
  readonly looked: number
  /** The directory did not answer and is not asked again before this time. */
  readonly retry: number
}

/** A stored session as the request sees it. Does not have the secret of the cookie; only its hash is stored. */
export interface LiveSession extends SessionHolder {
  readonly hashedId: string
  /** Where it was started. */
  readonly application: string
  readonly expires: Date
  /** When it was read, in milliseconds. */
  readonly foundAt: number
  readonly handle: SessionHandle
}

type EndedSession = Pick<SessionView, 'id' | 'application'>

/** The maximum lifetime of a session, even if it is in use. */
const absoluteSeconds = 12 * 60 * 60
/** If the configuration has no idle timeout. */
const defaultIdleSeconds = 15 * 60
const maxAgentLength = 200
/** The context of companion sessions, which no cookie has. */
const withoutCookie = 'companion'
/** How often a check without changes is stored, in case this process ends. */
const noteLookMillis = 5 * 60_000

/**
 * Cookie sessions. The cookie has a random secret; the store has only its hash. Applications whose cookies have the
 * same name and domain share their sessions.
 */
export class Sessions {
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #slots: SessionSlots
  readonly #holders: BoundedCache<SessionHolder>

  constructor(store: SessionStore, clock: Clock, secrets: SecretBox) {
    this.#store = store
    this.#clock = clock
    this.#slots = new SessionSlots(store, secrets, clock)
    this.#holders = new BoundedCache(10_000, clock)
  }

  /**
   * Undefined without a valid, unexpired session of the application. Counts as use of it, unless `options` say
   * otherwise.
   */
  async find(
    application: SessionApplication,
    request: CookieRequest,
    { use = true }: { readonly use?: boolean } = {},
  ): Promise<LiveSession | undefined> {
    const session = await this.#read(application, request)
    if (session === undefined) return undefined
    const now = this.#clock()
    if (use) await this.#store.touch(session, now)
    return this.#live(session, now)
  }

  /** Starts a session; returns it with its Set-Cookie header. */
  async start(
    application: SessionApplication,
    { request, subject, before, id, contribution = {}, renewals = [] }: SessionStart,
  ): Promise<{ readonly cookie: string; readonly session: LiveSession }> {
    const config = application.cookies
    if (config === undefined) throw new Error(`application "${application.name}" keeps no sessions`)
    const secret = newSecret()
    const now = this.#clock()
    const stepsUp =
      before !== undefined &&
      before.subject.identity === subject.identity &&
      (id ?? before.handle.id) === before.handle.id
    const publicId = stepsUp ? before.handle.id : (id ?? newId())
    const old = stepsUp ? await this.#store.find(before.hashedId, now) : undefined
    const kept = old && readData(old.data)
    const slots: Record<string, string> = old === undefined || kept === undefined ? {} : { ...slotsOf(old.data) }
    for (const [slot, value] of Object.entries(contribution.slots ?? {})) {
      slots[slot] = await this.#slots.seal(publicId, slot, value)
    }
    const ends = old?.ends ?? new Date(now.getTime() + absoluteSeconds * 1000)
    const session: Session = {
      id: secretHash(secret),
      publicId,
      context: contextOf(config, request.host),
      application: application.name,
      owner: subject.identity,
      userID: subject.uid,
      data: { ...beginningOf({ request, subject, renewals }, now), ...(kept && agentOf(kept)), slots },
      created: old?.created ?? now,
      touched: now,
      idleSeconds: idleSecondsOf(config),
      ends,
    }
    await this.#store.create(session, before?.hashedId)
    if (before !== undefined) this.#holders.delete(before.hashedId)
    for (const mark of contribution.marks ?? []) await this.#store.mark(publicId, secretHash(mark), ends)
    await this.startCompanions({ request, subject, renewals, companions: contribution.companions ?? [] })
    const live = this.#live(session, now)
    if (live === undefined) throw new Error('could not read back the new session')
    return { cookie: writeSessionCookie(config, secret), session: live }
  }

  /** Nobody has the secrets of these sessions; their public ids lead to them. */
  async startCompanions({ companions, ...start }: CompanionStart): Promise<void> {
    const now = this.#clock()
    const { authenticated = now } = start
    for (const { id, application, idleSeconds } of companions) {
      await this.#store.create({
        id: secretHash(newSecret()),
        publicId: id,
        context: withoutCookie,
        application,
        owner: start.subject.identity,
        userID: start.subject.uid,
        data: { ...beginningOf(start, now), authenticated: authenticated.getTime(), slots: {} },
        created: now,
        touched: now,
        idleSeconds: idleSecondsOf({ idleSeconds }),
        ends: new Date(authenticated.getTime() + absoluteSeconds * 1000),
      })
    }
  }

  /** Counts as use of a companion session. Other sessions are used by their cookie. */
  async useCompanion(publicId: string): Promise<void> {
    const now = this.#clock()
    const session = await this.#store.findPublic(publicId, now)
    if (session?.context === withoutCookie) await this.#store.touch(session, now)
  }

  async end(session: LiveSession): Promise<void> {
    this.#holders.delete(session.hashedId)
    await this.#store.delete(session.hashedId)
  }

  /** The Set-Cookie header that removes the application's cookie. */
  clearing(config: CookieConfig): string {
    return writeSessionCookie(config, undefined)
  }

  /** How long the request's session lasts if it is not used again. Does not count as use. */
  async millisLeft(application: SessionApplication, request: CookieRequest): Promise<number | undefined> {
    const session = await this.#read(application, request)
    if (session === undefined || application.cookies === undefined) return undefined
    const idle = session.touched.getTime() + idleSecondsOf(application.cookies) * 1000
    return Math.max(0, Math.min(sessionExpiry(session).getTime(), idle) - this.#clock().getTime())
  }

  async ofOwner(owner: Identity): Promise<readonly SessionView[]> {
    return (await this.#store.ofOwner(owner, this.#clock())).flatMap((session) => {
      const data = readData(session.data)
      return data === undefined ? [] : [viewOf(session, data)]
    })
  }

  endOne(owner: Identity, publicId: string): Promise<boolean> {
    return this.#store.deletePublic(owner, publicId)
  }

  endAll(owner: Identity, except: string | undefined): Promise<number> {
    return this.#store.deleteOfOwner(owner, except)
  }

  endByOperator(owner: Identity, { by, reason, requestId }: OperatorChange, publicId?: string): Promise<number> {
    const cause = { requestor: by, workflow: { id: '', name: 'console' }, requestId, reason }
    const now = this.#clock()
    return this.#store.endAudited(owner, publicId, now, (ended) => endedRows(ended, cause, now))
  }

  endMarked(mark: string): Promise<number> {
    return this.#store.deleteMarked(secretHash(mark))
  }

  /** Does not count as use. */
  async findPublic(publicId: string): Promise<LiveSession | undefined> {
    const now = this.#clock()
    const session = await this.#store.findPublic(publicId, now)
    return session === undefined ? undefined : this.#live(session, now)
  }

  /** The session with the current directory data of its subject; undefined if it has ended meanwhile. */
  async renewed(session: LiveSession, subject: Subject): Promise<LiveSession | undefined> {
    const now = this.#clock()
    const [before, after] = [session.subject, subject].map((one) => JSON.stringify(storeSubject(one)))
    const stored = await this.#store.find(session.hashedId, now)
    if (stored === undefined) return undefined
    if (before !== after || now.getTime() - lookedOf(stored.data) >= noteLookMillis) {
      const looked = now.getTime()
      const noted = await this.#store.update(session.hashedId, now, ({ data, idleSeconds }) => ({
        data: { ...data, subject: storeSubject(subject), looked },
        idleSeconds,
      }))
      if (noted === undefined) return undefined
    }
    return this.#held(session, { ...holderOf(session), subject, looked: now.getTime() })
  }

  /** The session, which is not checked against the directory again before then. */
  postponed(session: LiveSession, retry: Date): LiveSession {
    return this.#held(session, { ...holderOf(session), retry: retry.getTime() })
  }

  /** Ends the session and the other sessions of the same directory entry; returns which. */
  async endLinked({ hashedId, handle, application, subject }: LiveSession): Promise<readonly EndedSession[]> {
    const name = subject.link?.dn.key
    const others = name === undefined ? [] : await this.#store.ofOwner(subject.identity, this.#clock())
    const theirs = others.filter(({ id, data }) => id !== hashedId && readData(data)?.subject.link?.dn.key === name)
    const ended: EndedSession[] = []
    for (const session of [{ id: hashedId, publicId: handle.id, application }, ...theirs]) {
      this.#holders.delete(session.id)
      if (await this.#store.delete(session.id)) ended.push({ id: session.publicId, application: session.application })
    }
    return ended
  }

  async #read(application: SessionApplication, request: CookieRequest): Promise<Session | undefined> {
    const config = application.cookies
    const secret = config === undefined ? undefined : readSessionCookie(config, request)
    if (config === undefined || secret === undefined) return undefined
    const now = this.#clock()
    const session = await this.#store.find(secretHash(secret), now)
    if (session?.context !== contextOf(config, request.host)) return undefined
    return isIdle(session, config, now) ? undefined : session
  }

  #live(session: Session, now: Date): LiveSession | undefined {
    const { id: hashedId, publicId } = session
    let holder = this.#holders.get(hashedId)
    // Another process may have asked the directory since.
    if (holder === undefined || holder.looked < lookedOf(session.data)) {
      const data = readData(session.data)
      if (data === undefined) return undefined
      const { subject, renewals } = data
      holder = { subject, renewals, looked: lookedOf(session.data), retry: 0 }
      this.#holders.set(hashedId, holder, sessionExpiry(session))
    }
    const { subject } = holder
    const slots = this.#slots
    const ends = session.ends ?? sessionExpiry(session)
    return {
      ...holder,
      hashedId,
      application: session.application,
      expires: sessionExpiry(session),
      foundAt: now.getTime(),
      handle: {
        id: publicId,
        chain: subject.chain,
        level: subject.level,
        started: session.created,
        authenticated: new Date(Number(session.data['authenticated'])),
        expires: sessionExpiry(session),
        read: (slot) => slots.read(hashedId, publicId, slot),
        write: (slot, value) => slots.write(hashedId, publicId, slot, value),
        mark: (mark) => this.#store.mark(publicId, secretHash(mark), ends),
      },
    }
  }

  #held(session: LiveSession, holder: SessionHolder): LiveSession {
    this.#holders.set(session.hashedId, holder, session.expires)
    return { ...session, ...holder }
  }
}

const holderOf = ({ subject, renewals, looked, retry }: LiveSession): SessionHolder => ({
  subject,
  renewals,
  looked,
  retry,
})

const beginningOf = ({ request, subject, renewals = [] }: Omit<CompanionStart, 'companions'>, now: Date) => ({
  subject: storeSubject(subject),
  authenticated: now.getTime(),
  looked: now.getTime(),
  renewals: storeSteps(renewals),
  address: request.remoteAddress,
  agent: (header(request, 'user-agent') ?? '').slice(0, maxAgentLength),
})

const agentOf = ({ address, agent }: { readonly address: string; readonly agent: string }) => ({ address, agent })

const idleSecondsOf = ({ idleSeconds }: Pick<CookieConfig, 'idleSeconds'>): number =>
  idleSeconds > 0 ? idleSeconds : defaultIdleSeconds

/**
 * Whether a session that an application with a longer idle time started has expired for this one. Use is stored
 * only occasionally.
 */
function isIdle({ touched, idleSeconds }: Session, config: CookieConfig, now: Date): boolean {
  const limit = idleSecondsOf(config)
  if (limit >= idleSeconds) return false
  return now.getTime() - touched.getTime() >= (limit + touchEverySeconds) * 1000
}

/** A cookie without a domain belongs to the host, and so does the session. */
const contextOf = ({ name, domain }: CookieConfig, host: string): string =>
  domain === undefined ? JSON.stringify([name, 'host', host]) : JSON.stringify([name, 'domain', domain.toLowerCase()])

const viewOf = (
  session: Session,
  { subject, address, agent }: { readonly subject: Subject; readonly address: string; readonly agent: string },
): SessionView => ({
  id: session.publicId,
  application: session.application,
  chain: subject.chain,
  level: subject.level,
  started: session.created,
  lastUsed: session.touched,
  expires: sessionExpiry(session),
  address,
  agent,
})

const minuteMillis = 60_000

/** Sessions as modules may use them. */
export function createSessionAccess(
  sessions: Sessions,
  { applications }: Pick<Configuration, 'applications'>,
): SessionAccess {
  const byName = new Map(applications.map((application) => [application.name, application]))
  return {
    ofUser: (user) => sessions.ofOwner(user),
    end: (user, id) => sessions.endOne(user, id),
    endAll: (user, options) => sessions.endAll(user, options?.except),
    endByOperator: (user, change, id) => sessions.endByOperator(user, change, id),
    endMarked: (mark) => sessions.endMarked(mark),
    minutesLeft: async (name, request) => {
      const application = byName.get(name)
      const millis = application === undefined ? undefined : await sessions.millisLeft(application, request)
      return millis === undefined ? undefined : Math.floor(millis / minuteMillis)
    },
  }
}

/** What a session stores besides its times. */
const storedData = z.object({
  subject: storedSubject,
  authenticated: z.number(),
  /** The links to ask again with the directory. */
  renewals: storedSteps.default([]),
  address: z.string().catch(''),
  agent: z.string().catch(''),
})

/** Undefined for anything else, as after a change of format: the session then counts as absent. */
const readData = (data: JsonObject) => storedData.safeParse(data).data

/** When the directory, or the login, last confirmed the subject, in milliseconds. */
const lookedOf = ({ looked, authenticated }: JsonObject): number =>
  Number(typeof looked === 'number' ? looked : authenticated)

/** Encrypted texts by slot. */
function slotsOf(data: JsonObject): Record<string, string> {
  const slots: Record<string, string> = Object.create(null)
  const stored = data['slots']
  if (stored === undefined || !isJsonObject(stored)) return slots
  for (const [name, value] of Object.entries(stored)) if (typeof value === 'string') slots[name] = value
  return slots
}

const maxSlotBytes = 64 * 1024
const maxSlots = 32
const slotName = /^[\w.:-]{1,100}$/

/** What modules store in sessions, encrypted so that the database alone does not reveal it. */
class SessionSlots {
  readonly #store: SessionStore
  readonly #secrets: SecretBox
  readonly #clock: Clock

  constructor(store: SessionStore, secrets: SecretBox, clock: Clock) {
    this.#store = store
    this.#secrets = secrets
    this.#clock = clock
  }

  async read(hashedId: string, publicId: string, slot: string): Promise<JsonValue | undefined> {
    const session = await this.#store.find(hashedId, this.#clock())
    const sealed = session === undefined ? undefined : slotsOf(session.data)[slot]
    return sealed === undefined ? undefined : (await this.#secrets.open(sealed, ownerOf(publicId, slot)))['value']
  }

  async write(hashedId: string, publicId: string, slot: string, value: JsonValue | undefined): Promise<void> {
    const sealed = value === undefined ? undefined : await this.seal(publicId, slot, value)
    await this.#store.update(hashedId, this.#clock(), ({ data, idleSeconds }) => {
      const slots = slotsOf(data)
      if (sealed === undefined) delete slots[slot]
      else slots[slot] = sealed
      if (Object.keys(slots).length > maxSlots) throw new GatewayError('BAD_REQUEST', 'a session with too many slots')
      return { data: { ...data, slots: { ...slots } }, idleSeconds }
    })
  }

  /** Bound to the session's public id and the slot: a text that is moved elsewhere can't be decrypted. */
  async seal(publicId: string, slot: string, value: JsonValue): Promise<string> {
    if (!slotName.test(slot) || isForbiddenKey(slot)) throw new GatewayError('BAD_REQUEST', `a slot named "${slot}"`)
    if (Buffer.byteLength(JSON.stringify(value)) > maxSlotBytes) {
      throw new GatewayError('BAD_REQUEST', `the slot "${slot}" would have more than ${maxSlotBytes} bytes`)
    }
    return await this.#secrets.seal({ value }, ownerOf(publicId, slot))
  }
}

const ownerOf = (publicId: string, slot: string): string => JSON.stringify([publicId, slot])
