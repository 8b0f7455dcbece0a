import type { InvitationMail } from '#features/registration/service/invitation.ts'
import type { SecretMail } from '#features/registration/service/registrations.ts'
import type { Template } from '#kernel/template.ts'
import type { MailText } from '#sdk/mail/mail.ts'
import { type PageReader, type TextKey, textsFor } from '#sdk/page/page-texts.ts'
import type { RegisterSettings } from './register-settings.ts'

const dayMillis = 24 * 3600_000

/**
 * The mails of a registration form: as configured, or in the language of the request that causes them, since the
 * recipient has no account yet.
 */
export class Mails {
  readonly #settings: RegisterSettings

  constructor(settings: RegisterSettings) {
    this.#settings = settings
  }

  verification(recipient: string, request: PageReader): SecretMail {
    const { given } = this.#settings
    return {
      recipient,
      write: (secret) => {
        const page = new URL(`${(given.publicURL ?? '').replace(/\/$/, '')}/verify`)
        page.searchParams.set('token', secret)
        return this.#verification(given.verificationText ?? 'mail.verificationText', page.href, request)
      },
    }
  }

  /** Sent when a registration was not possible and the form must not reveal it. */
  unavailable(recipient: string, request: PageReader): SecretMail {
    return { recipient, write: () => this.#verification('mail.unavailableText', this.#home(), request) }
  }

  /** In English without a request. */
  invitation(request?: PageReader): InvitationMail {
    const { given } = this.#settings
    return {
      validMillis: given.invitationDays * dayMillis,
      write: (secret) => {
        const page = new URL(given.invitationURL ?? '')
        page.searchParams.set('invitation', secret)
        const subject = given.invitationSubject ?? textsFor(request)('mail.invitation')
        return this.#mail(subject, given.invitationText ?? 'mail.invitationText', page.href, request)
      },
    }
  }

  #home(): string {
    const { homeURL, publicURL } = this.#settings.given
    return URL.canParse(homeURL, publicURL) ? new URL(homeURL, publicURL).href : homeURL
  }

  /** Always with the same subject, so that an outbox reveals as little as the form. */
  #verification(text: Template | TextKey, link: string, request: PageReader): MailText {
    const subject = this.#settings.given.verificationSubject ?? textsFor(request)('mail.verification')
    return this.#mail(subject, text, link, request)
  }

  #mail(subject: string, text: Template | TextKey, link: string, request: PageReader | undefined): MailText {
    const { notifier, 'frontPage.title': title } = this.#settings.given
    return {
      subject,
      text:
        typeof text === 'string'
          ? textsFor(request)(text, { link })
          : text.render({ key: (name) => (name === 'link' ? link : title) }),
      ...(notifier === undefined ? {} : { notifier }),
    }
  }
}
