import { secretHash } from '#kernel/ids.ts'
import { inWrittenOrder } from '#kernel/text/one-line.ts'
import { checkMail, type MailText, type StepMail } from '#sdk/mail/mail.ts'
import type { MailLink, NewMail } from '#sdk/mail/new-mail.ts'

/**
 * Mails for the outbox. Each gets an id derived from the run, the step, the occasion and the recipient, so that the
 * same step never mails a recipient twice; only another text to the same recipient is another mail. `occasion`
 * distinguishes mails of one step at different times, such as `reminder-2`. Throws BAD_REQUEST for a mail that
 * can't be sent.
 */
export function newMails(run: string, step: number, mails: readonly StepMail[], occasion = ''): NewMail[] {
  const made = new Map<string, NewMail>()
  const texts = new Map<string, string[]>()
  for (const mail of mails) {
    checkMail(mail)
    const recipient = mail.recipient.toLowerCase()
    const text = JSON.stringify([mail.subject, mail.text, mail.html])
    const earlier = texts.get(recipient) ?? []
    if (earlier.includes(text)) continue
    const id = secretHash(JSON.stringify([run, step, occasion, recipient, earlier.length]))
    texts.set(recipient, [...earlier, text])
    made.set(id, { ...mail, ...inOrder(mail), id, run, step })
  }
  return [...made.values()]
}

/** Values of users in a text must not reverse what follows them. */
const inOrder = ({ subject, text, html }: MailText): MailText => ({
  subject: inWrittenOrder(subject),
  text: inWrittenOrder(text),
  ...(html === undefined ? {} : { html: inWrittenOrder(html) }),
})

interface ChannelText extends MailText {
  readonly notifier: string
  readonly links: readonly MailLink[]
}

/** One message to the channel of a Notifier, which people share; once for each step and occasion. */
export function channelMessage(run: string, step: number, text: ChannelText, occasion: string): NewMail {
  const recipient = `#${text.notifier}`
  return {
    ...text,
    ...inOrder(text),
    recipient,
    run,
    step,
    id: secretHash(JSON.stringify([run, step, occasion, recipient])),
  }
}
