import { portalPages } from '#features/portal/contract/portal.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import type { Subject } from '#identity/subject.ts'
import type { Issues } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import { isSecretName } from '#kernel/text/redaction.ts'
import { type FormAttribute, formAttributeRows, readFormAttributes } from '#sdk/forms/form-attribute.ts'
import { themeParameters } from '#sdk/forms/theme-parameters.ts'
import { choice, flag, list, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { readRuleParameter } from '#sdk/rule/rule-parameter.ts'
import { type ClusterGroupNames, readClusterGroupNames } from '#sdk/target-module/cluster-group-parameters.ts'

type Given = ReturnType<typeof readParameters<typeof parameters>>

export interface MainSettings {
  readonly given: Given
  /** The fields of the profile, in their order. */
  readonly attributes: readonly FormAttribute[]
  /** The attributes of a user and of a request that approvers see, with labels. */
  readonly approvalAttributes: readonly Labelled[]
  readonly approvalParameters: readonly Labelled[]
  readonly helper: UiHelper | undefined
  /** Who may see the console. */
  readonly administrators: readonly Rule[]
  /** Which of them may change something there. */
  readonly operators: readonly Rule[]
  /** How groups are named that are shown as a table; undefined if their names are shown. */
  readonly clusterGroups: ClusterGroupNames | undefined
}

interface Labelled {
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
  const { loadPortalGroupsClassName: groupsClass } = given
  const showsClusters = groupsClass !== undefined && /(?:^|\.)LoadClusterGroups$/.test(groupsClass)
  if (groupsClass !== undefined && !showsClusters) {
    const message = '"loadPortalGroupsClassName" is not used: the only class is LoadClusterGroups'
    issues.warning(params.pathOf('loadPortalGroupsClassName'), message)
  }
  if (given.canEditUser && given.workflowName === undefined) {
    issues.error(params.pathOf('workflowName'), 'parameter "workflowName" is required where canEditUser is "true"')
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
  if (given.operators.length > 0 && given.administrators.length === 0) {
    issues.error(params.pathOf('operators'), '"operators" is not used without "administrators"')
  }
  const rules = (name: 'administrators' | 'operators'): Rule[] =>
    given[name].flatMap((rule, i) => readRuleParameter(name, rule, i, params, issues, context) ?? [])
  return {
    given,
    attributes,
    approvalAttributes: labelled(given.approvalAttributeNames, given, params, issues),
    approvalParameters: labelled(given.approvalRequestAttributeNames, given, params, issues),
    helper,
    administrators: rules('administrators'),
    operators: rules('operators'),
    clusterGroups:
      showsClusters && given.groupsAreJson
        ? readClusterGroupNames(context.initOf?.('auth.AddPortalRoles'), context)
        : undefined,
  }
}

/** The rows that a profile does not have. */
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

/** Pages of OpenUnison that do not exist here are only a warning. */
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

/** Decides what a user may do in a portal, if that is not the same for all. */
interface UiHelper {
  mayEdit(subject: Pick<Subject, 'attributes'>): boolean
  /** The attributes that the user sees and edits. */
  attributesOf(subject: Pick<Subject, 'attributes'>): ReadonlySet<string>
  mayDelegate(subject: Subject): boolean
  mayPreApprove(subject: Subject): boolean
}

const helperNames: ReadonlySet<string> = new Set(['FilterHelper', 'com.tremolosecurity.scalejs.helpers.FilterHelper'])

interface FilterHelperSettings {
  readonly allowed: Filter[]
  readonly byFilter: { readonly filter: Filter; readonly attributes: ReadonlySet<string> }[]
  delegation: boolean
  preApproval: boolean
}

/** Undefined if none is configured, or if its settings are invalid, which is reported. */
function readUiHelper(
  given: { readonly uiHelperClassName: string | undefined; readonly 'uihelper.params': readonly string[] },
  params: Params,
  issues: Issues,
): UiHelper | undefined {
  const { uiHelperClassName: className, 'uihelper.params': lines } = given
  if (className === undefined) {
    if (lines.length > 0) {
      issues.error(params.pathOf('uihelper.params'), '"uihelper.params" is not used without "uiHelperClassName"')
    }
    return undefined
  }
  if (!helperNames.has(className)) {
    const message = `no UI helper "${className}"; there is ${[...helperNames].join(', or ')}`
    issues.error(params.pathOf('uiHelperClassName'), message)
    return undefined
  }
  const settings: FilterHelperSettings = { allowed: [], byFilter: [], delegation: false, preApproval: false }
  for (const [i, line] of lines.entries()) {
    try {
      readLine(line, settings)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      issues.error(params.pathOf('uihelper.params', i), `"uihelper.params": ${reason}`)
    }
  }
  return filterHelper(settings)
}

function readLine(line: string, settings: FilterHelperSettings): void {
  const [, name, value = ''] = /^([A-Za-z]+)=(.*)$/s.exec(line.trim()) ?? []
  switch (name) {
    case 'allowedFilters':
      settings.allowed.push(parseFilter(value))
      return
    case 'filterMap': {
      const end = value.lastIndexOf('=')
      const attributes = value.slice(end + 1).split(',')
      if (end < 1 || attributes.some((one) => one.trim() === '')) {
        throw new Error(`filterMap is written as filter=attribute,attribute, not "${value}"`)
      }
      settings.byFilter.push({
        filter: parseFilter(value.slice(0, end)),
        attributes: new Set(attributes.map((one) => one.trim())),
      })
      return
    }
    case 'applyToDelegation':
    case 'applyToDelegration':
      settings.delegation = readFlag(value)
      return
    case 'applyToPreApproval':
      settings.preApproval = readFlag(value)
      return
    default:
      throw new Error(
        `must be name=value with allowedFilters, filterMap, applyToDelegation or applyToPreApproval, not "${line}"`,
      )
  }
}

function readFlag(value: string): boolean {
  const word = value.trim().toLowerCase()
  if (word === 'true' || word === 'false') return word === 'true'
  throw new Error(`must be true or false, not "${value}"`)
}

/** Users that match one of the filters are allowed; the first filter of the map that matches decides what they see. */
function filterHelper({ allowed, byFilter, delegation, preApproval }: FilterHelperSettings): UiHelper {
  const isAllowed = ({ attributes }: Pick<Subject, 'attributes'>): boolean =>
    allowed.some((filter) => matches(filter, attributes))
  return {
    mayEdit: isAllowed,
    attributesOf: (subject) =>
      byFilter.find(({ filter }) => matches(filter, subject.attributes))?.attributes ?? new Set(),
    mayDelegate: (subject) => delegation && isAllowed(subject),
    mayPreApprove: (subject) => preApproval && isAllowed(subject),
  }
}

/** Of the shared rows, those that a profile has. */
const profileRows = {
  '<attribute>.displayName': formAttributeRows['<attribute>.displayName'],
  '<attribute>.readOnly': formAttributeRows['<attribute>.readOnly'],
  '<attribute>.required': formAttributeRows['<attribute>.required'],
  '<attribute>.regEx': formAttributeRows['<attribute>.regEx'],
  '<attribute>.regExFailedMsg': formAttributeRows['<attribute>.regExFailedMsg'],
  '<attribute>.minChars': formAttributeRows['<attribute>.minChars'],
  '<attribute>.maxChars': formAttributeRows['<attribute>.maxChars'],
  '<attribute>.mxnChars': formAttributeRows['<attribute>.mxnChars'],
  '<attribute>.realOnly': formAttributeRows['<attribute>.realOnly'],
  '<attribute>.redExFailedMsg': formAttributeRows['<attribute>.redExFailedMsg'],
  '<attribute>.type': formAttributeRows['<attribute>.type'],
  '<attribute>.values': formAttributeRows['<attribute>.values'],
}

export type WhoMay = 'NO' | 'YES' | 'CUSTOM'

/** OpenUnison's objects write the words in any letter case. */
function whoMay(written: string): WhoMay {
  switch (written.toUpperCase()) {
    case 'YES':
    case 'TRUE':
      return 'YES'
    case 'NO':
    case 'FALSE':
      return 'NO'
    case 'CUSTOM':
      return 'CUSTOM'
    default:
      throw new Error(`must be one of NO, YES, CUSTOM, not "${written}"`)
  }
}

export const parameters = {
  displayNameAttribute: text({ about: 'The attribute with the name that the portal shows for users.', required: true }),
  'frontPage.title': text({ about: 'The title of the front page.', required: true }),
  'frontPage.text': text({ about: 'The text of the front page.', required: true }),
  canEditUser: flag({ about: 'Whether users may change their profile.', required: true }),
  workflowName: text({
    about: 'The workflow that saves a profile.',
    requirement: 'with `canEditUser`',
    reference: 'workflow',
  }),
  uidAttributeName: text({ about: 'The attribute with the login.', required: true }),
  showPortalOrgs: flag({ about: 'Whether the front page shows the tree of orgs.', required: true }),
  logoutURL: text({ about: 'The logout path or address.', required: true }),
  warnMinutesLeft: wholeNumber({
    about: 'Minutes before the end of a session at which users are warned.',
    required: true,
    fallback: 0,
    max: 10_000,
  }),
  attributeNames: list({ about: 'The fields of the profile, in their order.', required: true }),
  /** Before the fields' own rows, since `approvals.displayName` would match one of them. */
  'approvals.<name>': text({
    about: 'The label under which approvers see that attribute or parameter.',
    requirement: 'for each of the two lists',
  }),
  ...profileRows,
  roleAttribute: text({ about: 'The attribute with roles; without it, groups are read from the directory.' }),
  loadPortalGroupsClassName: text({
    about:
      '`LoadClusterGroups`, with `groupsAreJson`: groups of the directory are shown as a table of clusters, namespaces and roles, by the names that the mechanism [auth.AddPortalRoles](../auth-mechanisms/auth.AddPortalRoles.md) has in its `init`. Other classes are not used.',
  }),
  requireReason: flag({ about: 'Whether a request needs a reason.', fallback: true }),
  canDelegate: parsed<WhoMay>('one of NO, YES, CUSTOM', whoMay, {
    about: 'Whether users may request for others: `YES`, `NO`, or `CUSTOM`, which uses the UI helper.',
    fallback: 'NO',
  }),
  canPreApprove: parsed<WhoMay>('one of NO, YES, CUSTOM', whoMay, {
    about: 'Whether users who request for others may decide the first approval at once: `YES`, `NO` or `CUSTOM`.',
    fallback: 'NO',
  }),
  jitWorkflow: text({
    about: 'The workflow that creates a user who is not in the directory and for whom access is requested.',
    reference: 'workflow',
  }),
  maxOpenRequests: wholeNumber({
    about:
      'How many requests of one user may be open: submitted, and neither decided nor ended. Further ones are refused, with 429 if nothing of a cart was submitted.',
    fallback: 1_000,
    min: 1,
    max: 10_000,
  }),
  enableApprovals: flag({ about: 'Whether approvals are served.', fallback: true }),
  approvalAttributeNames: list({
    about: 'The attributes of a user that approvers see; required if approvals are enabled.',
    requirement: 'with approvals',
  }),
  approvalRequestAttributeNames: list({ about: 'The parameters of a request that approvers see.' }),
  showChanges: flag({
    about:
      'Whether approvers see what approving would change: what targets hold now of what is to change, and what after it.',
    fallback: true,
  }),
  uiHelperClassName: text({
    about: 'The class that decides who may edit, request for others and pre-approve: `FilterHelper`.',
  }),
  'uihelper.params': list({
    about:
      "The helper's settings, each as `name=value`: `allowedFilters`, `filterMap` (`filter=attribute,attribute`), `applyToDelegation`, `applyToPreApproval`.",
  }),
  reasonIsList: flag({ about: 'Whether a reason must be one of `reasons`.' }),
  reasons: list({ about: 'The reasons to choose from.', requirement: 'with `reasonIsList`' }),
  startPage: choice(['front-page', 'request-access', 'ops'], {
    about: 'The page that users see first.',
    fallback: 'front-page',
  }),
  hidePages: list({
    about:
      'Pages that are not shown, by the names that the [guide](../../guides/portal.md#making-it-yours) lists; `gatehouse check` warns of others.',
  }),
  ...themeParameters(),
  headerTitle: text({ about: "The portal's title.", fallback: 'Gatehouse' }),
  groupsAreJson: flag({ about: 'Whether groups come as one JSON text, to be shown as a table.' }),
  groupFields: list({ about: 'The columns of that table.' }),
  administrators: list({
    about:
      'Rules for administrators, as `scope;constraint`; one must pass. They see the console and change nothing in it. Without rules there are none.',
  }),
  operators: list({
    about:
      'Rules for administrators who may also change something in the console, such as retry or cancel a run, as `scope;constraint`; one must pass. Without rules the console is read-only.',
  }),
  deactivateWorkflow: text({
    about:
      'The workflow that operators start in the console to deactivate a user. Without it, the console does not offer that.',
    reference: 'workflow',
  }),
  scimJournals: list({
    about: 'The Applications whose journals administrators see and whose calls statistics count; all when absent.',
  }),
}
