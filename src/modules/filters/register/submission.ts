import type { Subject } from '#identity/subject.ts'
import type { ReadRequest } from '#modules/filters/register/register-schemas.ts'
import type { RegisterSettings } from '#modules/filters/register/register-settings.ts'
import type { FormAttribute } from '#modules/shared/forms/form-attribute.ts'
import { type CheckedForm, checkForm } from '#modules/shared/forms/form-values.ts'
import { isLoginName, isPlainText } from '#modules/shared/login/login-name.ts'
import type { InvitationRecord } from '#sdk/filter/registrations.ts'
import { isMailAddress } from '#sdk/notifier/mail.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'

/** A registration as it was sent, with whom it came from. */
export interface Submission {
  readonly body: ReadRequest
  readonly subject: Subject
  /** The one that the body's token opens. */
  readonly invitation: InvitationRecord | undefined
}

/** Nor the name that whoever did not log in goes by here. */
const isLogin = (login: string, { uid, level }: Subject): boolean =>
  isLoginName(login) && !(level === 0 && sameLogin(login, uid))

/** Everything but the human check, the password, and what others have to be asked for. */
export function checkSubmission(settings: RegisterSettings, submission: Submission): CheckedForm {
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

/** The field whose mail address is written to; undefined where none is. */
const addressField = ({ given }: RegisterSettings): string | undefined =>
  given.verifyEmail ? given.emailAttribute : undefined

/** The fields as they are for whoever was invited: what the invitation says stands. */
export function fieldsFor(
  settings: RegisterSettings,
  invitation: InvitationRecord | undefined,
): readonly FormAttribute[] {
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

/** Of a field that people cannot set: what the invitation says, or what is known of whoever is logged in. */
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
