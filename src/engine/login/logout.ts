import type { LoginAudit } from '#engine/login/login-audit.ts'
import type { LoginMeter } from '#engine/login/login-meter.ts'
import { signedOutPath } from '#engine/login/login-pages.ts'
import type { ChainRunner } from '#engine/pipeline/chain.ts'
import type { Passage } from '#engine/pipeline/passage.ts'
import { applyResults } from '#engine/pipeline/result-actions.ts'
import type { LiveSession } from '#engine/session/live-session.ts'
import type { Sessions } from '#engine/session/sessions.ts'
import type { Logger } from '#kernel/logger.ts'

export interface LogoutParts {
  readonly sessions: Sessions
  readonly chains: ChainRunner
  readonly loginAudit: LoginAudit
  readonly loginMeter: LoginMeter
  readonly log: Logger
}

/** Ends the session, where there is one, and tells where the browser goes: a fixed page, whatever the request says. */
export type Logout = (session: LiveSession | undefined, passage: Passage) => Promise<string>

export const createLogout =
  ({ sessions, chains, loginAudit, loginMeter, log }: LogoutParts): Logout =>
  async (session, passage) => {
    const { request, application, url } = passage
    let elsewhere: string | undefined
    if (session !== undefined) {
      const { chain: name, uid } = session.subject
      const chain = chains.get(name)
      for (const { mechanism } of chain === undefined ? [] : chains.reachable(chain)) {
        try {
          elsewhere ??= await mechanism.afterLogout?.(session.handle, request)
        } catch (err) {
          log.warn('post-logout redirect rejected: not registered', { err, requestId: request.id })
        }
      }
      await sessions.end(session)
      loginMeter.counted(name, 'signed-out')
      await loginAudit.note({
        action: 'delete',
        request,
        login: uid,
        chain: name,
        application: application?.name ?? '',
        sessionId: session.handle.id,
      })
    }
    const configured = applyResults(url?.url.results.azSuccess, passage)?.headers['location']
    if (elsewhere !== undefined && /^[\x21-\x7e]+$/.test(elsewhere)) return elsewhere
    return typeof configured === 'string' ? configured : signedOutPath
  }
