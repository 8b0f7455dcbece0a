import type {
  CorrelationRule,
  ReconciliationConfig,
  ReconciliationSource,
  ReconciliationWork,
} from '#config/configuration/configuration.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import type { ReconciliationSpec } from '#config/kinds/reconciliation.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import type { Path } from '#kernel/issues.ts'
import { readSchedule, type Schedule } from '#kernel/schedule.ts'
import { type PreparedMapping, prepareMapping } from '#sdk/mapper/mapping.ts'
import { fieldTexts } from './plain-kinds.ts'
import { reconciliationDefinition } from './reconciliation-definition.ts'

/** What each decision of the configuration may need a workflow for. */
const decisions = ['missing', 'different', 'extra'] as const

export function buildReconciliation(spec: ReconciliationSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  const source = readSource(spec.source, context)
  checkTarget(spec.target, ['spec', 'target'], context)
  if (source?.kind === 'target' && source.name === spec.target) {
    issues.error(['spec', 'target'], 'is the source itself: name another target')
  }
  const { missing = 'report', different = 'report', extra = 'report', ambiguous = 'report' } = spec
  const groups = spec.groups === 'all' ? 'all' : Array.isArray(spec.groups) ? spec.groups : []
  if (extra === 'removeMemberships' && groups.length === 0) {
    issues.error(['spec', 'extra'], '"removeMemberships" needs "groups", which say whose memberships are removed')
  }
  const incremental = readIncremental(spec, context)
  const workflows = readWorkflows(spec, context)
  const config: ReconciliationConfig | undefined = source && {
    ...placed,
    definition: reconciliationDefinition(spec, { source, target: spec.target, workflows }, context),
    description: spec.description ?? '',
    source,
    target: spec.target,
    scope: {
      filter: readFilter(spec.scope?.filter, ['spec', 'scope', 'filter'], context),
      groups: spec.scope?.groups ?? [],
    },
    mapping: readMapping(spec, context),
    groups,
    correlation: readCorrelation(spec, context),
    missing,
    different,
    extra,
    ambiguous,
    deactivated: readFilter(spec.deactivated, ['spec', 'deactivated'], context),
    workflows,
    limits: { percent: spec.limits?.percent ?? 5, accounts: spec.limits?.accounts ?? 50 },
    schedule: readTimes(spec, context),
    apply: spec.apply ?? 'manual',
    incremental,
  }
  if (config !== undefined) state.draft.reconciliations.set(placed.name, config)
}

function readSource(spec: ReconciliationSpec['source'], context: BuildContext): ReconciliationSource | undefined {
  const { issues } = context
  const path = ['spec', 'source']
  const filter = readFilter(spec.filter, [...path, 'filter'], context)
  const common = { filter, groups: spec.groups ?? [] }
  const named = (['target', 'gateway', 'directory'] as const).filter((one) => spec[one] !== undefined)
  if (named.length !== 1) {
    issues.error(path, `needs one of target, gateway and directory${named.length === 0 ? '' : ', and has several'}`)
    return undefined
  }
  if (spec.login !== undefined && spec.directory === undefined) {
    issues.error([...path, 'login'], '"login" is for a source that is a directory')
  }
  if (spec.target !== undefined) {
    checkTarget(spec.target, [...path, 'target'], context)
    return { ...common, kind: 'target', name: spec.target }
  }
  if (spec.gateway !== undefined) {
    const users = usersOfGateway(spec.gateway, [...path, 'gateway'], context)
    return users && { ...common, ...users }
  }
  try {
    return { ...common, kind: 'directory', base: Dn.parse(spec.directory ?? ''), login: spec.login ?? 'uid' }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    issues.error([...path, 'directory'], `is not a distinguished name such as ou=people,o=Tremolo: ${reason}`)
    return undefined
  }
}

/**
 * The users of the SCIM gateway of an application, as they are stored, which is as a built-in mapping shows them. Applications
 * are built before.
 */
function usersOfGateway(application: string, path: Path, context: BuildContext) {
  const { draft } = context.state
  context.refer('application', application, path)
  const found = draft.gateways.flatMap((one) =>
    one.application === application && one.flow.users !== undefined ? [{ ...one.flow, users: one.flow.users }] : [],
  )
  const [first] = found
  if (found.length === 1 && first?.mapsUsers !== true) return first?.users
  if (found.length === 1 && first !== undefined) {
    const { users } = first
    const instead = users.kind === 'target' ? `"target: ${users.name}"` : `"directory: ${users.base}"`
    const why = 'shows its users by mapping lines, which a reconciliation does not read'
    const message = `the SCIM gateway of "${application}" ${why}: write ${instead} and the attributes as they are stored there`
    context.issues.error(path, message)
    return undefined
  }
  const isKnown = draft.applications.some(({ config }) => config.name === application)
  // A missing application is reported as a missing reference.
  if (isKnown) {
    const what = found.length === 0 ? 'has no SCIM gateway' : 'has several SCIM gateways'
    context.issues.error(path, `the application "${application}" ${what}: name a target or a directory instead`)
  }
  return undefined
}

