import type { Step } from '#engine/pipeline/passage.ts'
import { GatewayError } from '#kernel/errors.ts'
import { header } from '#sdk/http.ts'

/** Whose page a request comes from: the person's DN, with percent signs for what headers cannot hold. */
const pageOf = 'x-page-of'

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * A browser has one cookie for all its tabs. Where somebody else signs in in one of them, the page of another still shows
 * what the first person saw and typed; nothing of it is to be sent, and nothing answered, in the name of the second. Nor
 * is it sent in nobody's name, at an address that takes things from everybody, once the session has ended.
 */
export const requireSamePerson: Step = ({ request, application, session, subject }) => {
  const person = header(request, pageOf)
  if (person === undefined || application?.cookies === undefined) return undefined
  if (session === undefined) {
    if (readingMethods.has(request.method) || subject === undefined || subject.level > 0) return undefined
    throw new GatewayError('AUTH_REQUIRED', 'a change by the page of somebody whose session has ended')
  }
  if (subject !== session.subject) return undefined
  const names = [subject.dn, ...(subject.otherNames ?? [])]
  if (names.some((name) => encodeURIComponent(name.toString()) === person)) return undefined
  throw new GatewayError('OTHER_PERSON', `a page of somebody else, with the session of "${subject.uid}"`)
}
