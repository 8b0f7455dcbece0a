import { defaultAnchorMillis } from '#config/configuration/configuration.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import type { JavaScriptObject } from '#config/context/draft.ts'
import type { AzRulesSpec } from '#config/kinds/envelope.ts'
import type {
  AuditAnchorSpec,
  AuditSinkSpec,
  CronScheduleSpec,
  NotifierSpec,
  OUJobSpec,
} from '#config/kinds/operations.ts'
import type { OrgSpec, PortalUrlSpec, ReportSpec } from '#config/kinds/portal.ts'
import type {
  GroupMetaDataSpec,
  JavaScriptMappingSpec,
  JavaScriptSpec,
  NamespaceGroupMetaDataSpec,
} from '#config/kinds/provisioning.ts'
import { mappingsOf } from '#config/kinds/provisioning.ts'
import { readReport } from '#config/report-statements/report-statement.ts'
import { readSchedule, type ScheduleFields } from '#kernel/schedule.ts'
import { checkScript } from '#openunison/scripts/legacy-script.ts'
import { type LegacySignatures, mappingSignatures } from '#openunison/scripts/legacy-signatures.ts'
import type { PreparedAuditSink } from '#sdk/audit/audit-sink.ts'
import { readIcon } from '#sdk/page/picture.ts'
import type { Rule } from '#sdk/rule/rule.ts'

/** Kinds that are read, checked and passed on unchanged. */

export function buildJavaScriptMapping(spec: JavaScriptMappingSpec, context: BuildContext): void {
  const { javascript, includeJs = [] } = spec
  for (const [i, name] of includeJs.entries()) context.refer('javascript mapping', name, ['spec', 'includeJs', i])
  readJavaScript(javascript, mappingSignatures, context)
  addJavaScript({ kind: 'JavaScriptMapping', text: javascript, includes: includeJs }, context)
}

export function buildJavaScript({ javascript }: JavaScriptSpec, context: BuildContext): void {
  readJavaScript(javascript, {}, context)
  addJavaScript({ kind: 'JavaScript', text: javascript, includes: [] }, context)
}

function readJavaScript(text: string, signatures: LegacySignatures, context: BuildContext): void {
  const path = ['spec', 'javascript']
  try {
    const { findings, targets } = checkScript(text, signatures)
    for (const { level, message } of findings) context.issues[level](path, message)
    for (const target of targets) context.refer('target', target, path)
    context.countScript(findings.flatMap(({ level, use }) => (level === 'error' ? [use] : [])))
  } catch (error) {
    context.issues.error(path, error instanceof Error ? error.message : String(error))
    context.countScript(undefined)
  }
}

/** Both kinds are included by name, so a name must be unique among both. */
function addJavaScript(script: JavaScriptObject, { state, placed, issues }: BuildContext): void {
  const { javaScripts } = state.draft
  const earlier = javaScripts.get(placed.name)
  if (earlier !== undefined && earlier.kind !== script.kind) {
    issues.error(['metadata', 'name'], `a ${earlier.kind} has this name, and includeJs names objects of both kinds`)
  }
  javaScripts.set(placed.name, script)
}

export function buildGroupMetaData(spec: GroupMetaDataSpec | NamespaceGroupMetaDataSpec, context: BuildContext): void {
  const { state, document, issues } = context
  const parts = 'mappings' in spec ? spec.mappings : [spec]
  for (const [i, { externalName = '' }] of parts.entries()) {
    const path = 'mappings' in spec ? ['spec', 'mappings', i, 'externalName'] : ['spec', 'externalName']
    if (externalName.trim() !== '') context.addGroupName(externalName, path)
    else
      issues.warning(path, 'without a group of another system nothing is mapped; tasks.AddGroupToStore creates groups')
  }
  state.draft.groupMappings.push({ config: mappingsOf(spec), document })
}

export function buildOrg(spec: OrgSpec, context: BuildContext): void {
  const { state, document, placed } = context
  const rules = readRules(spec.azRules, 'org', context)
  if (spec.parent !== spec.uuid) context.optional('org', spec.parent, ['spec', 'parent'])
  state.draft.orgs.set(placed.name, { config: { ...placed, spec, rules }, document })
}

export function buildPortalUrl(spec: PortalUrlSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  context.optional('org', spec.org, ['spec', 'org'])
  const rules = readRules(spec.azRules, 'link', context)
  let icon = ''
  try {
    if (spec.icon !== undefined && spec.icon.trim() !== '') icon = readIcon(spec.icon)
  } catch (error) {
    issues.error(['spec', 'icon'], error instanceof Error ? error.message : String(error))
  }
  if (!isLink(spec.url)) {
    issues.error(['spec', 'url'], `"${spec.url}" is neither a web address nor a path that starts with "/"`)
  }
  state.draft.portalUrls.set(placed.name, { ...placed, spec: { ...spec, icon }, rules })
}

/** A path, which browsers read as one of the portal's host, or a web address. */
const isLink = (url: string): boolean =>
  /^\/(?![/\\])[^\s\\]*$/.test(url) || (URL.canParse(url) && /^https?:/.test(url))

function readRules(azRules: AzRulesSpec | undefined, what: string, context: BuildContext): Rule[] {
  if ((azRules ?? []).length === 0) {
    context.issues.warning(['spec', 'azRules'], `without a rule no user sees this ${what}`)
  }
  return context.rules(azRules, ['spec', 'azRules'])
}

