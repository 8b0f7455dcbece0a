import type { LiveSession } from '#engine/session/live-session.ts'
import { readSessionCookie, writeSessionCookie } from '#engine/session/session-cookie.ts'
import { restoreSubject, storeSubject } from '#engine/session/stored-subject.ts'
import type { Subject } from '#identity/subject.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { newSecret, secretHash } from '#kernel/ids.ts'
import type { CookieConfig } from '#sdk/configuration.ts'
import type { GatewayRequest } from '#sdk/http.ts'
import { type SessionStore, sessionExpiry } from '#storage/session-store.ts'

interface SessionApplication {
  readonly name: string
  readonly cookies: CookieConfig | undefined
}

/** However much it is used, a session ends after this long. */
const absoluteSeconds = 12 * 60 * 60
/** Where the configuration gives no idle time-out. */
const defaultIdleSeconds = 15 * 60

/** Cookie sessions. The cookie holds a random secret; the store knows only its hash. */
export class Sessions {
  readonly #store: SessionStore
  readonly #clock: Clock
  /** A session's subject stays one object, so that what is remembered about it stays remembered. */
  readonly #subjects: BoundedCache<Subject>

  constructor(store: SessionStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
    this.#subjects = new BoundedCache(10_000, clock)
  }

  /** Undefined without a valid, unexpired session of this very application. Counts as use of it. */
  async find(
    application: SessionApplication,
    request: Pick<GatewayRequest, 'headers'>,
  ): Promise<LiveSession | undefined> {
    const secret = application.cookies === undefined ? undefined : readSessionCookie(application.cookies, request)
    if (secret === undefined) return undefined
    const hashedId = secretHash(secret)
    const now = this.#clock()
    const session = await this.#store.find(hashedId, now)
    if (session === undefined || session.application !== application.name) return undefined
    await this.#store.touch(session, now)
    let subject = this.#subjects.get(hashedId)
    if (subject === undefined) {
      subject = restoreSubject(session.data)
      if (subject === undefined) return undefined
      this.#subjects.set(hashedId, subject, sessionExpiry(session))
    }
    return { hashedId, application: application.name, subject }
  }

  /** Begins a session and gives its Set-Cookie header. The one it follows ends, so a planted id is worth nothing. */
  async start(application: SessionApplication, subject: Subject, before: LiveSession | undefined): Promise<string> {
    const config = application.cookies
    if (config === undefined) throw new Error(`application "${application.name}" keeps no sessions`)
    const secret = newSecret()
    const now = this.#clock()
    await this.#store.create({
      id: secretHash(secret),
      application: application.name,
      userID: subject.uid,
      data: storeSubject(subject),
      created: now,
      touched: now,
      idleSeconds: config.idleSeconds > 0 ? config.idleSeconds : defaultIdleSeconds,
      ends: new Date(now.getTime() + absoluteSeconds * 1000),
    })
    if (before !== undefined) await this.end(before)
    return writeSessionCookie(config, secret)
  }

  async end(session: LiveSession): Promise<void> {
    this.#subjects.delete(session.hashedId)
    await this.#store.delete(session.hashedId)
  }

  /** The Set-Cookie header that removes the application's cookie. */
  clearing(config: CookieConfig): string {
    return writeSessionCookie(config, undefined)
  }
}
