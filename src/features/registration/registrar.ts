import * as z from 'zod'
import { passwordProblemText } from '#features/passwords/rules/password-problem-text.ts'
import type { SubmittedResponse } from '#features/registration/contract/register.ts'
import type { RegistrationHost } from '#features/registration/host.ts'
import type { InvitationRecord } from '#features/registration/service/invitation.ts'
import type { RegistrationOutcome } from '#features/registration/service/registrations.ts'
import { Attributes } from '#identity/attributes.ts'
import { type Identity, storedIdentity } from '#identity/identity.ts'
import { callerRef, type Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import { wireForm } from '#kernel/wire.ts'
import type { PasswordProblem, PasswordRules } from '#protocols/passwords/password-rules.ts'
import type { FormAttribute } from '#sdk/forms/form-attribute.ts'
import { type CheckedForm, checkForm } from '#sdk/forms/form-values.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'
import { anothersLoginText, hasOwnLogin, isLoginName, isPlainText } from '#sdk/login/own-login.ts'
import { isMailAddress } from '#sdk/mail/mail.ts'
import { textsFor } from '#sdk/page/page-texts.ts'
import type { ValueSource } from '#sdk/target/mapper.ts'
import { type NewAccount, takenValues, type UniqueValue } from '#sdk/target/new-account.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { HumanCheck } from './human-check.ts'
import type { Limits } from './limits.ts'
import type { Mails } from './mails.ts'
import type { ReadRequest, RegisterSettings } from './register-settings.ts'
import type { RegistrationHandler } from './registration-handler.ts'

interface RegistrarParts {
  readonly settings: RegisterSettings
  /** The name under which registrations and invitations of this form are stored. */
  readonly form: string
  readonly sources: ReadonlyMap<string, ValueSource>
  /** Chooses the workflow; absent if it is always the same. */
  readonly handler?: RegistrationHandler | undefined
  readonly humanCheck: HumanCheck
  readonly passwords: PasswordRules
  readonly mails: Mails
  readonly limits: Limits
  readonly host: Pick<RegistrationHost, 'directory' | 'registrations' | 'runs' | 'log'>
}

export type SubmitOutcome =
  | { readonly kind: 'taken-in'; readonly answer: SubmittedResponse }
  | { readonly kind: 'refused'; readonly errors: readonly string[]; readonly notHuman?: true }

const hourMillis = 3600_000

/** The request that submits or confirms a registration. */
type Submitting = Pick<GatewayRequest, 'id' | 'headers'>

/** Accepts registrations: validates them, and starts the workflow or has the mail address confirmed first. */
export class Registrar {
  readonly #parts: RegistrarParts

  constructor(parts: RegistrarParts) {
    this.#parts = parts
  }

  async submit(body: ReadRequest, isBot: boolean, subject: Subject, request: GatewayRequest): Promise<SubmitOutcome> {
    const { settings, limits, host, form, mails } = this.#parts
    if (settings.given.submitLoggedInUser && subject.level === 0) {
      throw new GatewayError('ACCESS_DENIED', 'a registration for the caller without an authenticated caller')
    }
    if (settings.given.submitLoggedInUser) await this.#requireOwnLogin(subject, request)
    const invitation = await this.#invitation(body)
    const submission: Submission = { body, subject, invitation }
    const human = isBot ? ['Human validation failed'] : await this.#checkHuman(body.reCaptchaCode, request)
    const checked = checkSubmission(settings, submission)
    const errors = [...human, ...this.#checkInvitation(body, invitation)]
    if (settings.given.preSetPassword) {
      const problems = await this.#checkPassword(body, checked.values, human.length === 0)
      errors.push(...problems.map((problem) => passwordProblemText(problem, textsFor(request))))
    }
    errors.push(...checked.errors)
    // Only a caller who passed the human check learns whether a value is taken, and only if the rest is valid.
    if (human.length > 0) return { kind: 'refused', errors, notHuman: true }
    errors.push(...(await this.#askSources(checked.values, subject)))
    if (errors.length > 0) return { kind: 'refused', errors }
    const unique = uniqueValues(settings.attributes, checked.values)
    await limits.takeValues(this.#counted(unique, checked.values))
    const taken = await takenValues(host.directory, unique)
    const hidden = settings.given.hideExisting
    if (!hidden && taken.length > 0) return { kind: 'refused', errors: taken.map((value) => this.#notAvailable(value)) }
    const sent = this.#registration(submission, checked.values)
    const registration = await this.#chosen(sent, subject)
    if ('errors' in registration) return { kind: 'refused', errors: registration.errors }
    const id = newId()
    const addNewUsers = subject.level > 0
    if (settings.given.verifyEmail && invitation === undefined) {
      const email = checked.values.get(settings.given.emailAttribute) ?? ''
      const mail = hidden && taken.length > 0 ? mails.unavailable(email, request) : mails.verification(email, request)
      const data = hidden && taken.length > 0 ? { refused: true } : toJson(registration)
      await host.registrations.keep(form, id, data, mail, settings.given.verificationHours * hourMillis)
      return { kind: 'taken-in', answer: { addNewUsers, workflowId: id, verificationSent: true } }
    }
    const outcome = await this.#start(id, registration, request)
    switch (outcome.kind) {
      case 'started':
        return { kind: 'taken-in', answer: { addNewUsers, workflowId: outcome.result.id } }
      case 'taken':
        return { kind: 'refused', errors: outcome.values.map((value) => this.#notAvailable(value)) }
      case 'not-invited':
        return { kind: 'refused', errors: ['The invitation is not valid'] }
    }
  }

  /** The registration with the workflow that the handler chooses. */
  async #chosen(sent: Registration, subject: Subject): Promise<Registration | { readonly errors: readonly string[] }> {
    const { handler, settings } = this.#parts
    if (handler === undefined) return sent
    const chosen = await handler.choose({ values: sent.values, subject, reason: sent.reason })
    if ('errors' in chosen) return chosen
    // Checked before: a handler can't replace the subject, or a value that no other user may have.
    const { uidAttributeName } = settings.given
    for (const { name, unique } of settings.attributes) {
      if ((unique || name === uidAttributeName) && chosen.values.get(name) !== sent.values.get(name)) {
        throw new GatewayError('WORKFLOW_FAILED', `the handler of the form changed "${name}", which was checked before`)
      }
    }
    return { ...sent, values: chosen.values, workflow: chosen.workflow, params: chosen.params }
  }

  /** Throws ACCESS_DENIED where another user has the caller's login, since the workflow would be about that user. */
  async #requireOwnLogin(subject: Subject, { id: requestId }: GatewayRequest): Promise<void> {
    const { settings, host } = this.#parts
    const { uid, identity } = subject
    if (await hasOwnLogin(callerRef(subject), host.directory, settings.given.uidAttributeName)) return
    const refused = [{ kind: 'entry', attribute: 'subject', value: uid }] as const
    await host.runs.refuse({
      name: settings.workflow ?? settings.handler?.className ?? '',
      caller: uid,
      subject: uid,
      requestId,
      refused,
    })
    throw new GatewayError('ACCESS_DENIED', `the login "${uid}" of ${identity} belongs to another user`, {
      publicText: anothersLoginText,
    })
  }

  /** Whether another user got the login of a caller who registered themselves. */
  async #isTaken({ userID, identity }: Registration): Promise<boolean> {
    const { settings, host } = this.#parts
    const { submitLoggedInUser, uidAttributeName } = settings.given
    if (!submitLoggedInUser || identity === undefined) return false
    return !(await hasOwnLogin({ identity, login: userID }, host.directory, uidAttributeName))
  }

  /** Whether the secret of a mail is still valid. */
  async isPending(secret: string): Promise<boolean> {
    const open = await this.#parts.host.registrations.open(this.#parts.form, secret)
    return open !== undefined && open.data['refused'] !== true
  }

  /** Continues a registration whose mail was confirmed. Undefined if there is none, or the form has changed since. */
  async confirm(secret: string, request: Submitting): Promise<RegistrationOutcome | undefined> {
    const outcome = await this.#confirm(secret, request)
    const event = outcome === undefined ? 'unknown-link' : outcome.kind === 'started' ? 'confirmed' : 'refused'
    this.#parts.host.registrations.counted(this.#parts.form, event)
    return outcome
  }

  async #confirm(secret: string, request: Submitting): Promise<RegistrationOutcome | undefined> {
    const { host, form, settings } = this.#parts
    const open = await host.registrations.open(form, secret)
    if (open === undefined || open.data['refused'] === true) return undefined
    const registration = fromJson(open.data, settings.given.workflowName)
    const { values } = registration
    const current = checkForm(settings.attributes, Object.fromEntries(values), ({ name }) => values.get(name))
    if (current.errors.length > 0) return undefined
    const outcome: RegistrationOutcome = (await this.#isTaken(registration))
      ? { kind: 'taken', values: [{ attribute: settings.given.uidAttributeName, value: registration.userID }] }
      : await this.#start(open.id, registration, request)
    await host.registrations.forget(open.id)
    return outcome
  }

  #start(id: string, registration: Registration, request: Submitting): Promise<RegistrationOutcome> {
    const { settings, host } = this.#parts
    const unique = uniqueValues(settings.attributes, registration.values)
    const call = workflowCall(settings, registration, request.id)
    return host.registrations.start({
      id,
      unique,
      call: settings.given.submitLoggedInUser
        ? call
        : { ...call, newAccount: this.#newAccount(registration, unique, request) },
      check: () => takenValues(host.directory, unique),
      invitation: registration.invitation,
    })
  }

  /** A form about another user creates an account; it never changes one that exists by then. */
  #newAccount({ values, anonymous }: Registration, unique: readonly UniqueValue[], request: Submitting): NewAccount {
    const { settings, mails } = this.#parts
    const recipient = values.get(settings.given.emailAttribute) ?? ''
    // A requester who is signed in sees the reason with their requests.
    if (!anonymous || !isMailAddress(recipient)) return { unique }
    return { unique, refusal: { ...mails.unavailable(recipient, request).write(''), recipient } }
  }

  #registration({ body, subject, invitation }: Submission, values: ReadonlyMap<string, string>): Registration {
    const { given } = this.#parts.settings
    const userID = given.submitLoggedInUser ? subject.uid : values.get(given.uidAttributeName)
    if (userID === undefined) throw new GatewayError('INTERNAL', 'a registration without a user')
    const reason = body.reason?.trim() ?? ''
    return {
      workflow: this.#parts.settings.workflow ?? '',
      params: {},
      userID,
      values,
      requester: subject.uid,
      identity: subject.identity,
      anonymous: subject.level === 0,
      reason: reason === '' ? undefined : reason,
      password: given.preSetPassword ? body.password : undefined,
      invitation: invitation?.id,
    }
  }

  #checkPassword(
    body: ReadRequest,
    values: ReadonlyMap<string, string>,
    byPerson: boolean,
  ): Promise<readonly PasswordProblem[]> {
    const given = { password: body.password, repeated: body.password2, values: values.values() }
    return this.#parts.passwords.check(given, byPerson)
  }

  async #checkHuman(code: string | undefined, request: GatewayRequest): Promise<string[]> {
    const { settings, humanCheck } = this.#parts
    if (settings.humanCheck === 'none') return []
    if (code === undefined || code === '') return ['Please verify you are not a robot']
    return (await humanCheck.passes(code, request)) ? [] : ['Human validation failed']
  }

  async #invitation({ invitation }: ReadRequest): Promise<InvitationRecord | undefined> {
    const { host, form } = this.#parts
    if (invitation === undefined || invitation === '') return undefined
    return await host.registrations.invitations.open(form, invitation)
  }

  #checkInvitation({ invitation: token }: ReadRequest, found: InvitationRecord | undefined): string[] {
    if (found !== undefined) return []
    if (token !== undefined && token !== '') return ['The invitation is not valid']
    return this.#parts.settings.given.requireInvitation ? ['An invitation is required'] : []
  }

  async #askSources(values: ReadonlyMap<string, string>, subject: Subject): Promise<string[]> {
    const errors: string[] = []
    for (const { name, displayName } of this.#parts.settings.attributes) {
      const value = values.get(name)
      const source = this.#parts.sources.get(name)
      const problem = value === undefined ? undefined : await source?.check(value, subject)
      if (problem !== undefined) errors.push(`${displayName} - ${problem}`)
    }
    return errors
  }

  #counted(unique: readonly UniqueValue[], values: ReadonlyMap<string, string>): UniqueValue[] {
    const { given } = this.#parts.settings
    const email = given.verifyEmail ? values.get(given.emailAttribute) : undefined
    const others = unique.filter(({ attribute }) => attribute !== given.emailAttribute)
    return email === undefined ? [...unique] : [...others, { attribute: given.emailAttribute, value: email }]
  }

  #notAvailable({ attribute }: UniqueValue): string {
    const found = this.#parts.settings.attributes.find(({ name }) => name === attribute)
    return `${found?.displayName ?? attribute} is not available`
  }
}

