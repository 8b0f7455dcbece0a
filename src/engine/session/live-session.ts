import type { ChainStep } from '#engine/pipeline/chain.ts'
import type { Subject } from '#identity/subject.ts'
import type { SessionHandle } from '#sdk/auth/session.ts'

/** What is known in this process of whom a session belongs to. */
export interface SessionHolder {
  /** One object until the directory is asked again, so that decisions about it can be remembered for so long. */
  readonly subject: Subject
  readonly renewals: readonly ChainStep[]
  /** When the directory last told of the subject, in milliseconds. */
  readonly looked: number
  /** Before then it is not asked again, since it did not answer. */
  readonly retry: number
}

/** A stored session as the request sees it. The secret in the cookie is not here; only its hash is stored. */
export interface LiveSession extends SessionHolder {
  readonly hashedId: string
  /** Where it was started. */
  readonly application: string
  readonly expires: Date
  /** When it was read, in milliseconds. */
  readonly foundAt: number
  readonly handle: SessionHandle
}
