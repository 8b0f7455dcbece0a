import { GatewayError } from '#kernel/errors.ts'
import { checkMail, type StepMail } from '#sdk/mail.ts'
import type { SetPassword, StepEffects, TimedAccess } from '#sdk/step-effects.ts'
import type { WorkflowCall } from '#sdk/workflow.ts'

const maxEach = 1_000

/** Holds what is to follow from a step until its end is committed. A step that asks for too much fails. */
export class CollectedEffects implements StepEffects {
  readonly mails: StepMail[] = []
  readonly grants: TimedAccess[] = []
  readonly starts: WorkflowCall[] = []
  readonly passwords: SetPassword[] = []

  get isEmpty(): boolean {
    return this.mails.length + this.grants.length + this.starts.length + this.passwords.length === 0
  }

  /** Throws BAD_REQUEST for a mail that cannot be sent. */
  mail(mail: StepMail): void {
    checkMail(mail)
    add(this.mails, mail)
  }

  grant(access: TimedAccess): void {
    add(this.grants, access)
  }

  passwordSet(password: SetPassword): void {
    add(this.passwords, password)
  }

  start(call: WorkflowCall): void {
    add(this.starts, call)
  }
}

function add<T>(list: T[], one: T): void {
  if (list.length >= maxEach) throw new GatewayError('WORKFLOW_FAILED', `a step asks for more than ${maxEach} effects`)
  list.push(one)
}
