import type { ExpiryTime } from '#sdk/expiry.ts'
import type { StepMail } from '#sdk/mail.ts'
import type { WorkflowCall } from '#sdk/workflow.ts'

/** Access that a step gave and that ends by itself. */
export interface TimedAccess {
  readonly target: string
  /** The login that the user has at the target. */
  readonly subject: string
  readonly kind: 'user' | 'group'
  readonly name: string
  readonly expires: ExpiryTime
}

/** What is to follow from a step. It is committed with the step's end, or not at all. */
export interface StepEffects {
  mail(mail: StepMail): void
  grant(access: TimedAccess): void
  /** Another run, on its own from then on. */
  start(call: WorkflowCall): void
}
