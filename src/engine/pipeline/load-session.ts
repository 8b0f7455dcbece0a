import type { Step } from '#engine/pipeline/passage.ts'
import type { Sessions } from '#engine/session/sessions.ts'

/** Reads the application's session from its cookie; applications without cookies have none. Answers the logout address. */
export const loadSession =
  (sessions: Sessions): Step =>
  (passage) => {
    const { application, request } = passage
    const cookies = application?.cookies
    if (application === undefined || cookies === undefined) return undefined
    return (async () => {
      const session = await sessions.find(application, request)
      if (request.path === cookies.logoutUri) {
        if (session !== undefined) await sessions.end(session)
        return { status: 204, headers: { 'set-cookie': sessions.clearing(cookies), 'cache-control': 'no-store' } }
      }
      if (session !== undefined) passage.session = session
      return undefined
    })()
  }