/** The values that no other user may have. */
const uniqueValues = (attributes: readonly FormAttribute[], values: ReadonlyMap<string, string>): UniqueValue[] =>
  attributes.flatMap(({ name, unique }) => {
    const value = values.get(name)
    return unique && value !== undefined ? [{ attribute: name, value }] : []
  })

/** A validated registration: all that its workflow needs, and nothing else. */
interface Registration {
  readonly workflow: string
  /** Request parameters of the workflow. */
  readonly params: Readonly<Record<string, string>>
  /** The subject of the workflow. */
  readonly userID: string
  readonly values: ReadonlyMap<string, string>
  readonly requester: string
  readonly identity: Identity | undefined
  /** The requester was not signed in. */
  readonly anonymous: boolean
  readonly reason: string | undefined
  readonly password: string | undefined
  readonly invitation: string | undefined
}

function workflowCall(
  { given }: RegisterSettings,
  { workflow, params, userID, values, requester, identity, reason, password }: Registration,
  requestId: string,
): WorkflowCall {
  const attributes = Attributes.from([...values].map(([name, value]) => [name, [value]] as const))
  attributes.set(given.uidAttributeName, [userID])
  return {
    head: {
      workflow,
      requester,
      who: identity === undefined ? undefined : { requester: identity },
      requestId,
      reason,
    },
    user: { userID, attributes, groups: [] },
    keepGroups: true,
    asynchronous: true,
    kept: true,
    params,
    password,
  }
}

