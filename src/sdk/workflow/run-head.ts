import type { RunIdentities } from '#identity/identity.ts'

/** Who wants what for whom, and until when. Set once, when the run is made. */
export interface RunHead {
  readonly id: string
  readonly workflow: string
  /** The hash of the workflow definition. */
  readonly definition: string
  /** The login of the user it is about. The runs of one subject are executed one after the other. */
  readonly subject: string
  /** A login. */
  readonly requester: string
  /** The authenticated caller, who acts for the requester, if that is not the requester. */
  readonly caller?: string | undefined
  readonly who: RunIdentities
  readonly reason?: string | undefined
  /** The HTTP request, as in the access log. */
  readonly requestId?: string | undefined
  /** A run that has not ended by then fails, before its next task. */
  readonly deadline?: Date | undefined
  /** The requested expiry date of the access. */
  readonly accessEnds?: Date | undefined
}
