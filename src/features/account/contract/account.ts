import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

export const passwordRuleView = z.object({ minChars: z.int(), maxChars: z.int() })
export type PasswordRuleView = Wire<typeof passwordRuleView>

/** GET. */
export const accountView = z.object({
  login: z.string(),
  displayName: z.string(),
  session: z
    .object({ id: z.string(), chain: z.string(), level: z.int(), started: z.string(), expires: z.string() })
    .describe('Absent for a caller without a session, who can change nothing.')
    .optional(),
  password: passwordRuleView
    .describe("The rules of a new password; absent where the caller's password can't be changed here.")
    .optional(),
})
export type AccountView = Wire<typeof accountView>

/** The body of POST `password`. */
export interface ChangePassword {
  readonly currentPassword: string
  readonly newPassword: string
}

export const accountSession = z.object({
  id: z.string(),
  current: z.boolean().describe('The session of this request.'),
  application: z.string(),
  started: z.string(),
  lastUsed: z.string(),
  expires: z.string(),
  address: z.string().describe('The address at login: untrusted text.'),
  agent: z.string().describe('The User-Agent at login: untrusted text.'),
})
export type AccountSession = Wire<typeof accountSession>

/** GET `sessions`. */
export const accountSessions = z.object({ sessions: z.array(accountSession) })
export type AccountSessions = Wire<typeof accountSessions>

/** The answer to DELETE `sessions`, and to POST `password`. */
export const endedSessions = z.object({ ended: z.int() })
export type EndedSessions = Wire<typeof endedSessions>

const accountFactorKind = z.enum(['totp', 'passkey'])
export type AccountFactorKind = Wire<typeof accountFactorKind>

export const accountFactor = z.object({
  id: z.string(),
  kind: accountFactorKind,
  name: z.string(),
  created: z.string(),
  lastUsed: z.string().describe('Absent until its first use.').optional(),
})
export type AccountFactor = Wire<typeof accountFactor>

/** GET `factors`. */
export const accountFactors = z.object({
  factors: z.array(accountFactor),
  recoveryCodes: z.int().describe('How many recovery codes are left.'),
  offers: z.array(accountFactorKind).describe('The kinds of factors that can be enrolled here.'),
})
export type AccountFactors = Wire<typeof accountFactors>

/** The answer to POST `factors/totp`. */
export const totpEnrolment = z.object({
  enrolment: z.string(),
  secret: z.string().describe('Base 32, for typing.'),
  uri: z.string().describe('`otpauth:`, for scanning or following.'),
  qr: z
    .object({ size: z.int(), path: z.string() })
    .describe('The same as an image: an SVG path in a square of `size` units.'),
  expires: z.string().describe('The last time at which it can be confirmed.'),
})
export type TotpEnrolment = Wire<typeof totpEnrolment>

/** The body of POST `factors/totp/confirm`. */
export interface ConfirmTotp {
  readonly enrolment: string
  readonly code: string
  readonly name?: string
}

/** The answer to POST `factors/passkey`. */
export const passkeyEnrolment = z.object({
  enrolment: z.string(),
  options: z.unknown().describe('For `navigator.credentials.create`, as PublicKeyCredentialCreationOptionsJSON.'),
  expires: z.string(),
})
export type PasskeyEnrolment = Wire<typeof passkeyEnrolment>

/** The body of POST `factors/passkey/confirm`. */
export interface ConfirmPasskey {
  readonly enrolment: string
  /** RegistrationResponseJSON. */
  readonly response: unknown
  readonly name?: string
}

/** The answer to a confirmation. */
export const enrolledFactor = z.object({
  factor: accountFactor,
  recoveryCodes: z
    .array(z.string())
    .describe('New codes, for a user who had none. They are shown only once.')
    .optional(),
})
export type EnrolledFactor = Wire<typeof enrolledFactor>

/** The body of PATCH `factors/{id}`. */
export interface RenameFactor {
  readonly name: string
}

/** The answer to POST `recovery-codes`. */
export const recoveryCodes = z.object({ recoveryCodes: z.array(z.string()) })
export type RecoveryCodes = Wire<typeof recoveryCodes>

/** The body of every failure. */
export const accountErrors = z.object({
  errors: z.array(z.string()).describe('Text for people.'),
  code: z.string(),
  requestId: z.string(),
  stepUp: z.literal(true).describe('Present if the error asks for a fresh login.').optional(),
})
export type AccountErrors = Wire<typeof accountErrors>
