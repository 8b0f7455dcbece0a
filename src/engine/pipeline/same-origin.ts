import type { Step } from '#engine/pipeline/passage.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type GatewayRequest, header } from '#sdk/http.ts'

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])
const jsonContent = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i
const formContent = /^application\/x-www-form-urlencoded\s*(?:;|$)/i

/**
 * Browsers send a session's cookie whoever made the page. So a change that only the cookie speaks for must come from a
 * page of this very origin, and be JSON, which no form can send, unless the URL is made for forms.
 */
export const requireSameOrigin: Step = ({ request, session, subject, url }) => {
  if (session === undefined || subject !== session.subject || readingMethods.has(request.method)) return undefined
  if (!isSameOrigin(request)) {
    throw new GatewayError('ACCESS_DENIED', 'a change by cookie without proof of the same origin', {
      publicText: 'Changes by cookie must come from a page of this site.',
    })
  }
  const contentType = header(request, 'content-type')
  const isForm = url?.url.takesForms === true && formContent.test(contentType ?? '')
  if (contentType !== undefined && !isForm && !jsonContent.test(contentType)) {
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `a change by cookie with content type "${contentType}"`)
  }
  return undefined
}

/** Pages cannot choose these headers. Where the browser says how page and address relate, that counts. */
function isSameOrigin(request: GatewayRequest): boolean {
  const site = header(request, 'sec-fetch-site')
  return site === undefined ? header(request, 'origin') === request.origin : site === 'same-origin'
}
