import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { formAttributeView, listItem } from '#sdk/contract/forms.ts'
import { theme } from '#sdk/contract/theme.ts'

export const humanCheckKind = z.enum(['none', 'recaptcha-v2', 'recaptcha-v3', 'turnstile', 'proof-of-work'])
export type HumanCheckKind = Wire<typeof humanCheckKind>

export const humanCheckView = z.object({
  kind: humanCheckKind,
  siteKey: z.string().optional(),
  action: z.string().describe("What the provider's script is to name the action").optional(),
  honeypot: z
    .string()
    .describe('A member of the request that stays empty; the page hides it, and a program that fills it in is refused')
    .optional(),
})
export type HumanCheckView = Wire<typeof humanCheckView>

export const passwordRulesView = z.object({ minChars: z.int(), maxChars: z.int() })
export type PasswordRulesView = Wire<typeof passwordRulesView>

/** GET config. */
export const registerConfig = z.object({
  frontPage: z
    .object({
      title: z.string().describe('Title of the form'),
      text: z.string().describe('Descriptive text of the page'),
    })
    .describe('Display metadata for the registration page'),
  homeURL: z.string().describe('URL of the home page'),
  logoutURL: z.string().describe('URL to log out'),
  attributes: z.array(formAttributeView).describe('Attributes available in registration'),
  attributeNameList: z.array(z.string()).describe('Attribute names, in the order of the attributes'),
  requireReason: z.boolean().describe('Whether the workflow request requires a reason'),
  preSetPassword: z.boolean().describe('Whether a password capture screen is displayed'),
  requireReCaptcha: z
    .boolean()
    .describe("Whether the form shows a CAPTCHA box, or runs a provider's script in its place"),
  rcSiteKey: z.string().describe('Public key of the CAPTCHA').optional(),
  requireTermsAndConditions: z.boolean().describe('Whether a terms-and-conditions checkbox is displayed'),
  termsAndConditionsText: z.string().describe('The terms').optional(),
  reasonIsList: z.boolean().describe('Whether the allowed reasons are supplied as a list'),
  reasons: z.array(z.string()).describe('Allowed reasons'),
  submitButtonText: z.string().describe('Text of the submit button'),
  submittedText: z.string().describe('Text shown after submission'),
  enableThirdColumn: z.boolean().describe('Whether the form has a third column'),
  ...theme.shape,
  headerTitle: z.string().describe('Title of the page'),
  humanCheck: humanCheckView.describe('How it is made sure that a person registers'),
  passwordRules: passwordRulesView.describe('What a password must be; absent where none is requested').optional(),
  verifyEmailAttribute: z
    .string()
    .describe('The attribute whose mail address has to be confirmed before the registration starts')
    .optional(),
  requireInvitation: z.boolean().describe('Whether an invitation is needed'),
  minSearchChars: z.int().describe('How many characters a search needs in a list that is not shown whole; 0 for none'),
})
export type RegisterConfig = Wire<typeof registerConfig>

/** GET config, in the form that OpenUnison's registration page reads. */
export const openUnisonRegisterConfig = registerConfig.extend({
  attributes: z
    .record(
      z.string(),
      formAttributeView.extend({
        type: z.string().describe('As configured'),
        editJavaScriptFunction: z.string().describe('What that page runs after a change of the field').optional(),
      }),
    )
    .describe('Attributes available in registration, by name'),
  jsUris: z.array(z.string()).describe('Scripts that that page loads'),
  displayNameAttribute: z.string().optional(),
})
export type OpenUnisonRegisterConfig = Wire<typeof openUnisonRegisterConfig>

/** GET challenge: find a `nonce` such that SHA-256 of `<challenge>.<nonce>` starts with `difficulty` zero bits. */
export const registerChallenge = z.object({
  challenge: z.string(),
  difficulty: z.int().describe('Zero bits at the start of SHA-256 of "<challenge>.<nonce>"'),
  expires: z.string().describe('ISO 8601'),
})
export type RegisterChallenge = Wire<typeof registerChallenge>

/** GET values?name=&search=. */
export const registerValues = z.array(listItem)
export type RegisterValues = Wire<typeof registerValues>

/** 200 of submit. */
export const submittedResponse = z.object({
  addNewUsers: z.boolean().describe('true if the form should be reset so new requests can be added'),
  workflowId: z.string().describe('The workflow that was started, or the registration that waits to be confirmed'),
  verificationSent: z
    .boolean()
    .describe('Whether a mail has to be confirmed first; absent where addresses are not verified')
    .optional(),
})
export type SubmittedResponse = Wire<typeof submittedResponse>

/** The body of every failure. */
export const errorResponse = z.object({
  errors: z.array(z.string()).describe('What is wrong, for people'),
  code: z.string().describe('The error code, except for a failed validation').optional(),
  requestId: z.string().describe('The request as the log knows it').optional(),
})
export type ErrorResponse = Wire<typeof errorResponse>

/** GET invitation?token=. */
export const invitationOffer = z.object({
  email: z.string(),
  attributes: z.record(z.string(), z.string()).describe('Attributes that the invitation sets; they cannot be changed'),
  expires: z.string().describe('ISO 8601'),
})
export type InvitationOffer = Wire<typeof invitationOffer>

export const invitationState = z.enum(['open', 'accepted', 'revoked', 'expired'])
export type InvitationState = Wire<typeof invitationState>

export const invitationView = z.object({
  id: z.string(),
  email: z.string(),
  attributes: z.record(z.string(), z.string()),
  invitedBy: z.string(),
  state: invitationState,
  created: z.string().describe('ISO 8601'),
  expires: z.string().describe('ISO 8601'),
  sent: z.int().describe('How often the mail was sent'),
})
export type InvitationView = Wire<typeof invitationView>

/** GET invitations. */
export const invitationList = z.object({
  invitations: z.array(invitationView),
  next: z.string().describe('The `after` of the following page; absent on the last one').optional(),
})
export type InvitationList = Wire<typeof invitationList>

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

/** POST invitations; answered with an InvitationView. `<invitations>/<id>/resend` by POST, `<invitations>/<id>` by DELETE. */
export interface InvitationRequest {
  readonly email: string
  readonly attributes?: Readonly<Record<string, string>>
}