/** The form that is sealed until its mail is confirmed. */
const storedSchema = z.object({
  userID: z.string(),
  requester: z.string(),
  identity: z.string().optional(),
  anonymous: z.boolean(),
  values: z.record(z.string(), z.string()),
  reason: z.string().optional(),
  password: z.string().optional(),
  invitation: z.string().optional(),
})

const toJson = ({ values, workflow: _, params: __, ...registration }: Registration): JsonObject =>
  wireForm(storedSchema, { ...registration, values: Object.fromEntries(values) })

function fromJson(data: JsonObject, workflow: string): Registration {
  const read = storedSchema.safeParse(data)
  if (!read.success) throw new GatewayError('INTERNAL', 'a stored registration is not as it was stored')
  const { values, identity, reason, password, invitation, ...rest } = read.data
  return {
    ...rest,
    workflow,
    params: {},
    identity: identity === undefined ? undefined : storedIdentity(identity),
    values: new Map(Object.entries(values)),
    reason,
    password,
    invitation,
  }
}

/** A registration as sent, with its sender. */
interface Submission {
  readonly body: ReadRequest
  readonly subject: Subject
  /** The invitation of the body's token. */
  readonly invitation: InvitationRecord | undefined
}

/** Rejects the login of callers who did not log in. */
const isLogin = (login: string, { uid, level }: Subject): boolean =>
  isLoginName(login) && !(level === 0 && sameLogin(login, uid))