function checkTarget(name: string, path: Path, context: BuildContext): void {
  context.refer('target', name, path)
  if (context.state.draft.targets.get(name)?.config.target.lookups === false) {
    context.issues.error(path, `target "${name}" has no look-ups, so its accounts cannot be compared`)
  }
}

function readFilter(text: string | undefined, path: Path, { issues }: BuildContext): Filter | undefined {
  if (text === undefined) return undefined
  try {
    return parseFilter(text)
  } catch (error) {
    issues.error(path, error instanceof Error ? error.message : String(error))
    return undefined
  }
}

/** Without any mapping every attribute that a person ever had would be compared. */
function readMapping({ attributes, target }: ReconciliationSpec, context: BuildContext): PreparedMapping | undefined {
  const { state, issues } = context
  if (attributes === undefined) {
    const found = state.draft.targets.get(target)
    if (found !== undefined && found.config.mapping === undefined) {
      const message = `is required, since the target "${target}" has no targetAttributes: list what is compared`
      issues.error(['spec', 'attributes'], message)
    }
    return undefined
  }
  const rules = attributes.map(({ name, source, sourceType }, i) => ({
    attribute: name,
    source,
    sourceType,
    path: ['spec', 'attributes', i, 'source'],
  }))
  return prepareMapping(rules, issues, context)
}

function readCorrelation({ correlation = ['login'] }: ReconciliationSpec, { issues }: BuildContext): CorrelationRule[] {
  return correlation.flatMap((rule, i): CorrelationRule[] => {
    if (rule === 'login') return [{ kind: 'login' }]
    const { id, attribute, source, target } = rule
    if (id !== undefined && attribute === undefined && source === undefined && target === undefined) {
      return [{ kind: 'id', target: id }]
    }
    if (attribute !== undefined && id === undefined && source === undefined && target === undefined) {
      return [{ kind: 'attribute', source: attribute, target: attribute }]
    }
    if (source !== undefined && target !== undefined && id === undefined && attribute === undefined) {
      return [{ kind: 'attribute', source, target }]
    }
    const message = 'needs "id", "attribute", or both "source" and "target", and nothing else; or is the word login'
    issues.error(['spec', 'correlation', i], message)
    return []
  })
}

/** A decision that changes something needs its workflow, and a workflow without a decision is a mistake. */
function readWorkflows(spec: ReconciliationSpec, context: BuildContext): ReconciliationConfig['workflows'] {
  const { issues } = context
  const { workflow, workflows = {} } = spec
  const used = new Map<ReconciliationWork, string>()
  if (workflow !== undefined) context.refer('workflow', workflow, ['spec', 'workflow'])
  for (const decision of decisions) {
    const work = spec[decision] ?? 'report'
    if (work === 'report') continue
    const name = workflows[work] ?? workflow
    if (name !== undefined) used.set(work, name)
    else issues.error(['spec', decision], `"${work}" needs a workflow: add "workflow" or "workflows.${work}"`)
  }
  for (const [work, does] of works) {
    const name = workflows[work]
    if (name === undefined) continue
    const path = ['spec', 'workflows', work]
    context.refer('workflow', name, path)
    if (!used.has(work)) issues.warning(path, `is never started, since nothing here decides to ${does}`)
  }
  if (used.size === 0 && spec.apply === 'automatic') {
    issues.warning(['spec', 'apply'], 'there is nothing to apply: every difference is only reported')
  }
  return Object.fromEntries(used)
}

const works: readonly (readonly [ReconciliationWork, does: string])[] = [
  ['create', 'create accounts ("missing")'],
  ['change', 'change accounts ("different")'],
  ['deactivate', 'deactivate accounts ("extra")'],
  ['delete', 'delete accounts ("extra")'],
  ['removeMemberships', 'remove memberships ("extra")'],
]

/** A person can't approve a plan for each change. What no change of Gatehouse causes is found by a schedule alone. */
function readIncremental(
  { incremental = false, apply, schedule }: ReconciliationSpec,
  { issues }: BuildContext,
): boolean {
  if (!incremental) return false
  const path = ['spec', 'incremental']
  if (apply !== 'automatic') issues.error(path, 'needs "apply: automatic", since changes are applied as they come')
  if (schedule === undefined) {
    issues.warning(path, 'has no "schedule" beside it, so changes that others make in either system are not found')
  }
  return true
}

function readTimes({ schedule, timeZone }: ReconciliationSpec, { issues }: BuildContext): Schedule | undefined {
  if (schedule === undefined) {
    if (timeZone !== undefined) issues.error(['spec', 'timeZone'], '"timeZone" is for a "schedule", and there is none')
    return undefined
  }
  return readSchedule(fieldTexts(schedule), timeZone ?? 'UTC', (field, message) =>
    issues.error(field === 'timeZone' ? ['spec', field] : ['spec', 'schedule', field], message),
  )
}
