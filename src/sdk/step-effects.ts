import type { Identity } from '#identity/identity.ts'
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

/** A password that a step set at a target. */
export interface SetPassword {
  readonly target: string
  /** The logins that the account's owner may have signed in with: at the target, and in the workflow. */
  readonly logins: readonly string[]
  /** Who the account's owners are; empty where no directory insert is known to show the account. */
  readonly owners: readonly Identity[]
}

/** What is to follow from a step. It is committed with the step's end, or not at all. */
export interface StepEffects {
  mail(mail: StepMail): void
  grant(access: TimedAccess): void
  /**
   * The sessions of the account's owner end, except the one that requested the run. Sessions are found by identity, or
   * by login where no owner is named.
   */
  passwordSet(password: SetPassword): void
  /** Another run, on its own from then on. */
  start(call: WorkflowCall): void
}
