import type { HumanCheckKind } from '#contract/register.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import type { Template } from '#kernel/template.ts'
import { registerParameters } from '#modules/filters/register/register-parameters.ts'
import { type FormAttribute, readFormAttributes } from '#modules/shared/forms/form-attribute.ts'
import { parseRule, type Rule, ruleScopes } from '#sdk/auth/rule.ts'
import type { PreparedValueSource } from '#sdk/mapper/mapper.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { defaultNotifier, referNotifier } from '#sdk/notifier/notifier.ts'
import { compileMailTemplate, invitationText, verificationText } from './mail-texts.ts'
import { registerRequest } from './register-schemas.ts'

export type RegisterParameters = ParsedParameters<typeof registerParameters>

/** A registration form as it is configured. */
export interface RegisterSettings {
  readonly given: RegisterParameters
  readonly attributes: readonly FormAttribute[]
  readonly sources: ReadonlyMap<string, PreparedValueSource>
  readonly terms: string | undefined
  readonly humanCheck: HumanCheckKind
  readonly inviters: readonly Rule[]
  readonly verificationText: Template
  readonly invitationText: Template
  readonly places: readonly { readonly attribute: string; readonly path: ReturnType<Params['pathOf']> }[]
}

export function readRegisterSettings(params: Params, issues: Issues, context: ParseContext): RegisterSettings {
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
  if (given.useCallWorkflowClass) {
    report(
      'useCallWorkflowClass',
      'classes that choose the workflow are not served; name the workflow in "workflowName"',
    )
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
    sources: readSources(attributes, issues, context),
    terms,
    humanCheck: readHumanCheck(given, report),
    inviters: readInviters(given.inviterRule, params, issues, context),
    verificationText: given.verificationText ?? compileMailTemplate(verificationText),
    invitationText: given.invitationText ?? compileMailTemplate(invitationText),
    places: given.attributeNames.map((attribute, i) => ({ attribute, path: params.pathOf('attributeNames', i) })),
  }
}

/** The field that names the subject: set by the login alone where the workflow is about the caller, and unique where it makes people. */
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

function warnOfScripts(given: RegisterParameters, params: Params, issues: Issues): void {
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

function readInviters(written: readonly string[], params: Params, issues: Issues, context: ParseContext): Rule[] {
  return written.flatMap((text, index) => {
    const path = params.pathOf('inviterRule', index)
    const semicolon = text.indexOf(';')
    const scope = ruleScopes.find((word) => word === text.slice(0, Math.max(semicolon, 0)))
    if (scope === undefined) {
      issues.error(
        path,
        `"inviterRule": must be "scope;constraint" with one of ${ruleScopes.join(', ')}, not "${text}"`,
      )
      return []
    }
    return parseRule(scope, text.slice(semicolon + 1), path, issues, context) ?? []
  })
}

/** Parameters that are written as a list of `name=value`. A setting without an equals sign is reported and left out. */
function settingParams(
  settings: readonly string[],
  path: Path,
  settingPath: (index: number) => Path,
  issues: Issues,
): Params {
  const found = new Map<string, { readonly value: string; readonly path: Path }[]>()
  for (const [index, setting] of settings.entries()) {
    const equals = setting.indexOf('=')
    const name = setting.slice(0, Math.max(equals, 0)).trim()
    if (name === '') {
      issues.error(settingPath(index), `a setting is written "name=value", not "${setting}"`)
      continue
    }
    found.set(name, [...(found.get(name) ?? []), { value: setting.slice(equals + 1), path: settingPath(index) }])
  }
  return {
    names: () => found.keys(),
    values: (name) => found.get(name)?.map(({ value }) => value) ?? [],
    pathOf: (name, index = 0) => found.get(name)?.[index]?.path ?? path,
    isSecret: () => false,
  }
}