export function buildReport(spec: ReportSpec, context: BuildContext): void {
  const { state, issues, placed, document } = context
  context.optional('org', spec.orgId, ['spec', 'orgId'])
  if ((spec.orgId ?? '') === '') issues.warning(['spec', 'orgId'], 'without an org no user sees this report')
  if ((spec.dataFields ?? []).length === 0) issues.warning(['spec', 'dataFields'], 'without one the report is empty')
  if (spec.groupings === true && (spec.groupBy ?? '') === '') {
    issues.error(['spec', 'groupBy'], 'is required where groupings is true')
  }
  checkStatement(spec, context)
  const twin = [...state.draft.reports.values()].find(({ config }) => isSameName(config.spec.name, spec.name))
  if (twin !== undefined) {
    issues.error(['spec', 'name'], `another report has this name (${twin.config.at})`)
    state.draft.rivals.push({ first: twin.document, later: document })
  }
  state.draft.reports.set(placed.name, { config: { ...placed, spec }, document })
}

/** Reports are requested by name, in any letter case. */
const isSameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

function checkStatement(spec: ReportSpec, { issues }: BuildContext): void {
  const { problems, unused, missing } = readReport(spec)
  for (const problem of problems) issues.error(['spec', 'sql'], problem)
  for (const name of unused)
    issues.warning(['spec', 'parameters', name], 'is a parameter that the statement does not use')
  for (const field of missing) issues.error(['spec', 'sql'], `does not select "${field}", which the report shows`)
}

export function buildAuditSink(spec: AuditSinkSpec, context: BuildContext): void {
  const sink = prepare(spec, context)
  const { placed, state } = context
  if (sink !== undefined) state.draft.auditSinks.set(placed.name, { ...placed, sink, start: spec.start ?? 'beginning' })
}

/** Anchors are sent by the same modules as the audit itself. */
export function buildAuditAnchor(spec: AuditAnchorSpec, context: BuildContext): void {
  const sink = prepare(spec, context)
  const { placed, state } = context
  const intervalMillis = spec.intervalSeconds === undefined ? defaultAnchorMillis : spec.intervalSeconds * 1000
  if (sink !== undefined) state.draft.auditAnchors.set(placed.name, { ...placed, sink, intervalMillis })
}

function prepare(spec: AuditSinkSpec | AuditAnchorSpec, context: BuildContext): PreparedAuditSink | undefined {
  const module = context.module(context.state.catalog.auditSinks, spec.className, ['spec', 'className'])
  const params = context.params(spec.params, ['spec', 'params'], spec.secretParams, ['spec', 'secretParams'])
  return module?.prepare(params, context.issues, context)
}

const defaultTimeoutSeconds = 600

/** Jobs of OpenUnison whose work is done elsewhere, and where. */
const unneededJobs = new Map([
  [
    'com.tremolosecurity.provisioning.scheduler.jobs.UpdateApprovalAz',
    'the rules check the approver when a decision is made',
  ],
  [
    'com.tremolosecurity.provisioning.scheduler.jobs.AutoFail',
    'the escalationPolicy of an approval defines what happens without a decision',
  ],
  [
    'com.tremolosecurity.idp.providers.oidc.model.jobs.ClearSessions',
    'the gateway removes expired sessions and tokens of its issuers itself',
  ],
  ['com.tremolosecurity.provisioning.jobs.WaitForJob', 'a run that waits for an object of a cluster wakes up itself'],
  ['com.tremolosecurity.jobs.ClearLogouts', 'an EndSession object does not end later logins, so it may stay'],
])

export function buildJob(spec: OUJobSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  const unneeded = unneededJobs.get(spec.className)
  if (unneeded !== undefined) {
    issues.warning(['spec', 'className'], `the job is not needed and does not run: ${unneeded}`)
    return
  }
  const module = context.module(state.catalog.jobs, spec.className, ['spec', 'className'])
  const params = context.params(spec.params, ['spec', 'params'], spec.secretParams, ['spec', 'secretParams'])
  const schedule = readSchedule(fieldTexts(spec.cronSchedule), spec.timeZone ?? 'UTC', (field, message) =>
    issues.error(field === 'timeZone' ? ['spec', field] : ['spec', 'cronSchedule', field], message),
  )
  const job = module?.prepare(params, issues, context)
  if (job === undefined || schedule === undefined) return
  const timeoutMillis = (spec.timeoutSeconds ?? defaultTimeoutSeconds) * 1000
  state.draft.jobs.set(placed.name, { ...placed, group: spec.group, schedule, timeoutMillis, job })
}

export const fieldTexts = (spec: CronScheduleSpec): ScheduleFields => ({
  seconds: String(spec.seconds),
  minutes: String(spec.minutes),
  hours: String(spec.hours),
  dayOfMonth: String(spec.dayOfMonth),
  month: String(spec.month),
  dayOfWeek: String(spec.dayOfWeek),
  year: String(spec.year),
})

export function buildNotifier(spec: NotifierSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  const module = context.module(state.catalog.notifiers, spec.className, ['spec', 'className'])
  const params = context.params(spec.params, ['spec', 'params'], spec.secretParams, ['spec', 'secretParams'])
  if (module === undefined) return
  state.draft.notifiers.set(placed.name, { ...placed, notifier: module.prepare(params, issues, context) })
}
