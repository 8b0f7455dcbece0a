import { type InvitationOffer, type InvitationView, invitationView } from '#features/registration/contract/register.ts'
import type { RegistrationHost } from '#features/registration/host.ts'
import type { InvitationRecord } from '#features/registration/service/invitation.ts'
import type { InvitationForm } from '#features/registration/service/offered-form.ts'
import { type FieldProblem, GatewayError } from '#kernel/errors.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer } from '#sdk/api/json-answer.ts'
import { readJsonBody } from '#sdk/api/json-body.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { checkValue } from '#sdk/forms/form-values.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { isMailAddress } from '#sdk/mail/mail.ts'
import type { Limits } from './limits.ts'
import { Mails } from './mails.ts'
import { invitationRequest, type RegisterSettings } from './register-settings.ts'

const maxBody = 64 * 1024
const pageSize = 100
const maxToken = 200
const invitationId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

interface InvitationApiParts {
  readonly settings: RegisterSettings
  readonly form: string
  readonly mails: Mails
  readonly limits: Pick<Limits, 'takeInvitation'>
  readonly host: Pick<RegistrationHost, 'registrations' | 'authorize'>
}

/** Shows an invitation to the invited user, and manages all invitations for users that may invite. */
export class InvitationsApi {
  readonly #parts: InvitationApiParts

  constructor(parts: InvitationApiParts) {
    this.#parts = parts
  }

  async offer({ request }: Exchange): Promise<GatewayResponse> {
    const { host, form, settings } = this.#parts
    const token = request.query.get('token') ?? ''
    const found =
      token === '' || token.length > maxToken ? undefined : await host.registrations.invitations.open(form, token)
    if (found === undefined) throw noInvitation()
    const shown = settings.attributes.filter(({ show, name }) => show && Object.hasOwn(found.attributes, name))
    const offer: InvitationOffer = {
      email: found.email,
      attributes: Object.fromEntries(shown.map(({ name }) => [name, found.attributes[name] ?? ''])),
      expires: found.expires.toISOString(),
    }
    return answer(offer)
  }

  async list(exchange: Exchange): Promise<GatewayResponse> {
    await this.#mayInvite(exchange)
    const { host, form } = this.#parts
    const after = exchange.request.query.get('after') ?? undefined
    if (after !== undefined && !invitationId.test(after)) {
      throw new GatewayError('BAD_REQUEST', 'not a page of invitations')
    }
    const { invitations, next } = await host.registrations.invitations.list(form, pageSize, after)
    return answer({ invitations: invitations.map(view), ...(next === undefined ? {} : { next }) })
  }

  async create(exchange: Exchange): Promise<GatewayResponse> {
    await this.#mayInvite(exchange)
    const { settings, host, form, mails, limits } = this.#parts
    const { email, attributes = {} } = await readJsonBody(exchange.request, invitationRequest, maxBody)
    const problems = draftProblems(settings, email, attributes)
    if (problems.length > 0) throw new GatewayError('BAD_REQUEST', 'an invitation that is not in order', { problems })
    await limits.takeInvitation(exchange.subject.identity)
    const draft = { ...mails.invitation(exchange.request), email, attributes }
    const created = await host.registrations.invitations.create(form, draft, actorOf(exchange))
    host.registrations.counted(form, 'invited')
    return answer(view(created), 201)
  }

  async revoke(exchange: Exchange, id: string): Promise<GatewayResponse> {
    await this.#mayInvite(exchange)
    if (!invitationId.test(id)) throw noInvitation()
    const { host, form } = this.#parts
    return answer(view(await host.registrations.invitations.revoke(form, id, actorOf(exchange))))
  }

  async resend(exchange: Exchange, id: string): Promise<GatewayResponse> {
    await this.#mayInvite(exchange)
    if (!invitationId.test(id)) throw noInvitation()
    const { host, form, mails, limits } = this.#parts
    await limits.takeInvitation(exchange.subject.identity)
    const mail = mails.invitation(exchange.request)
    return answer(view(await host.registrations.invitations.resend(form, id, mail, actorOf(exchange))))
  }

  async #mayInvite({ subject }: Exchange): Promise<void> {
    const { settings, host } = this.#parts
    if (subject.level > 0 && (await host.authorize(subject, settings.inviters)).allowed) return
    throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" may not invite`)
  }
}

const actorOf = ({ subject, request }: Exchange) => ({ by: subject.uid, requestId: request.id })

const view = (invitation: InvitationRecord): InvitationView => wireForm(invitationView, invitation)

const noInvitation = (): GatewayError =>
  new GatewayError('NOT_FOUND', 'no such invitation', { publicText: 'There is no such invitation.' })

/** The name under which registrations and invitations of a form are stored. */
export const formName = (application: string, { given }: Pick<RegisterSettings, 'given'>): string =>
  `${application} ${given.workflowName}`

/** Invites to the form from outside the API; undefined without an invitationURL. */
export function invitationForm(settings: RegisterSettings): InvitationForm | undefined {
  if (settings.given.invitationURL === undefined) return undefined
  return {
    name: (application) => formName(application, settings),
    problems: (email, attributes) =>
      draftProblems(settings, email, attributes).map(({ pointer, detail }) => `${pointer} ${detail}`),
    mail: new Mails(settings).invitation(),
  }
}

/** The problems of an invitation: it may only set fields of the form, to valid values. */
function draftProblems(
  { attributes, given }: RegisterSettings,
  email: string,
  values: Readonly<Record<string, string>>,
): FieldProblem[] {
  const problems: FieldProblem[] = []
  if (!isMailAddress(email)) problems.push({ pointer: '/email', detail: 'is not a mail address' })
  for (const [name, value] of Object.entries(values)) {
    const pointer = `/attributes/${name.slice(0, 80)}`
    const attribute = attributes.find((one) => one.name === name)
    if (attribute === undefined) problems.push({ pointer, detail: 'is not a field of the form' })
    else if (name === given.emailAttribute) problems.push({ pointer, detail: 'is the mail address itself' })
    else
      for (const detail of checkValue({ ...attribute, required: true }, value))
        problems.push({ pointer, detail: `: ${detail}` })
  }
  return problems
}
