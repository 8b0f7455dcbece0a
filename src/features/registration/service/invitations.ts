import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId, newSecret, secretHash } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { checkMail, type StepMail } from '#sdk/mail/mail.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type {
  Invitation,
  InvitationActor,
  InvitationDraft,
  InvitationMail,
  InvitationRecord,
  InvitationsPage,
} from './invitation.ts'
import type { RegistrationStore } from './registration-store.ts'

interface InvitationParts {
  readonly store: RegistrationStore
  readonly clock: Clock
}

type Change = {
  readonly id: string
  readonly email: string
  readonly form: string
  readonly action: AuditEntry['action']
}

/** Invitations to the registration forms of this installation. */
export class Invitations {
  readonly #store: RegistrationStore
  readonly #clock: Clock

  constructor({ store, clock }: InvitationParts) {
    this.#store = store
    this.#clock = clock
  }

  /** Stores the invitation in one transaction with its mail. */
  async create(form: string, draft: InvitationDraft, actor: InvitationActor): Promise<InvitationRecord> {
    const { email, attributes } = draft
    const id = newId()
    const secret = newSecret()
    const created = this.#clock()
    const expires = new Date(created.getTime() + draft.validMillis)
    const invitation = { id, form, email, attributes, invitedBy: actor.by, created, expires }
    const mail = registrationMail(`${id} 1`, { ...draft.write(secret), recipient: email })
    const audit = this.#audit({ id, email, form, action: 'add' }, actor)
    await this.#store.addInvitation({ ...invitation, tokenHash: secretHash(secret) }, [mail], [audit])
    return this.#record({ ...invitation, state: 'open', sent: 1 })
  }

  /** The open invitation of the secret; undefined when it was accepted or revoked, or has expired. */
  async open(form: string, secret: string): Promise<InvitationRecord | undefined> {
    const found = await this.#store.findInvitation(form, secretHash(secret))
    return found?.state === 'open' ? this.#record(found) : undefined
  }

  async get(form: string, id: string): Promise<InvitationRecord | undefined> {
    const found = await this.#store.getInvitation(form, id)
    return found && this.#record(found)
  }

  /** Latest first. Throws BAD_REQUEST for an `after` that isn't the `next` of a page. */
  async list(form: string, limit: number, after?: string): Promise<InvitationsPage> {
    const page = await this.#store.listInvitations({ form, limit, after })
    return { ...page, invitations: page.invitations.map((one) => this.#record(one)) }
  }

  /** Sends another mail with another secret; the earlier one becomes invalid. Throws CONFLICT when it is not open, NOT_FOUND. */
  async resend(form: string, id: string, mail: InvitationMail, actor: InvitationActor): Promise<InvitationRecord> {
    const found = await this.#existing(form, id)
    const secret = newSecret()
    const expires = new Date(this.#clock().getTime() + mail.validMillis)
    const outgoing = registrationMail(`${id} ${newId()}`, { ...mail.write(secret), recipient: found.email })
    const audit = this.#audit({ id, email: found.email, form, action: 'replace' }, actor)
    const renewal = { id, tokenHash: secretHash(secret), expires }
    if (!(await this.#store.renewInvitation(renewal, [outgoing], [audit]))) throw notOpen(id)
    return await this.#changed(form, id)
  }

  /** Throws CONFLICT when it is not open, NOT_FOUND. */
  async revoke(form: string, id: string, actor: InvitationActor): Promise<InvitationRecord> {
    const { email } = await this.#existing(form, id)
    const audit = this.#audit({ id, email, form, action: 'delete' }, actor)
    if (!(await this.#store.moveInvitation(id, 'open', 'revoked', [audit]))) throw notOpen(id)
    return await this.#changed(form, id)
  }

  async #existing(form: string, id: string): Promise<Invitation> {
    const found = await this.#store.getInvitation(form, id)
    if (found === undefined) {
      throw new GatewayError('NOT_FOUND', `no invitation "${id}"`, { publicText: 'There is no such invitation.' })
    }
    return found
  }

  async #changed(form: string, id: string): Promise<InvitationRecord> {
    return this.#record(await this.#existing(form, id))
  }

  #record({ form: _, state, ...invitation }: Invitation): InvitationRecord {
    const isOver = state === 'open' && invitation.expires <= this.#clock()
    return { ...invitation, state: isOver ? 'expired' : state }
  }

  #audit({ id, email, form, action }: Change, { by, requestId }: InvitationActor): AuditEntry {
    return {
      id: newId(),
      time: this.#clock(),
      requestor: by,
      subject: email,
      workflow: { id, name: 'invitation' },
      target: form,
      kind: 'entry',
      action,
      attribute: 'invitation',
      ...(requestId === undefined ? {} : { requestId }),
    }
  }
}

const notOpen = (id: string): GatewayError =>
  new GatewayError('CONFLICT', `the invitation "${id}" is not open`, {
    publicText: 'The invitation was accepted or revoked.',
  })

/**
 * A mail of a registration or an invitation for the outbox; one occasion mails once. BAD_REQUEST if it can't be
 * sent.
 */
export function registrationMail(occasion: string, mail: StepMail): NewMail {
  checkMail(mail)
  return { ...mail, id: secretHash(`registration ${occasion}`) }
}
