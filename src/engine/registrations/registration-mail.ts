import type { NewMail } from '#domain/mail.ts'
import { secretHash } from '#kernel/ids.ts'
import { checkMail, type StepMail } from '#sdk/notifier/mail.ts'

/** A mail of a registration or an invitation, as the outbox takes it; one occasion mails once. BAD_REQUEST when it cannot be sent. */
export function registrationMail(occasion: string, mail: StepMail): NewMail {
  checkMail(mail)
  return { ...mail, id: secretHash(`registration ${occasion}`) }
}
