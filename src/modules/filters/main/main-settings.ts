import { portalPages } from '#contract/portal.ts'
import type { Issues } from '#kernel/issues.ts'
import { isSecretName } from '#kernel/redaction.ts'
import { suggestion } from '#kernel/suggest.ts'
import { type FormAttribute, formAttributeRows, readFormAttributes } from '#sdk/form-attribute.ts'
import { readParameters } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { ParseContext } from '#sdk/parse-context.ts'
import type { Rule } from '#sdk/rule.ts'
import { readRuleParameter } from '#sdk/rule-parameter.ts'
import { parameters } from './parameter-table.ts'
import { readUiHelper, type UiHelper } from './ui-helper.ts'

type Given = ReturnType<typeof readParameters<typeof parameters>>

export interface MainSettings {
  readonly given: Given
  /** The fields of the profile, in their order. */
  readonly attributes: readonly FormAttribute[]
  /** What approvers see of a person and of a request, with its label. */
  readonly approvalAttributes: readonly Labelled[]
  readonly approvalParameters: readonly Labelled[]
  readonly helper: UiHelper | undefined
  readonly administrators: readonly Rule[]
}

export interface Labelled {
  readonly name: string
  readonly label: string
}

export function parseMain(params: Params, issues: Issues, context: ParseContext): MainSettings {
  const given = readParameters(parameters, params, issues, context)
  const attributes = readFormAttributes(given.attributeNames, { ...noRows(), ...given }, params, issues, {
    namesParameter: 'attributeNames',
    requiredUnlessSaid: false,
  })
  const secret = (name: 'attributeNames' | 'approvalAttributeNames' | 'approvalRequestAttributeNames') => {
    for (const [i, attribute] of given[name].entries()) {
      if (isSecretName(attribute)) issues.error(params.pathOf(name, i), `"${name}": "${attribute}" is never shown`)
    }
  }
  secret('attributeNames')
  secret('approvalAttributeNames')
  secret('approvalRequestAttributeNames')
  if (!/^(?:\/(?!\/)|https?:\/\/)/.test(given.logoutURL) && given.logoutURL !== '') {
    issues.error(params.pathOf('logoutURL'), '"logoutURL": must be a path or an http or https address')
  }
  if (given.loadPortalGroupsClassName !== undefined) {
    const message = 'is known but not supported by this version: groups are looked up in the directory'
    issues.error(params.pathOf('loadPortalGroupsClassName'), `"loadPortalGroupsClassName": ${message}`)
  }
  checkApprovals(given, params, issues)
  checkReasons(given, params, issues)
  checkPages(given, params, issues)
  const helper = readUiHelper(given, params, issues)
  for (const name of ['canDelegate', 'canPreApprove'] as const) {
    if (given[name] === 'CUSTOM' && helper === undefined) {
      issues.error(params.pathOf(name), `"${name}": CUSTOM needs "uiHelperClassName", which decides`)
    }
  }
  return {
    given,
    attributes,
    approvalAttributes: labelled(given.approvalAttributeNames, given, params, issues),
    approvalParameters: labelled(given.approvalRequestAttributeNames, given, params, issues),
    helper,
    administrators: given.administrators.flatMap(
      (rule, i) => readRuleParameter('administrators', rule, i, params, issues, context) ?? [],
    ),
  }
}

/** Rows of other forms, which a profile does not have. */
function noRows(): { [K in keyof typeof formAttributeRows]: ReadonlyMap<string, never> } {
  const rows = Object.keys(formAttributeRows).map((name) => [name, new Map()])
  return Object.fromEntries(rows)
}

function checkApprovals(given: Given, params: Params, issues: Issues): void {
  if (given.enableApprovals && given.approvalAttributeNames.length === 0) {
    issues.error(
      params.pathOf('approvalAttributeNames'),
      'parameter "approvalAttributeNames" is required where approvals are enabled',
    )
  }
  const known = new Set([...given.approvalAttributeNames, ...given.approvalRequestAttributeNames])
  for (const name of given['approvals.<name>'].keys()) {
    if (known.has(name)) continue
    const parameter = `approvals.${name}`
    issues.warning(params.pathOf(parameter), `"${parameter}": "${name}" is not among what approvers see`)
  }
}

function checkReasons({ reasonIsList, reasons }: Given, params: Params, issues: Issues): void {
  if (reasonIsList && reasons.length === 0) {
    issues.error(params.pathOf('reasons'), 'parameter "reasons" is required where reasonIsList is "true"')
  }
  if (!reasonIsList && reasons.length > 0) {
    issues.warning(params.pathOf('reasons'), '"reasons" is not used unless reasonIsList is "true"')
  }
}

/** Pages of the predecessor that there are not here do no harm. */
function checkPages({ hidePages }: Given, params: Params, issues: Issues): void {
  for (const [i, name] of hidePages.entries()) {
    if (portalPages.some((page) => page === name)) continue
    const message = `"hidePages": there is no page "${name}"${suggestion(name, portalPages)}`
    issues.warning(params.pathOf('hidePages', i), message)
  }
}

function labelled(names: readonly string[], given: Given, params: Params, issues: Issues): Labelled[] {
  return names.map((name) => {
    const label = given['approvals.<name>'].get(name)
    const parameter = `approvals.${name}`
    if (label === undefined) issues.error(params.pathOf(parameter), `parameter "${parameter}" is required`)
    return { name, label: label ?? name }
  })
}
