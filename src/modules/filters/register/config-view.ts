import type { FormAttributeView } from '#contract/form-attribute.ts'
import type { HumanCheckView, RegisterConfig } from '#contract/register.ts'
import type { RegisterSettings } from '#modules/filters/register/register-settings.ts'

/** What the page is told of the form. Secrets, workflows and what steers the server are not among it. */
export function configView(settings: RegisterSettings, attributes: readonly FormAttributeView[]): RegisterConfig {
  const { given, humanCheck, terms } = settings
  const view = humanCheckView(settings)
  return {
    frontPage: { title: given['frontPage.title'], text: given['frontPage.text'] },
    homeURL: given.homeURL,
    logoutURL: given.logoutURL,
    attributes,
    attributeNameList: attributes.map(({ name }) => name),
    requireReason: given.requireReason,
    preSetPassword: given.preSetPassword,
    requireReCaptcha: humanCheck !== 'none' && humanCheck !== 'proof-of-work',
    ...(view.siteKey === undefined ? {} : { rcSiteKey: view.siteKey }),
    requireTermsAndConditions: given.requireTermsAndConditions,
    ...(terms === undefined ? {} : { termsAndConditionsText: terms }),
    reasonIsList: given.reasonIsList,
    reasons: given.reasons,
    submitButtonText: given.submitButtonText,
    submittedText: given.submittedText,
    enableThirdColumn: given.enableThirdColumn,
    themePrimaryMain: given.themePrimaryMain,
    themePrimaryDark: given.themePrimaryDark,
    themePrimaryLight: given.themePrimaryLight,
    themeSecondaryMain: given.themeSecondaryMain,
    themeSecondaryDark: given.themeSecondaryDark,
    themeSecondaryLight: given.themeSecondaryLight,
    headerTitle: given.headerTitle,
    errorColor: given.errorColor,
    humanCheck: view,
    ...(given.preSetPassword
      ? { passwordRules: { minChars: given.passwordMinChars, maxChars: given.passwordMaxChars } }
      : {}),
    ...(given.verifyEmail ? { verifyEmailAttribute: given.emailAttribute } : {}),
    requireInvitation: given.requireInvitation,
    minSearchChars: given.minSearchChars,
  }
}

function humanCheckView({ given, humanCheck: kind }: RegisterSettings): HumanCheckView {
  const byProvider = kind !== 'none' && kind !== 'proof-of-work'
  const action = actionOf(kind, given.rcAction)
  return {
    kind,
    ...(byProvider && given.rcSiteKey !== undefined ? { siteKey: given.rcSiteKey } : {}),
    ...(action === undefined ? {} : { action }),
    ...(given.honeypotField === undefined ? {} : { honeypot: given.honeypotField }),
  }
}

/** The action that a check has to be solved for: reCAPTCHA v3 always has one. */
export function actionOf(kind: RegisterSettings['humanCheck'], given: string | undefined): string | undefined {
  if (kind === 'recaptcha-v3') return given ?? 'register'
  return kind === 'turnstile' ? given : undefined
}
