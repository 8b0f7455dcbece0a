import * as z from 'zod'
import type { FormAttributeView, ListItem } from '#contract/form-attribute.ts'
import type {
  ErrorResponse,
  InvitationRequest,
  RegisterConfig,
  RegisterRequest,
  SubmittedResponse,
} from '#contract/register.ts'
import { maxFormAttributes } from '#sdk/form-attribute.ts'

/** The shapes of the wire. What is served as Swagger and OpenAPI is made of these. */

export const listItem = z.object({
  name: z.string().describe('Label of the item'),
  value: z.string().describe('Value of the item'),
  num: z.int().describe('Position of the item in the order'),
}) satisfies z.ZodType<ListItem>

const attribute = z.object({
  name: z.string().describe('Attribute name'),
  displayName: z.string().describe('Display label'),
  readOnly: z.boolean().describe('true if the value is read-only'),
  required: z.boolean().describe('true if the value must be in the request'),
  regEx: z.string().describe('Regular expression usable to validate the value').optional(),
  regExFailedMsg: z.string().describe('What is said when it does not match').optional(),
  minChars: z.int().describe('Minimum number of characters; 0 for none'),
  maxChars: z.int().describe('Maximum number of characters; 0 for none'),
  unique: z.boolean().describe('true if only one value of this attribute is allowed in the datastore'),
  type: z.enum(['text', 'text-area', 'text-list', 'list']).describe('How the field is shown'),
  values: z.array(listItem).describe('Allowed values'),
  show: z.boolean().describe('true if the attribute is shown'),
})

const colour = z.string().describe('A colour of the theme')

export const config = z.object({
  frontPage: z
    .object({
      title: z.string().describe('Title of the form'),
      text: z.string().describe('Descriptive text of the page'),
    })
    .describe('Display metadata for the registration page'),
  homeURL: z.string().describe('URL of the home page'),
  logoutURL: z.string().describe('URL to log out'),
  attributes: z.array(attribute).describe('Attributes available in registration'),
  attributeNameList: z.array(z.string()).describe('Attribute names'),
  requireReason: z.boolean().describe('Whether the workflow request requires a reason'),
  preSetPassword: z.boolean().describe('Whether a password capture screen is displayed'),
  requireReCaptcha: z.boolean().describe('Whether the form shows a CAPTCHA box'),
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
  humanCheck: z
    .object({
      kind: z.enum(['none', 'recaptcha-v2', 'recaptcha-v3', 'turnstile', 'proof-of-work']),
      siteKey: z.string().optional(),
      action: z.string().optional(),
      honeypot: z.string().describe('A member of the request that stays empty').optional(),
    })
    .describe('How it is made sure that a person registers'),
  passwordRules: z.object({ minChars: z.int(), maxChars: z.int() }).describe('What a password must be').optional(),
  verifyEmailAttribute: z.string().describe('The attribute whose mail address has to be confirmed').optional(),
  requireInvitation: z.boolean().describe('Whether an invitation is needed'),
  minSearchChars: z.int().describe('How many characters a search for values needs'),
})

/** Values are bounded by the form's own rules, which tell people what is wrong. */
const requestMembers = {
  attributes: z
    .record(z.string(), z.string())
    .refine((given) => Object.keys(given).length <= maxFormAttributes, `has more than ${maxFormAttributes} members`)
    .describe('Attribute name to value'),
  reason: z.string().max(2_000).describe('Why; one of the reasons where there is a list').optional(),
  password: z.string().max(2_000).describe('Where a password is asked for').optional(),
  password2: z.string().max(2_000).describe('The same password once more').optional(),
  reCaptchaCode: z.string().max(8_192).describe('What the human check gave').optional(),
  checkedTermsAndConditions: z.boolean().describe('Whether the terms were accepted').optional(),
  invitation: z.string().max(200).describe('The token of an invitation').optional(),
}

export const registerRequest = z.strictObject(requestMembers)

/** As it is read: clients of the predecessor send two more members, which say nothing, and the honeypot may be there. */
export const readRequest = (honeypot: string | undefined) =>
  z.strictObject({
    ...requestMembers,
    extraData: z.unknown().optional(),
    enabledAttrs: z.unknown().optional(),
    ...(honeypot === undefined ? {} : { [honeypot]: z.string().max(8_192).optional() }),
  })

export type ReadRequest = z.infer<typeof registerRequest>

export const submitted = z.object({
  addNewUsers: z.boolean().describe('true if the form should be reset so new requests can be added'),
  workflowId: z.string().describe('The workflow that was started, or the registration that waits to be confirmed'),
  verificationSent: z.boolean().describe('Whether a mail has to be confirmed first').optional(),
})

export const errorResponse = z.object({ errors: z.array(z.string()) })

export const invitationRequest = z.strictObject({
  email: z.string().max(254),
  attributes: z.record(z.string(), z.string()).optional(),
})

/** The compiler says here where the schemas and the contract differ. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never
type Plain<T> = T extends readonly (infer I)[]
  ? Plain<I>[]
  : T extends object
    ? { -readonly [K in keyof T]: Plain<T[K]> }
    : T
export const contractHolds: readonly true[] = [
  true satisfies Same<keyof z.infer<typeof config>, keyof RegisterConfig>,
  true satisfies Same<keyof z.infer<typeof attribute>, keyof FormAttributeView>,
  true satisfies Same<keyof z.infer<typeof registerRequest>, keyof RegisterRequest>,
  true satisfies Same<keyof z.infer<typeof submitted>, keyof SubmittedResponse>,
  true satisfies Same<keyof z.infer<typeof invitationRequest>, keyof InvitationRequest>,
  true satisfies Same<Plain<ErrorResponse>, z.infer<typeof errorResponse>>,
]
