import type { Logout } from '#engine/login/logout.ts'
import { isNavigation } from '#engine/login/navigation.ts'
import type { Step } from '#engine/pipeline/passage.ts'
import type { SessionRenewal } from '#engine/session/session-renewal.ts'
import type { Sessions } from '#engine/session/sessions.ts'
import { header } from '#sdk/filter/http.ts'

/**
 * Reads the application's session from its cookie, as the directory has its owner now; applications without cookies have
 * none. Answers the logout address, for which nobody has to be there any more.
 */
export const loadSession =
  (sessions: Sessions, renewal: Pick<SessionRenewal, 'current'>, logout: Logout): Step =>
  (passage) => {
    const { application, request, url } = passage
    const cookies = application?.cookies
    if (application === undefined || cookies === undefined) return undefined
    return (async () => {
      const session = await sessions.find(application, request, { use: url?.url.extendsSession !== false })
      if (request.path === cookies.logoutUri) {
        // A browser that loads pages ahead was not told to log out.
        if (/prefetch/i.test(header(request, 'sec-purpose') ?? header(request, 'purpose') ?? '')) {
          return { status: 204, headers: { 'cache-control': 'no-store' } }
        }
        const location = await logout(session, passage)
        const headers = { 'set-cookie': sessions.clearing(cookies), 'cache-control': 'no-store' }
        if (!isNavigation(request)) return { status: 204, headers }
        return { status: 303, headers: { ...headers, location } }
      }
      if (session === undefined) return undefined
      const found = renewal.current(session, request)
      const current = found instanceof Promise ? await found : found
      if (current !== undefined) passage.session = current
      return undefined
    })()
  }
