import { GatewayError } from '#kernel/errors.ts'
import { newId, newSecret } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { MailText } from '#sdk/mail.ts'
import type { UniqueValue } from '#sdk/new-account.ts'
import type {
  InvitationAccess,
  InvitationDraft,
  InvitationRecord,
  RegistrationAccess,
  RegistrationEvent,
  RegistrationOutcome,
  RegistrationStart,
  SecretMail,
} from '#sdk/registrations.ts'
import type { WorkflowCall } from '#sdk/workflow.ts'

type SentMail = MailText & { readonly recipient: string; readonly secret: string }

interface Kept {
  readonly form: string
  readonly secret: string
  readonly data: JsonObject
}

/** What registration forms keep, in memory. Reservations never end. */
export class MemoryRegistrations implements RegistrationAccess {
  readonly calls: WorkflowCall[] = []
  readonly mails: SentMail[] = []
  /** `form event` of what was counted. */
  readonly events: string[] = []
  readonly kept = new Map<string, Kept>()
  readonly #reserved = new Map<string, string>()
  readonly #used = new Set<string>()
  readonly #invitations = new Map<string, { form: string; secret: string; record: InvitationRecord }>()

  async start({ id, unique, call, check, invitation }: RegistrationStart): Promise<RegistrationOutcome> {
    const key = ({ attribute, value }: UniqueValue) => `${attribute} ${value}`.toLowerCase()
    const held = unique.filter((value) => (this.#reserved.get(key(value)) ?? id) !== id)
    if (held.length > 0) return { kind: 'taken', values: held }
    for (const value of unique) this.#reserved.set(key(value), id)
    const values = await check()
    if (values.length > 0) return { kind: 'taken', values }
    if (invitation !== undefined) {
      const found = this.#invitations.get(invitation)
      if (found?.record.state !== 'open') return { kind: 'not-invited' }
      found.record = { ...found.record, state: 'accepted' }
    }
    for (const value of unique) this.#reserved.set(key(value), id)
    this.calls.push(call)
    return { kind: 'started', result: { id: newId(), status: 'accepted', changes: 0 } }
  }

  counted(form: string, event: RegistrationEvent): void {
    this.events.push(`${form}: ${event}`)
  }

  async useOnce(token: string): Promise<boolean> {
    if (this.#used.has(token)) return false
    this.#used.add(token)
    return true
  }

  async keep(form: string, id: string, data: JsonObject, mail: SecretMail): Promise<void> {
    const secret = newSecret()
    this.mails.push({ ...mail.write(secret), recipient: mail.recipient, secret })
    this.kept.set(id, { form, secret, data })
  }

  async open(form: string, secret: string) {
    const found = [...this.kept].find(([, one]) => one.form === form && one.secret === secret)
    return found === undefined ? undefined : { id: found[0], data: found[1].data }
  }

  async forget(id: string): Promise<void> {
    this.kept.delete(id)
  }

  readonly invitations: InvitationAccess = {
    create: async (form: string, draft: InvitationDraft, { by }) => {
      const secret = newSecret()
      const { email, attributes } = draft
      const created = new Date()
      const expires = new Date(created.getTime() + draft.validMillis)
      const record: InvitationRecord = {
        id: newId(),
        email,
        attributes,
        invitedBy: by,
        state: 'open',
        created,
        expires,
        sent: 1,
      }
      this.mails.push({ ...draft.write(secret), recipient: email, secret })
      this.#invitations.set(record.id, { form, secret, record })
      return record
    },
    open: async (form, secret) => {
      const found = [...this.#invitations.values()].find((one) => one.form === form && one.secret === secret)
      return found?.record.state === 'open' ? found.record : undefined
    },
    get: async (_form, id) => this.#invitations.get(id)?.record,
    list: async (form) => ({
      invitations: [...this.#invitations.values()].filter((one) => one.form === form).map(({ record }) => record),
    }),
    resend: async (_form, id, mail) => {
      const found = this.#open(id)
      found.secret = newSecret()
      this.mails.push({ ...mail.write(found.secret), recipient: found.record.email, secret: found.secret })
      found.record = { ...found.record, sent: found.record.sent + 1 }
      return found.record
    },
    revoke: async (_form, id) => {
      const found = this.#open(id)
      found.record = { ...found.record, state: 'revoked' }
      return found.record
    },
  }

  #open(id: string) {
    const found = this.#invitations.get(id)
    if (found === undefined) throw new GatewayError('NOT_FOUND', id)
    if (found.record.state !== 'open') throw new GatewayError('CONFLICT', id)
    return found
  }
}
