import type { InvitationMail } from '#features/registration/service/invitation.ts'
import { RegistrationStore } from '#features/registration/service/registration-store.ts'
import type { RegistrationEvent, SecretMail } from '#features/registration/service/registrations.ts'
import { Registrations } from '#features/registration/service/registrations.ts'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { MailText } from '#sdk/mail/mail.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { fakeSecretBox } from '#testing/login/fake-login-services.ts'

type SentMail = MailText & { readonly recipient: string; readonly secret: string }

/** Registrations on a database in memory, which records the calls instead of running them. */
export class MemoryRegistrations extends Registrations {
  readonly calls: WorkflowCall[]
  /** The mails with the secrets that only their recipients know. */
  readonly mails: SentMail[] = []
  /** `form: event` of each call of `counted`. */
  readonly events: string[]

  constructor() {
    const calls: WorkflowCall[] = []
    const events: string[] = []
    super({
      store: new RegistrationStore(memoryDatabase()),
      secrets: fakeSecretBox('registration'),
      clock: systemClock,
      meter: { counted: (form: string, event: RegistrationEvent) => void events.push(`${form}: ${event}`) },
      runs: {
        start: async (call) => {
          calls.push(call)
          return { kind: 'started', result: { id: newId(), status: 'accepted', changes: 0 } }
        },
      },
    })
    this.calls = calls
    this.events = events
    const { create, resend } = this.invitations
    this.invitations.create = (form, draft, actor) =>
      create.call(this.invitations, form, this.#recorded(draft, draft.email), actor)
    this.invitations.resend = async (form, id, mail, actor) => {
      const recipient = (await this.invitations.get(form, id))?.email ?? ''
      return await resend.call(this.invitations, form, id, this.#recorded(mail, recipient), actor)
    }
  }

  override keep(form: string, id: string, data: JsonObject, mail: SecretMail, validMillis: number): Promise<void> {
    return super.keep(form, id, data, this.#recorded(mail, mail.recipient), validMillis)
  }

  #recorded<M extends Pick<InvitationMail, 'write'>>(mail: M, recipient: string): M {
    const write = (secret: string): MailText => {
      const text = mail.write(secret)
      this.mails.push({ ...text, recipient, secret })
      return text
    }
    return { ...mail, write }
  }
}
