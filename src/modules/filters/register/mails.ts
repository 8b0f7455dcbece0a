import type { Template } from '#kernel/template.ts'
import { parseTemplate } from '#kernel/template.ts'
import { type RegisterSettings, renderMail, unavailableText } from '#modules/filters/register/register-settings.ts'
import type { InvitationMail, SecretMail } from '#sdk/filter/registrations.ts'
import type { MailText } from '#sdk/notifier/mail.ts'

const dayMillis = 24 * 3600_000

/** The mails of a registration form. */
export class Mails {
  readonly #settings: RegisterSettings

  constructor(settings: RegisterSettings) {
    this.#settings = settings
  }

  verification(recipient: string): SecretMail {
    const { given, verificationText } = this.#settings
    return {
      recipient,
      write: (secret) => {
        const page = new URL(`${(given.publicURL ?? '').replace(/\/$/, '')}/verify`)
        page.searchParams.set('token', secret)
        return this.#mail(given.verificationSubject, verificationText, page.href)
      },
    }
  }

  /** The same subject, so that an outbox reveals as little as the form. */
  unavailable(recipient: string): SecretMail {
    const { given } = this.#settings
    const text = parseTemplate(unavailableText, { keys: true, attributes: false })
    return { recipient, write: () => this.#mail(given.verificationSubject, text, this.#home()) }
  }

  invitation(): InvitationMail {
    const { given, invitationText } = this.#settings
    return {
      validMillis: given.invitationDays * dayMillis,
      write: (secret) => {
        const page = new URL(given.invitationURL ?? '')
        page.searchParams.set('invitation', secret)
        return this.#mail(given.invitationSubject, invitationText, page.href)
      },
    }
  }

  #home(): string {
    const { homeURL, publicURL } = this.#settings.given
    return URL.canParse(homeURL, publicURL) ? new URL(homeURL, publicURL).href : homeURL
  }

  #mail(subject: string, template: Template, link: string): MailText {
    const { notifier } = this.#settings.given
    const text = renderMail(template, link, this.#settings.given['frontPage.title'])
    return { subject, text, ...(notifier === undefined ? {} : { notifier }) }
  }
}
