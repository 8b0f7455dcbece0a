import * as z from 'zod'
import { formAttributeView, listItem } from './main.ts'

export const humanCheckKind = z.enum(['none', 'recaptcha-v2', 'recaptcha-v3', 'turnstile', 'proof-of-work'])

export const humanCheckView = z.object({
  kind: humanCheckKind,
  siteKey: z.string().optional(),
  action: z.string().describe("What the provider's script is to name the action").optional(),
  honeypot: z
    .string()
    .describe('A member of the request that stays empty; the page hides it, and a program that fills it in is refused')
    .optional(),
})

export const passwordRulesView = z.object({ minChars: z.int(), maxChars: z.int() })

const colour = z.string().describe('A colour of the theme')

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
  themePrimaryMain: colour,
  themePrimaryDark: colour,
  themePrimaryLight: colour,
  themeSecondaryMain: colour,
  themeSecondaryDark: colour,
  themeSecondaryLight: colour,
  headerTitle: z.string().describe('Title of the page'),
  errorColor: colour,
  humanCheck: humanCheckView.describe('How it is made sure that a person registers'),
  passwordRules: passwordRulesView.describe('What a password must be; absent where none is requested').optional(),
  verifyEmailAttribute: z
    .string()
    .describe('The attribute whose mail address has to be confirmed before the registration starts')
    .optional(),
  requireInvitation: z.boolean().describe('Whether an invitation is needed'),
  minSearchChars: z.int().describe('How many characters a search needs in a list that is not shown whole'),
})

/** GET challenge: find a `nonce` such that SHA-256 of `<challenge>.<nonce>` starts with `difficulty` zero bits. */
export const registerChallenge = z.object({
  challenge: z.string(),
  difficulty: z.int().describe('Zero bits at the start of SHA-256 of "<challenge>.<nonce>"'),
  expires: z.string().describe('ISO 8601'),
})

/** GET values?name=&search=. */
export const registerValues = z.array(listItem)

/** 200 of submit. */
export const submittedResponse = z.object({
  addNewUsers: z.boolean().describe('true if the form should be reset so new requests can be added'),
  workflowId: z.string().describe('The workflow that was started, or the registration that waits to be confirmed'),
  verificationSent: z
    .boolean()
    .describe('Whether a mail has to be confirmed first; absent where addresses are not verified')
    .optional(),
})

/** The body of every failure. */
export const errorResponse = z.object({
  errors: z.array(z.string()).describe('What is wrong, for people'),
  code: z.string().describe('The error code, except for a failed validation').optional(),
  requestId: z.string().describe('The request as the log knows it').optional(),
})

/** GET invitation?token=. */
export const invitationOffer = z.object({
  email: z.string(),
  attributes: z.record(z.string(), z.string()).describe('Attributes that the invitation sets; they cannot be changed'),
  expires: z.string().describe('ISO 8601'),
})

export const invitationState = z.enum(['open', 'accepted', 'revoked', 'expired'])

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

/** GET invitations. */
export const invitationList = z.object({
  invitations: z.array(invitationView),
  next: z.string().describe('The `after` of the following page; absent on the last one').optional(),
})
