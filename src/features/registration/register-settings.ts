import * as z from 'zod'
import { passwordParameters, readWebAddress } from '#features/passwords/rules/password-parameters.ts'
import type { HumanCheckKind, InvitationRequest, RegisterRequest } from '#features/registration/contract/register.ts'
import type { Issues } from '#kernel/issues.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import {
  type FormAttribute,
  formAttributeRows,
  maxFormAttributes,
  readFormAttributes,
} from '#sdk/forms/form-attribute.ts'
import { themeParameters } from '#sdk/forms/theme-parameters.ts'
import { parseColor } from '#sdk/http/page-look.ts'
import { choice, flag, list, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { defaultNotifier, referNotifier } from '#sdk/notifier/notifier.ts'
import { readRuleParameter } from '#sdk/rule/rule-parameter.ts'
import type { PreparedValueSource } from '#sdk/target/mapper.ts'
import { readHandler } from './registration-handler.ts'
import { settingParams } from './setting-params.ts'

type RegisterParameters = ParsedParameters<typeof registerParameters>

/** The configuration of a registration form. */
export type RegisterSettings = ReturnType<typeof readRegisterSettings>

export function readRegisterSettings(params: Params, issues: Issues, context: ParseContext) {
  const given = readParameters(registerParameters, params, issues, context)
  const report = (name: string, message: string): void => issues.error(params.pathOf(name), message)
  const attributes = readFormAttributes(given.attributeNames, given, params, issues, {
    namesParameter: 'attributeNames',
    requiredUnlessSaid: true,
  }).map((attribute) => subjectRules(attribute, given, params, issues))
  warnOfScripts(given, params, issues)
  const uidField = attributes.find(({ name }) => name === given.uidAttributeName)
  if (uidField === undefined && !given.submitLoggedInUser && given.uidAttributeName !== '') {
    report(
      'uidAttributeName',
      `"uidAttributeName": the form has no field "${given.uidAttributeName}", so no user could be registered`,
    )
  }
  if (given.reasonIsList && given.reasons.length === 0)
    report('reasons', 'parameter "reasons" is required where reasonIsList is "true"')
  const terms = given.termsAndConditionsText ?? given.termsAndCondisionsText
  if (given.requireTermsAndConditions && terms === undefined) {
    report(
      'termsAndConditionsText',
      'parameter "termsAndConditionsText" is required where requireTermsAndConditions is "true"',
    )
  }
  const { useCallWorkflowClass, callWorkflowClassName = '', callWorkflowInit } = given
  const handler = useCallWorkflowClass
    ? readHandler(callWorkflowClassName, callWorkflowInit, params, issues, context)
    : undefined
  if (!useCallWorkflowClass && given.workflowName === '') {
    report('workflowName', 'parameter "workflowName" is required unless useCallWorkflowClass is "true"')
  }
  if (useCallWorkflowClass && given.verifyEmail) {
    report('verifyEmail', '"verifyEmail" is not supported where useCallWorkflowClass is "true"')
  }
  if (given.passwordMinChars > given.passwordMaxChars)
    report('passwordMinChars', '"passwordMinChars" is more than "passwordMaxChars"')
  const { honeypotField } = given
  if (
    honeypotField !== undefined &&
    (!/^[A-Za-z][\w-]{0,63}$/.test(honeypotField) || honeypotField in registerRequest.shape)
  ) {
    report('honeypotField', `"honeypotField": "${honeypotField}" cannot be the name of a further member of the body`)
  }
  checkMails(given, attributes, params, issues, context)
  return {
    given,
    attributes,
    handler,
    /** The workflow of every registration; undefined if a script chooses it. */
    workflow: useCallWorkflowClass ? handler?.workflow : given.workflowName,
    sources: readSources(attributes, issues, context),
    /** The types of the fields as written, which are more than we distinguish. */
    fieldTypes: new Map(attributes.map(({ name }) => [name, params.values(`${name}.type`)[0] || 'text'])),
    terms,
    humanCheck: readHumanCheck(given, report),
    inviters: given.inviterRule.flatMap(
      (rule, i) => readRuleParameter('inviterRule', rule, i, params, issues, context) ?? [],
    ),
    places: given.attributeNames.map((attribute, i) => ({ attribute, path: params.pathOf('attributeNames', i) })),
  }
}

/** The field that names the subject: set by the login if the workflow is about the caller, else unique. */
function subjectRules(
  attribute: FormAttribute,
  given: RegisterParameters,
  params: Params,
  issues: Issues,
): FormAttribute {
  if (attribute.name.toLowerCase() !== given.uidAttributeName.toLowerCase()) return attribute
  if (given.submitLoggedInUser) return { ...attribute, readOnly: true, unique: false }
  if (!given['<attribute>.unique'].has(attribute.name)) return { ...attribute, unique: true, required: true }
  if (!attribute.unique) {
    const message = 'a login that exists is refused only when the workflow runs, after any approval'
    issues.warning(params.pathOf(`${attribute.name}.unique`), `"${attribute.name}.unique" is "false": ${message}`)
  }
  return { ...attribute, required: true }
}

/** Gatehouse's own pages run no code of the configuration; OpenUnison's page does. */
function warnOfScripts(given: RegisterParameters, params: Params, issues: Issues): void {
  if (given.configFormat === 'openunison') return
  const why = 'is not used: browsers run no code of the configuration'
  if (given.jsUris.length > 0) issues.warning(params.pathOf('jsUris'), `"jsUris" ${why}`)
  for (const name of given['<attribute>.editJavaScriptFunction'].keys()) {
    const parameter = `${name}.editJavaScriptFunction`
    issues.warning(params.pathOf(parameter), `"${parameter}" ${why}`)
  }
}

function checkMails(
  given: RegisterParameters,
  attributes: readonly FormAttribute[],
  params: Params,
  issues: Issues,
  context: ParseContext,
): void {
  const { verifyEmail, requireInvitation, inviterRule, emailAttribute } = given
  const invites = requireInvitation || inviterRule.length > 0 || given.invitationURL !== undefined
  const needs = (name: 'publicURL' | 'invitationURL', why: string): void => {
    if (given[name] === undefined && params.values(name).every((value) => value === '')) {
      issues.error(params.pathOf(name), `parameter "${name}" is required ${why}`)
    }
  }
  if (verifyEmail) needs('publicURL', 'where verifyEmail is "true"')
  if (invites) needs('invitationURL', 'where there are invitations')
  if ((verifyEmail || invites) && !attributes.some(({ name }) => name === emailAttribute)) {
    const place = params.pathOf('emailAttribute')
    issues.error(place, `"emailAttribute": the form has no field "${emailAttribute}" for the mail address`)
  }
  if (given.hideExisting && !verifyEmail) {
    issues.error(
      params.pathOf('hideExisting'),
      '"hideExisting" requires "verifyEmail", because only the mail reports whether a value is in use',
    )
  }
  if (verifyEmail || invites) referNotifier(given.notifier ?? defaultNotifier, params.pathOf('notifier'), context)
}

function readHumanCheck(given: RegisterParameters, report: (name: string, message: string) => void): HumanCheckKind {
  const kind = given.humanCheck === '' ? (given.requireReCaptcha ? 'recaptcha-v2' : 'none') : given.humanCheck
  if (kind === 'none' && given.requireReCaptcha)
    report('humanCheck', '"humanCheck" is "none", but "requireReCaptcha" is "true"')
  if (kind === 'none' || kind === 'proof-of-work') return kind
  for (const name of ['rcSiteKey', 'rcSecret'] as const) {
    if (given[name] === undefined) report(name, `parameter "${name}" is required for ${kind}`)
  }
  return kind
}

function readSources(
  attributes: readonly FormAttribute[],
  issues: Issues,
  context: ParseContext,
): Map<string, PreparedValueSource> {
  const sources = new Map<string, PreparedValueSource>()
  for (const { name, source } of attributes) {
    if (source === undefined) continue
    const settings = settingParams(source.settings, source.path, source.settingPath, issues)
    const prepared = context.valueSource?.(source.className, settings, source.path, issues)
    if (prepared !== undefined) sources.set(name, prepared)
  }
  return sources
}

/** Values are bounded by the form's own rules, which report what is wrong. */
const requestMembers = {
  attributes: z
    .record(z.string(), z.string())
    .refine((given) => Object.keys(given).length <= maxFormAttributes, `has more than ${maxFormAttributes} members`)
    .describe('Attribute name to value'),
  reason: z.string().max(2_000).describe('Why; one of the reasons where there is a list').optional(),
  password: z.string().max(2_000).describe('Where a password is required').optional(),
  password2: z.string().max(2_000).describe('The same password again').optional(),
  reCaptchaCode: z.string().max(8_192).describe('What the human check gave').optional(),
  checkedTermsAndConditions: z.boolean().describe('Whether the terms were accepted').optional(),
  invitation: z.string().max(200).describe('The token of an invitation').optional(),
} satisfies Record<keyof RegisterRequest, z.ZodType>

export const registerRequest = z.strictObject(requestMembers)

/** Clients of OpenUnison send two more members, which are ignored, and the honeypot. */
export const readRequest = (honeypot: string | undefined) =>
  z.strictObject({
    ...requestMembers,
    extraData: z.unknown().optional(),
    enabledAttrs: z.unknown().optional(),
    ...(honeypot === undefined ? {} : { [honeypot]: z.string().max(8_192).optional() }),
  })

export type ReadRequest = z.infer<typeof registerRequest>

export const invitationRequest = z.strictObject({
  email: z.string().max(254),
  attributes: z.record(z.string(), z.string()).optional(),
} satisfies Record<keyof InvitationRequest, z.ZodType>)

/** Throws an Error if it has placeholders other than `$link$` and `$title$`, or none for the link. */
function compileMailTemplate(text: string): Template {
  const template = parseTemplate(text, { keys: true, attributes: false })
  const unknown = template.keys.find((key) => key !== 'link' && key !== 'title')
  if (unknown !== undefined) throw new Error(`has a place for "$${unknown}$"; there are $link$ and $title$`)
  if (!template.keys.includes('link')) throw new Error('needs a place for "$link$"')
  return template
}

/** Shown in the language of the user, unless the configuration has a text of its own. */
export const defaultSubmitText = 'Submit Registration'
export const defaultSubmittedText = 'Thank you for registering. You will hear from us.'

/** OpenUnison's parameters, under their names. */
const inherited = {
  'frontPage.title': text({ about: 'The title of the form.', required: true }),
  'frontPage.text': text({ about: 'The text below the title.', required: true }),
  homeURL: text({ about: 'Where the link to the home page leads.', required: true }),
  logoutURL: text({ about: 'Where the link to log out leads.', required: true }),
  uidAttributeName: text({ about: 'The attribute with the login of the subject of the workflow.', required: true }),
  workflowName: text({
    about: 'The workflow that a registration starts.',
    requirement: 'unless `useCallWorkflowClass` is `"true"`',
    fallback: '',
    reference: 'workflow',
  }),
  attributeNames: list({ about: 'The fields of the form, in their order.', required: true }),
  ...formAttributeRows,
  '<attribute>.editJavaScriptFunction': text({
    about: 'Sent with `configFormat: openunison`, else not used: pages of Gatehouse run no code of the configuration.',
  }),
  requireReason: flag({ about: '`"true"`: a reason must be given.' }),
  reasonIsList: flag({ about: '`"true"`: the reason is one of `reasons`.' }),
  reasons: list({ about: 'The available reasons.', requirement: 'with `reasonIsList`' }),
  preSetPassword: flag({
    about:
      '`"true"`: the form asks for a password. The workflow sets it by a [provision](../workflow-tasks/provision.md) with `setPassword: true`, at a target that stores passwords, as all do but those of Kubernetes.',
  }),
  requireReCaptcha: flag({
    about: '`"true"`: the form has a human check; reCAPTCHA v2 unless `humanCheck` is set.',
  }),
  rcSiteKey: text({ about: 'The public key of the human check.', requirement: 'with a provider' }),
  rcSecret: text({
    about: 'The secret of the human check. Never logged or sent to browsers.',
    requirement: 'with a provider',
    secret: true,
  }),
  requireTermsAndConditions: flag({ about: '`"true"`: the terms must be accepted.' }),
  termsAndConditionsText: text({ about: 'The terms.', requirement: 'with `requireTermsAndConditions`' }),
  termsAndCondisionsText: text({ about: 'Another spelling of `termsAndConditionsText`, which existing YAML has.' }),
  submitButtonText: text({ about: 'The text of the button.', fallback: defaultSubmitText }),
  submittedText: text({
    about: 'What is shown after a registration.',
    fallback: defaultSubmittedText,
  }),
  enableThirdColumn: flag({ about: 'Whether the form has a third column.' }),
  jsUris: list({
    about: 'Sent with `configFormat: openunison`, else not used: pages of Gatehouse run no code of the configuration.',
  }),
  submitLoggedInUser: flag({
    about: '`"true"`: the workflow is about the caller, who must be logged in; no field can change that.',
  }),
  useCallWorkflowClass: flag({ about: '`"true"`: the class in `callWorkflowClassName` chooses the workflow.' }),
  callWorkflowClassName: text({
    about:
      '`K8sProjectCheck` refuses a namespace that exists, `JavaScriptRegister` is a script; also by the full class names of OpenUnison.',
    requirement: 'with `useCallWorkflowClass`',
  }),
  callWorkflowInit: list({
    about:
      'Settings of the class, as `name=value`. `K8sProjectCheck`: `workflowName`, `targetName`, `projectAttributeName` and `checkIfExists`. `JavaScriptRegister`: `javaScript`, `includeJs`, `timeoutSeconds`, `memoryMegabytes`, and any other name for its `init`.',
  }),
  displayNameAttribute: text({ about: 'Sent with `configFormat: openunison`, else not used.' }),
  ...themeParameters(parseColor),
  headerTitle: text({ about: 'The title of the page.', fallback: 'Gatehouse' }),
}

/** Parameters that OpenUnison does not have. */
const own = {
  configFormat: choice(['specification', 'openunison'], {
    about:
      "The form of `GET config`: `specification`, with `attributes` as a list, or `openunison`, which OpenUnison's own registration page reads: `attributes` by name, `jsUris` and the field types as written.",
    fallback: 'specification',
  }),
  humanCheck: choice(['', 'none', 'recaptcha-v2', 'recaptcha-v3', 'turnstile', 'proof-of-work'], {
    about: 'The human check of the form.',
    requirement: 'no, `none`',
    fallback: '',
  }),
  rcHostname: list({ about: 'The hosts that the check may have been solved on; the one of the request when absent.' }),
  rcAction: text({ about: 'The action that the check must have been solved for (reCAPTCHA v3, Turnstile).' }),
  rcMinScore: parsed('number from 0 to 1', readScore, {
    about: 'The minimum score of reCAPTCHA v3; 0.5 when absent.',
  }),
  rcVerifyURL: parsed('web address', readWebAddress, {
    about: 'The address that verifies the answer of the human check; that of the provider when absent.',
  }),
  proofOfWorkBits: wholeNumber({
    about: 'How many zero bits the proof of work has; each one doubles the work.',
    fallback: 16,
    min: 1,
    max: 30,
  }),
  honeypotField: text({ about: 'A hidden field; a registration that fills it in is rejected.' }),
  passwordMinChars: wholeNumber({ about: 'Minimum length of a password.', fallback: 8, min: 1, max: 128 }),
  passwordMaxChars: passwordParameters.passwordMaxChars,
  breachListURL: passwordParameters.breachListURL,
  breachListFailure: passwordParameters.breachListFailure,
  verifyEmail: flag({ about: '`"true"`: the workflow starts after the user confirmed the mail address.' }),
  emailAttribute: text({ about: 'The attribute with the mail address.', fallback: 'mail' }),
  publicURL: parsed('web address', readWebAddress, {
    about:
      'The address of this API as users reach it, such as `https://portal.example.com/register`; mails lead there.',
    requirement: 'with `verifyEmail`',
  }),
  verificationHours: wholeNumber({ about: 'How long a mail can be confirmed.', fallback: 24, min: 1, max: 24 * 14 }),
  verificationSubject: text({
    about: 'The subject of the mail; “Confirm your registration”, in the language of the user, when absent.',
  }),
  verificationText: parsed('mail template', compileMailTemplate, {
    about:
      'The text of the mail, with `$link$` and `$title$`; when absent, a text with the link in the language of the user.',
  }),
  hideExisting: flag({
    about: '`"true"`: only a mail reports whether a value is in use. Requires `verifyEmail`.',
  }),
  requireInvitation: flag({ about: '`"true"`: registration requires an invitation.' }),
  invitationURL: parsed('web address', readWebAddress, {
    about: 'The page that invitations lead to; the invitation is added to its query as `invitation`.',
    requirement: 'with invitations',
  }),
  invitationDays: wholeNumber({ about: 'How long an invitation can be accepted.', fallback: 14, min: 1, max: 365 }),
  invitationSubject: text({
    about: 'The subject of the mail; “You are invited”, in the language of the user who invites, when absent.',
  }),
  invitationText: parsed('mail template', compileMailTemplate, {
    about:
      'The text of the mail, with `$link$` and `$title$`; when absent, a text with the link in the language of the user who invites.',
  }),
  inviterRule: list({
    about:
      'Rules for users who may invite by the API, as `scope;constraint`, such as `filter;(groups=managers)`. Without rules, no user may. Only callers of a URL with an `authChain` are known; invitations are shared by all URLs of the application with the same `workflowName`.',
  }),
  notifier: text({ about: 'The [Notifier](../kinds/Notifier.md) that sends the mails; the default one when absent.' }),
  minSearchChars: wholeNumber({
    about:
      'How many characters a search for values of a `text-list` with a `dynamicValueSource` needs; with 0, the whole list can be read, too. Set it where a form that anyone can open searches a directory.',
    fallback: 0,
    min: 0,
    max: 20,
  }),
  submitsPerMinute: limit('Registrations from one address in a minute; 0 for any number.', 10),
  submitsPerValuePerHour: limit(
    'Registrations with the same unique value or mail address in an hour; 0 for any number.',
    5,
  ),
  readsPerMinute: limit('Other requests from one address in a minute; 0 for any number.', 120),
}

export const registerParameters = { ...inherited, ...own }

function limit(about: string, fallback: number) {
  return wholeNumber({ about, fallback, min: 0, max: 1_000_000 })
}

function readScore(written: string): number {
  const score = /^(?:0(?:\.\d{1,4})?|1(?:\.0{1,4})?)$/.test(written) ? Number(written) : Number.NaN
  if (Number.isNaN(score)) throw new Error(`must be a number from 0 to 1, not "${written}"`)
  return score
}
