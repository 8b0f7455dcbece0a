import type { InvitationOffer, RegisterConfig, RegisterRequest } from '#features/registration/contract/register.ts'
import type { FormAttributeView } from '#sdk/contract/forms.ts'
import { passwordProblem } from '../../components/password-strength.ts'
import { autoComplete } from './auto-complete.ts'
import { fieldProblem, type Matches, type Problem } from './field-rules.ts'

/** Typed values that may survive a reload: no passwords. */
export interface Entries {
  readonly values: Readonly<Record<string, string>>
  readonly reason: string
  readonly terms: boolean
}

export interface Passwords {
  readonly password: string
  readonly password2: string
}

export const noEntries: Entries = { values: {}, reason: '', terms: false }
export const noPasswords: Passwords = { password: '', password2: '' }

/** An invitation, with its token. */
export interface Invitation extends InvitationOffer {
  readonly token: string
}

/** The fields of the form for an invited user: values of the invitation cannot be changed. */
export function fieldsOf(config: RegisterConfig, invitation: Invitation | undefined): readonly FormAttributeView[] {
  const shown = config.attributes.filter(({ show }) => show)
  return shown.map((field) =>
    invitedValue(config, field.name, invitation) === undefined ? field : { ...field, readOnly: true },
  )
}

export function invitedValue(
  config: RegisterConfig,
  name: string,
  invitation: Invitation | undefined,
): string | undefined {
  if (invitation === undefined) return undefined
  if (Object.hasOwn(invitation.attributes, name)) return invitation.attributes[name]
  const isAddress =
    config.verifyEmailAttribute === undefined
      ? autoComplete(name).autoComplete === 'email'
      : name === config.verifyEmailAttribute
  return isAddress ? invitation.email : undefined
}

/** Parts of the form that can have problems. */
export type Place = 'field' | 'reason' | 'password' | 'password2' | 'terms'

/** The key of a part; a field by `field` and its name, so that no attribute collides with a part. */
export const keyOf = (place: Place, name = ''): string => `${place} ${name}`.trimEnd()

/** All problems by part, in the order of the form. */
export function problemsOf(
  config: RegisterConfig,
  fields: readonly FormAttributeView[],
  entries: Entries,
  passwords: Passwords,
  matches: Matches,
): ReadonlyMap<string, Problem> {
  const found = new Map<string, Problem>()
  const note = (key: string, problem: Problem | undefined): void => {
    if (problem !== undefined) found.set(key, problem)
  }
  for (const field of fields) {
    if (field.readOnly) continue
    const isAddress = field.name === config.verifyEmailAttribute
    note(keyOf('field', field.name), fieldProblem(field, entries.values[field.name] ?? '', isAddress, matches))
  }
  if (config.requireReason && entries.reason.trim() === '') note(keyOf('reason'), { key: 'register.required' })
  if (config.passwordRules !== undefined) {
    const { password, password2 } = passwords
    note(keyOf('password'), passwordProblem(password, config.passwordRules, Object.values(entries.values)))
    if (password2 !== password) note(keyOf('password2'), { key: 'register.passwordsDiffer' })
  }
  if (config.requireTermsAndConditions && !entries.terms) note(keyOf('terms'), { key: 'register.termsNeeded' })
  return found
}

/** The request to send. Fields that only the server sets are left out, and so are empty ones. */
export function requestOf(
  config: RegisterConfig,
  fields: readonly FormAttributeView[],
  entries: Entries,
  passwords: Passwords,
  more: { readonly proof: string | undefined; readonly trap: string; readonly invitation: Invitation | undefined },
): RegisterRequest {
  const values = fields.flatMap(({ name, readOnly }) => {
    const value = entries.values[name] ?? ''
    return readOnly || value === '' ? [] : [[name, value] as const]
  })
  const { honeypot } = config.humanCheck
  return {
    attributes: Object.fromEntries(values),
    ...(entries.reason.trim() === '' ? {} : { reason: entries.reason }),
    ...(config.preSetPassword ? passwords : {}),
    ...(more.proof === undefined ? {} : { reCaptchaCode: more.proof }),
    ...(config.requireTermsAndConditions ? { checkedTermsAndConditions: entries.terms } : {}),
    ...(more.invitation === undefined ? {} : { invitation: more.invitation.token }),
    ...(honeypot === undefined ? {} : { [honeypot]: more.trap }),
  }
}
