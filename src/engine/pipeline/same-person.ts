import type { Step } from '#engine/pipeline/request-context.ts'
import type { Routes } from '#engine/pipeline/routes.ts'
import type { Sessions } from '#engine/session/sessions.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type GatewayRequest, header } from '#sdk/filter/http.ts'

/** The user of the page that sends a request: their DN, percent-encoded where headers need it. */
const pageOf = 'x-page-of'

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

export interface SamePersonParts {
  readonly sessions: Pick<Sessions, 'find'>
  readonly routes: Pick<Routes, 'at'>
}

/**
 * A browser has one cookie for all its tabs. After another user signs in in one of them, the page of another tab
 * still shows the first user's data and input; requests from it must not run as the second user. Nor may they run
 * anonymously at a public URL after the session has ended. If such a URL belongs to an application with another
 * cookie, the session of the page's own application counts.
 */
export const requireSamePerson =
  (parts: SamePersonParts): Step =>
  ({ request, application, session, subject }) => {
    const person = header(request, pageOf)
    if (person === undefined || application?.cookies === undefined || subject === undefined) return undefined
    if (session !== undefined) {
      if (subject === session.subject) requireOwner(person, subject)
      return undefined
    }
    if (readingMethods.has(request.method) || subject.level > 0) return undefined
    return requireOwnerElsewhere(person, request, parts)
  }

function requireOwner(person: string, subject: Subject): void {
  if (isOwner(person, subject)) return
  throw new GatewayError('OTHER_PERSON', `the page belongs to another user than the session of "${subject.uid}"`)
}

/** Half a surrogate pair, which a token may have in a name, can't be percent-encoded. */
const isOwner = (person: string, { dn, otherNames = [] }: Subject): boolean =>
  [dn, ...otherNames].some((name) => encodeURIComponent(name.toString().toWellFormed()) === person)

/** By a session of any application at this host whose cookie is in the same request. */
async function requireOwnerElsewhere(
  person: string,
  request: GatewayRequest,
  { sessions, routes }: SamePersonParts,
): Promise<undefined> {
  let other: Subject | undefined
  for (const application of routes.at(request.host)) {
    const subject = (await sessions.find(application, request, { use: false }))?.subject
    if (subject !== undefined && isOwner(person, subject)) return undefined
    other ??= subject
  }
  if (other !== undefined) requireOwner(person, other)
  throw new GatewayError('AUTH_REQUIRED', 'a change from a page whose session has ended')
}
