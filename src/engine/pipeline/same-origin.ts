import type { Step } from '#engine/pipeline/passage.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type GatewayRequest, header } from '#sdk/filter/http.ts'

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])
const jsonContent = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i
const formContent = /^application\/x-www-form-urlencoded\s*(?:;|$)/i

/**
 * Browsers send a session's cookie whoever made the page. So a change that only the cookie speaks for must come from a
 * page of this very origin, be JSON, which no form can send, and carry a header that no page of another site can add
 * without being asked first. A form of a URL that is made for forms can be neither, and needs the first alone.
 */
export const requireSameOrigin: Step = ({ request, session, subject, url }) => {
  if (session === undefined || subject !== session.subject || readingMethods.has(request.method)) return undefined
  if (!isSameOrigin(request)) {
    throw new GatewayError('ACCESS_DENIED', 'a change by cookie without proof of the same origin', {
      publicText: 'Changes by cookie must come from a page of this site, with a header X-Requested-With.',
    })
  }
  const contentType = header(request, 'content-type')
  if (url?.url.takesForms === true && formContent.test(contentType ?? '')) return undefined
  if (contentType !== undefined && !jsonContent.test(contentType)) {
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `a change by cookie with content type "${contentType}"`)
  }
  if (!hasOwnHeader(request)) {
    throw new GatewayError('ACCESS_DENIED', 'a change by cookie without X-Requested-With', {
      publicText: 'Changes by cookie must have a header X-Requested-With.',
    })
  }
  return undefined
}

/** Pages cannot choose these headers. Where the browser says how page and address relate, that counts. */
function isSameOrigin(request: GatewayRequest): boolean {
  const site = header(request, 'sec-fetch-site')
  if (site !== undefined) return site === 'same-origin'
  const origin = header(request, 'origin')
  return origin === undefined ? hasOwnHeader(request) : origin === request.origin
}

const hasOwnHeader = (request: GatewayRequest): boolean => header(request, 'x-requested-with') !== undefined
