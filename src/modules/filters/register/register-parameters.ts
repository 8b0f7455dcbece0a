import { compileMailTemplate, invitationText, verificationText } from '#modules/filters/register/mail-texts.ts'
import { formAttributeRows } from '#modules/shared/forms/form-attribute.ts'
import { parseColour } from '#sdk/filter/page.ts'
import { choice, flag, list, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'

/** Of the predecessor, under its names. */
const inherited = {
  'frontPage.title': text({ about: 'The title of the form.', required: true }),
  'frontPage.text': text({ about: 'The text below the title.', required: true }),
  homeURL: text({ about: 'Where the link to the home page leads.', required: true }),
  logoutURL: text({ about: 'Where the link to log out leads.', required: true }),
  uidAttributeName: text({ about: 'The attribute with the login of the subject of the workflow.', required: true }),
  workflowName: text({ about: 'The workflow that a registration starts.', required: true, reference: 'workflow' }),
  attributeNames: list({ about: 'The fields of the form, in their order.', required: true }),
  ...formAttributeRows,
  '<attribute>.editJavaScriptFunction': text({
    about: 'Read and not used: no code of the configuration runs in browsers.',
  }),
  requireReason: flag({ about: '`"true"`: a reason must be given.' }),
  reasonIsList: flag({ about: '`"true"`: the reason is one of `reasons`.' }),
  reasons: list({ about: 'The available reasons.' }),
  preSetPassword: flag({ about: '`"true"`: the form asks for a password.' }),
  requireReCaptcha: flag({
    about: '`"true"`: the form has a human check; reCAPTCHA v2 unless `humanCheck` is set.',
  }),
  rcSiteKey: text({ about: 'The public key of the human check.' }),
  rcSecret: text({ about: 'The secret of the human check.', secret: true }),
  requireTermsAndConditions: flag({ about: '`"true"`: the terms must be accepted.' }),
  termsAndConditionsText: text({ about: 'The terms.' }),
  termsAndCondisionsText: text({ about: 'Another spelling of `termsAndConditionsText`, which existing YAML has.' }),
  submitButtonText: text({ about: 'The text of the button.', fallback: 'Submit Registration' }),
  submittedText: text({
    about: 'What is shown after a registration.',
    fallback: 'Thank you for registering. You will hear from us.',
  }),
  enableThirdColumn: flag({ about: 'Whether the form has a third column.' }),
  jsUris: list({ about: 'Read and not used: no code of the configuration runs in browsers.' }),
  submitLoggedInUser: flag({
    about: '`"true"`: the workflow is about the caller, who must be logged in; no field can change that.',
  }),
  useCallWorkflowClass: flag({ about: 'Only `"false"` is supported.' }),
  callWorkflowClassName: text({ about: 'Not supported.' }),
  callWorkflowInit: list({ about: 'Not supported.' }),
  displayNameAttribute: text({ about: 'Read and not used, as in OpenUnison.' }),
  themePrimaryMain: colour('#AC1622'),
  themePrimaryDark: colour('#780f17'),
  themePrimaryLight: colour('#bc444e'),
  themeSecondaryMain: colour('#16aca0'),
  themeSecondaryDark: colour('#0f7870'),
  themeSecondaryLight: colour('#44bcb3'),
  errorColor: colour('#ff1744'),
  headerTitle: text({ about: 'The title of the page.', fallback: 'Gatehouse' }),
}

/** What the predecessor does not have. */
const own = {
  humanCheck: choice(['', 'none', 'recaptcha-v2', 'recaptcha-v3', 'turnstile', 'proof-of-work'], {
    about: 'The human check of the form.',
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
  passwordMaxChars: wholeNumber({ about: 'Maximum length of a password.', fallback: 128, min: 8, max: 1_000 }),
  breachListURL: parsed('web address', readWebAddress, {
    about:
      'A service of known passwords that is asked by the first five digits of their SHA-1, as `https://api.pwnedpasswords.com/range` is.',
  }),
  breachListFailure: choice(['refuse', 'accept'], {
    about: 'Whether a password is accepted if the service does not answer.',
    fallback: 'refuse',
  }),
  verifyEmail: flag({ about: '`"true"`: the workflow starts after the user confirmed the mail address.' }),
  emailAttribute: text({ about: 'The attribute with the mail address.', fallback: 'mail' }),
  publicURL: parsed('web address', readWebAddress, {
    about:
      'The address of this API as people reach it, such as `https://portal.example.com/register`; mails lead there.',
  }),
  verificationHours: wholeNumber({ about: 'How long a mail can be confirmed.', fallback: 24, min: 1, max: 24 * 14 }),
  verificationSubject: text({ about: 'The subject of the mail.', fallback: 'Confirm your registration' }),
  verificationText: parsed('mail template', compileMailTemplate, {
    about: `The text of the mail, with \`$link$\` and \`$title$\`. Unless said otherwise: "${verificationText.split('\n', 1)[0]}" and the link.`,
  }),
  hideExisting: flag({
    about: '`"true"`: only a mail reports whether a value is in use. Requires `verifyEmail`.',
  }),
  requireInvitation: flag({ about: '`"true"`: registration requires an invitation.' }),
  invitationURL: parsed('web address', readWebAddress, {
    about: 'The page that invitations lead to; the invitation is added to its query as `invitation`.',
  }),
  invitationDays: wholeNumber({ about: 'How long an invitation can be accepted.', fallback: 14, min: 1, max: 365 }),
  invitationSubject: text({ about: 'The subject of the mail.', fallback: 'You are invited' }),
  invitationText: parsed('mail template', compileMailTemplate, {
    about: `The text of the mail, with \`$link$\` and \`$title$\`. Unless said otherwise: "${invitationText.split('\n', 1)[0]}" and the link.`,
  }),
  inviterRule: list({
    about:
      'Rules for users who may invite by the API, as `scope;constraint`, such as `filter;(groups=managers)`. Without rules, no user may.',
  }),
  notifier: text({ about: 'The Notifier that sends the mails; the default one when absent.' }),
  minSearchChars: wholeNumber({
    about: 'How many characters a search for values needs, except in a `list`, which is shown whole.',
    fallback: 2,
    min: 1,
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

function colour(fallback: string) {
  const row = parsed('colour', parseColour, { about: `A colour of the theme; \`${fallback}\` unless said otherwise.` })
  return {
    ...row,
    fallback,
    read: (values: readonly string[], report: (message: string) => void) => row.read(values, report) ?? fallback,
  }
}

function readScore(written: string): number {
  const score = /^(?:0(?:\.\d{1,4})?|1(?:\.0{1,4})?)$/.test(written) ? Number(written) : Number.NaN
  if (Number.isNaN(score)) throw new Error(`must be a number from 0 to 1, not "${written}"`)
  return score
}

function readWebAddress(written: string): string {
  const url = URL.canParse(written) ? new URL(written) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.hash !== '') {
    throw new Error('must be an http or https address without login and fragment')
  }
  return url.href
}
