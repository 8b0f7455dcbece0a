import { createSessionAccess, Sessions } from '#engine/session/sessions.ts'
import type { Identity } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import type { SessionAccess } from '#sdk/auth/session.ts'
import type { CookieConfig } from '#sdk/module/configuration.ts'
import { SessionStore } from '#storage/session-store.ts'
import { fakeSecretBox } from '#testing/fake-login-services.ts'
import { fakeRequest } from '#testing/fake-request.ts'
import { memoryDatabase } from '#testing/memory-database.ts'
import { subject } from '#testing/subjects.ts'

const cookies: CookieConfig = {
  name: 'session',
  domain: undefined,
  secure: true,
  httpOnly: true,
  sameSite: 'Lax',
  idleSeconds: 600,
  logoutUri: '/logout',
}

/** Sessions on a database in memory, with the engine's interface for modules. */
export function memorySessions(database = memoryDatabase()) {
  const sessions = new Sessions(new SessionStore(database), systemClock, fakeSecretBox())
  const access: SessionAccess = createSessionAccess(sessions, { applications: [] })
  /** Logs the user in at the portal; returns the public id of the session. */
  const logIn = async (identity: Identity, login: string): Promise<string> => {
    const request = fakeRequest({ url: 'https://portal.test/', headers: { 'user-agent': 'Browser/1' } })
    const who = { ...subject('o=x'), identity, uid: login }
    const started = await sessions.start({ name: 'portal', cookies }, { request, subject: who, before: undefined })
    return started.session.handle.id
  }
  return { access, logIn }
}
