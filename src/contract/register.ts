import type { FormAttributeView, ListItem } from './form-attribute.ts'

/** Paths of the registration API below its mount, which may end in `/register` or stand above it. */
export const registerPaths = {
  config: '/register/config',
  values: '/register/values',
  submit: '/register/submit',
  /** A fresh proof-of-work task, where the form asks for one. */
  challenge: '/register/challenge',
  /** The page that a verification mail leads to. */
  verify: '/register/verify',
  /** What an invitation says, by its token. */
  invitation: '/register/invitation',
  /** Invitations, for those who may invite. */
  invitations: '/register/invitations',
  swagger: '/register/swagger.json',
  openapi: '/register/openapi.json',
} as const

export const registerApiVersion = '1.0.0'

/** GET config. */
export interface RegisterConfig {
  readonly frontPage: { readonly title: string; readonly text: string }
  readonly homeURL: string
  readonly logoutURL: string
  readonly attributes: readonly FormAttributeView[]
  /** The names of `attributes`, in their order. */
  readonly attributeNameList: readonly string[]
  readonly requireReason: boolean
  readonly preSetPassword: boolean
  /** True for each kind of human check that shows a box or runs a provider's script. */
  readonly requireReCaptcha: boolean
  /** The provider's public key, where there is one. */
  readonly rcSiteKey?: string
  readonly requireTermsAndConditions: boolean
  readonly termsAndConditionsText?: string
  readonly reasonIsList: boolean
  readonly reasons: readonly string[]
  readonly submitButtonText: string
  readonly submittedText: string
  readonly enableThirdColumn: boolean
  readonly themePrimaryMain: string
  readonly themePrimaryDark: string
  readonly themePrimaryLight: string
  readonly themeSecondaryMain: string
  readonly themeSecondaryDark: string
  readonly themeSecondaryLight: string
  readonly headerTitle: string
  readonly errorColor: string
  readonly humanCheck: HumanCheckView
  /** Absent where no password is asked for. */
  readonly passwordRules?: PasswordRulesView
  /** The registration starts once the mail address, which stands in this attribute, was confirmed. */
  readonly verifyEmailAttribute?: string
  /** Nobody registers without an invitation. */
  readonly requireInvitation: boolean
  /** How many characters a search for list values needs. */
  readonly minSearchChars: number
}

export type HumanCheckKind = 'none' | 'recaptcha-v2' | 'recaptcha-v3' | 'turnstile' | 'proof-of-work'

export interface HumanCheckView {
  readonly kind: HumanCheckKind
  readonly siteKey?: string
  /** What the provider's script is to name the action. */
  readonly action?: string
  /** A field to be posted empty, hidden from people by the page; what fills it in is no person. */
  readonly honeypot?: string
}

export interface PasswordRulesView {
  readonly minChars: number
  readonly maxChars: number
}

/** GET challenge: find a `nonce` such that SHA-256 of `<challenge>.<nonce>` starts with `difficulty` zero bits. */
export interface RegisterChallenge {
  readonly challenge: string
  readonly difficulty: number
  /** ISO 8601. */
  readonly expires: string
}

/** GET values?name=&search=. */
export type RegisterValues = readonly ListItem[]

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
  /** The honeypot's content, by its configured name, comes beside these. */
}

/** 200 of submit. */
export interface SubmittedResponse {
  /** The form should be reset so that new requests can be added: the caller is logged in. */
  readonly addNewUsers: boolean
  /** Of the started workflow, or of the registration that waits for its mail to be confirmed. */
  readonly workflowId: string
  /** A mail was sent and has to be confirmed before anything starts. Absent where addresses are not verified. */
  readonly verificationSent?: boolean
}

export interface ErrorResponse {
  readonly errors: readonly string[]
}

/** GET invitation?token=. */
export interface InvitationOffer {
  readonly email: string
  /** Attributes that the invitation sets; they cannot be changed. */
  readonly attributes: Readonly<Record<string, string>>
  /** ISO 8601. */
  readonly expires: string
}

export type InvitationState = 'open' | 'accepted' | 'revoked' | 'expired'

export interface InvitationView {
  readonly id: string
  readonly email: string
  readonly attributes: Readonly<Record<string, string>>
  readonly invitedBy: string
  readonly state: InvitationState
  /** ISO 8601. */
  readonly created: string
  readonly expires: string
  /** How often the mail was sent. */
  readonly sent: number
}

/** GET invitations. */
export interface InvitationList {
  readonly invitations: readonly InvitationView[]
  /** The `after` of the following page; absent on the last one. */
  readonly next?: string
}

/** POST invitations; answered with an InvitationView. `<invitations>/<id>/resend` by POST, `<invitations>/<id>` by DELETE. */
export interface InvitationRequest {
  readonly email: string
  readonly attributes?: Readonly<Record<string, string>>
}