/** Checks everything but the human check, the password, and values that need a lookup. */
function checkSubmission(settings: RegisterSettings, submission: Submission): CheckedForm {
  const attributes = fieldsFor(settings, submission.invitation)
  const form = checkForm(attributes, submission.body.attributes, ({ name }) => serverValue(name, settings, submission))
  const errors = [...termsAndReason(settings, submission.body), ...form.errors]
  const wrong = new Set(form.wrong)
  for (const attribute of attributes) {
    const value = form.values.get(attribute.name)
    const problem = value === undefined ? undefined : problemOf(attribute, value, settings, submission)
    if (problem === undefined) continue
    wrong.add(attribute.name)
    errors.push(`${attribute.displayName} ${problem}`)
  }
  return { values: form.values, errors, wrong }
}

function problemOf(
  { name, unique }: FormAttribute,
  value: string,
  settings: RegisterSettings,
  { subject }: Submission,
): string | undefined {
  const { uidAttributeName, submitLoggedInUser } = settings.given
  if (name === uidAttributeName && !submitLoggedInUser && !isLogin(value, subject)) {
    return 'is reserved, too long, or has characters that cannot be used; choose another'
  }
  if (name === addressField(settings) && !isMailAddress(value)) return 'is not a mail address'
  return unique && !isPlainText(value) ? 'has characters that cannot be used' : undefined
}

