import type { Subject } from '#identity/subject.ts'
import type { SessionHandle } from '#sdk/session.ts'

/** A stored session as the request sees it. The secret in the cookie is not here; only its hash is stored. */
export interface LiveSession {
  readonly hashedId: string
  readonly subject: Subject
  readonly handle: SessionHandle
}
