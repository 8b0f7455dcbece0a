import type * as schema from './schemas/register.ts'
import type { Wire } from './wire.ts'

/** Paths of the registration API below its mount, which may end in `/register` or be its parent. */
export const registerPaths = {
  config: '/register/config',
  values: '/register/values',
  submit: '/register/submit',
  /** A new proof-of-work challenge, if the form requires one. */
  challenge: '/register/challenge',
  /** The page that the link in a verification mail opens. */
  verify: '/register/verify',
  /** The content of an invitation, by its token. */
  invitation: '/register/invitation',
  /** Invitations, for users who may invite. */
  invitations: '/register/invitations',
  swagger: '/register/swagger.json',
  openapi: '/register/openapi.json',
} as const

export const registerApiVersion = '1.0.0'

/** GET config. */
export type RegisterConfig = Wire<typeof schema.registerConfig>

export type HumanCheckKind = Wire<typeof schema.humanCheckKind>

export type HumanCheckView = Wire<typeof schema.humanCheckView>

export type PasswordRulesView = Wire<typeof schema.passwordRulesView>

/** GET challenge: find a `nonce` such that SHA-256 of `<challenge>.<nonce>` starts with `difficulty` zero bits. */
export type RegisterChallenge = Wire<typeof schema.registerChallenge>

/** GET values?name=&search=. */
export type RegisterValues = Wire<typeof schema.registerValues>

/** POST submit. */
export interface RegisterRequest {
  readonly attributes: Readonly<Record<string, string>>
  readonly reason?: string
  readonly password?: string
  readonly password2?: string
  /** The provider's token, or `<challenge>.<nonce>` for the proof of work. */
  readonly reCaptchaCode?: string
  readonly checkedTermsAndConditions?: boolean
  /** The token of an invitation. */
  readonly invitation?: string
  /** The request also has the honeypot field under its configured name. */
}

/** 200 of submit. */
export type SubmittedResponse = Wire<typeof schema.submittedResponse>

export type ErrorResponse = Wire<typeof schema.errorResponse>

/** GET invitation?token=. */
export type InvitationOffer = Wire<typeof schema.invitationOffer>

export type InvitationState = Wire<typeof schema.invitationState>

export type InvitationView = Wire<typeof schema.invitationView>

/** GET invitations. */
export type InvitationList = Wire<typeof schema.invitationList>

/** POST invitations; answered with an InvitationView. `<invitations>/<id>/resend` by POST, `<invitations>/<id>` by DELETE. */
export interface InvitationRequest {
  readonly email: string
  readonly attributes?: Readonly<Record<string, string>>
}
