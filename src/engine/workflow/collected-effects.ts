import { GatewayError } from '#kernel/errors.ts'
import { checkMail, type StepMail } from '#sdk/notifier/mail.ts'
import type { GrantedAccess, PasswordWrite, SetPassword, StepEffects } from '#sdk/workflow/step-effects.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import type { ChangeClaim } from '#storage/password-change-store.ts'

const maxEach = 1_000

/** Notes durably that a password is about to be written, for runs that no one continues when their process dies. */
export interface PasswordNotes {
  begin(password: SetPassword): Promise<ChangeClaim>
  refused(claim: ChangeClaim): Promise<void>
  written(): void
}

export interface WrittenPassword extends SetPassword {
  readonly claim?: ChangeClaim
}

/** Holds what is to follow from a step until its end is committed. A step that asks for too much fails. */
export class CollectedEffects implements StepEffects {
  readonly mails: StepMail[] = []
  readonly grants: GrantedAccess[] = []
  readonly starts: WorkflowCall[] = []
  readonly passwords: WrittenPassword[] = []
  readonly #notes: PasswordNotes | undefined

  constructor(notes?: PasswordNotes) {
    this.#notes = notes
  }

  get isEmpty(): boolean {
    return this.mails.length + this.grants.length + this.starts.length + this.passwords.length === 0
  }

  /** Throws BAD_REQUEST for a mail that cannot be sent. */
  mail(mail: StepMail): void {
    checkMail(mail)
    add(this.mails, mail)
  }

  grant(access: GrantedAccess): void {
    add(this.grants, access)
  }

  async beginPassword(password: SetPassword): Promise<PasswordWrite> {
    const claim = await this.#notes?.begin(password)
    return {
      written: () => {
        add(this.passwords, claim === undefined ? password : { ...password, claim })
        this.#notes?.written()
      },
      refused: async () => {
        if (claim !== undefined) await this.#notes?.refused(claim)
      },
    }
  }

  start(call: WorkflowCall): void {
    add(this.starts, call)
  }
}

function add<T>(list: T[], one: T): void {
  if (list.length >= maxEach) throw new GatewayError('WORKFLOW_FAILED', `a step asks for more than ${maxEach} effects`)
  list.push(one)
}