/** The field with the mail address to confirm; undefined if none is. */
const addressField = ({ given }: RegisterSettings): string | undefined =>
  given.verifyEmail ? given.emailAttribute : undefined

/** The fields for an invited user: values of the invitation can't be changed. */
function fieldsFor(settings: RegisterSettings, invitation: InvitationRecord | undefined): readonly FormAttribute[] {
  return settings.attributes.map((attribute) => {
    if (invitedValue(attribute.name, settings, invitation) !== undefined) return { ...attribute, readOnly: true }
    return attribute.name === addressField(settings) ? { ...attribute, required: true } : attribute
  })
}

function invitedValue(
  name: string,
  { given }: RegisterSettings,
  invitation: InvitationRecord | undefined,
): string | undefined {
  if (invitation === undefined) return undefined
  if (name === given.emailAttribute) return invitation.email
  return Object.hasOwn(invitation.attributes, name) ? invitation.attributes[name] : undefined
}

/** The value of a field that users can't set: from the invitation, or from the caller. */
function serverValue(
  name: string,
  settings: RegisterSettings,
  { subject, invitation }: Submission,
): string | undefined {
  const invited = invitedValue(name, settings, invitation)
  if (invited !== undefined || subject.level === 0) return invited
  const { submitLoggedInUser, uidAttributeName } = settings.given
  if (submitLoggedInUser && name.toLowerCase() === uidAttributeName.toLowerCase()) return subject.uid
  return subject.attributes.first(name)
}

function termsAndReason({ given }: RegisterSettings, body: ReadRequest): string[] {
  const errors: string[] = []
  if (given.requireTermsAndConditions && body.checkedTermsAndConditions !== true) {
    errors.push('Please accept the terms and conditions')
  }
  const reason = body.reason?.trim() ?? ''
  if (reason === '') {
    if (given.requireReason) errors.push('Reason is required')
  } else if (given.reasonIsList && !given.reasons.includes(body.reason ?? '')) {
    errors.push('Reason is not in the list')
  } else if (!reason.isWellFormed() || reason.includes('\0')) {
    errors.push('Reason has characters that cannot be used')
  }
  if (!given.preSetPassword && (body.password ?? '') + (body.password2 ?? '') !== '') {
    errors.push('This form does not accept a password')
  }
  return errors
}
