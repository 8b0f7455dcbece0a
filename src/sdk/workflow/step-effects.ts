import type { NewGrant } from '#domain/grant.ts'
import type { Identity } from '#identity/identity.ts'
import type { StepMail } from '#sdk/notifier/mail.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'

/** Access that a step gave and that expires. */
export type GrantedAccess = Omit<NewGrant, 'id' | 'run'>

/** A password that a step sets at a target. */
export interface SetPassword {
  readonly target: string
  /** The logins that the account's owner may have signed in with: at the target, and in the workflow. */
  readonly logins: readonly string[]
  /** Who the account's owners are; empty where no directory insert is known to show the account. */
  readonly owners: readonly Identity[]
}

/** A password that is about to be written. Whoever says neither does not know what came of it. */
export interface PasswordWrite {
  written(): void
  /** The target has not taken it. */
  refused(): Promise<void>
}

/** What is to follow from a step. It is committed with the step's end, or not at all. */
export interface StepEffects {
  mail(mail: StepMail): void
  grant(access: GrantedAccess): void
  /**
   * To be called before a password is written. Once it is, the sessions of the account's owner end with the step, except
   * the one that requested the run. They end, too, where no one learns whether it was written: the process was killed, or
   * the target did not answer. Sessions are found by identity, or by login where no owner is named.
   */
  beginPassword(password: SetPassword): Promise<PasswordWrite>
  /** Another run, on its own from then on. */
  start(call: WorkflowCall): void
}
