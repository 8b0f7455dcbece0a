import { createHash } from 'node:crypto'
import type { WorkflowConfig } from '#config/configuration/configuration.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import type { ConfigDocument } from '#config/context/config-document.ts'
import type { CustomAuthorizationSpec, TargetSpec, WorkflowSpec } from '#config/kinds/provisioning.ts'
import type { Path } from '#kernel/issues.ts'
import { sortedKeys } from '#kernel/json.ts'
import { isEmptySpan, parseTimeSpan, spanMillis, type TimeSpan } from '#kernel/time.ts'
import { prepareMapping } from '#sdk/mapper/mapping.ts'
import { expiryKey } from '#sdk/workflow/expiry-offer.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import { parseTasks, templateKeyPlace, templateKeysIn } from './parse-tasks.ts'

export function buildTarget(spec: TargetSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  if (spec.inDirectory === false) state.draft.outsideDirectory.add(placed.name)
  const module = context.module(state.catalog.targets, spec.className, ['spec', 'className'])
  const params = context.params(spec.params, ['spec', 'params'], spec.secretParams, ['spec', 'secretParams'])
  const rules = (spec.targetAttributes ?? []).map(({ name, source, sourceType }, i) => ({
    attribute: name,
    source,
    sourceType,
    path: ['spec', 'targetAttributes', i, 'source'],
  }))
  const mapping = rules.length === 0 ? undefined : prepareMapping(rules, issues, context)
  if (module === undefined) return
  const config = { ...placed, target: module.prepare(params, issues, context), mapping }
  state.draft.targets.set(placed.name, { config, document: context.document })
}

export function buildCustomAuthorization(spec: CustomAuthorizationSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  const module = context.module(state.catalog.authorizations, spec.className, ['spec', 'className'])
  const params = context.params(spec.params, ['spec', 'params'], spec.secretParams, ['spec', 'secretParams'])
  if (module === undefined) return
  state.draft.authorizations.set(placed.name, { ...placed, authorization: module.prepare(params, issues, context) })
}

export function buildWorkflow(spec: WorkflowSpec, context: BuildContext): void {
  const { state, placed } = context
  const tasks = parseTasks(spec.tasks, ['spec', 'tasks'], context)
  const inList = spec.inList ?? false
  const orgId = spec.orgId === '' ? undefined : spec.orgId
  if (inList && orgId !== undefined) context.refer('org', orgId, ['spec', 'orgId'], 'warning')
  const config = {
    ...placed,
    label: spec.label ?? placed.name,
    description: spec.description ?? '',
    inList,
    orgId,
    ...(spec.owner === undefined || spec.owner === '' ? {} : { owner: spec.owner }),
    ...readDynamic(spec, context),
    ...readAccessEnds(spec, context),
    ...readDeadline(spec, context),
    hash: createHash('sha256').update(JSON.stringify(spec, sortedKeys)).digest('base64url'),
    tasks,
    parameters: readParameterNames(spec, context),
    source: workflowSource(spec, context.document),
  }
  const reads = templateKeyPlace(spec.tasks, expiryKey)
  const declaresEnd = spec.parameters?.includes(expiryKey) ?? false
  const readsEndAt = reads && ['spec', 'tasks', ...reads]
  state.draft.workflows.set(placed.name, { config, document: context.document, readsEndAt, declaresEnd })
}

function readDynamic(
  { dynamicConfiguration: given, inList }: WorkflowSpec,
  context: BuildContext,
): Pick<WorkflowConfig, 'dynamic'> {
  const { state, issues } = context
  if (given?.dynamic !== true) return {}
  const path = ['spec', 'dynamicConfiguration']
  if (inList !== true) {
    issues.warning(path, 'a dynamic workflow is only shown where people request access, so inList must be true')
  }
  const className = given.className ?? ''
  if (className === '') {
    issues.error([...path, 'className'], 'is required where dynamic is true')
    return {}
  }
  const module = context.module(state.catalog.dynamicWorkflows, className, [...path, 'className'])
  if (module === undefined) return {}
  const source = module.prepare(context.params(given.params, [...path, 'params']), issues, context)
  const annotations = (given.filterAnnotations ?? []).map(({ name, requestObjectName }) => ({
    name,
    parameter: requestObjectName ?? name,
  }))
  return { dynamic: { source, annotations } }
}

function readAccessEnds({ accessEnds }: WorkflowSpec, context: BuildContext): Pick<WorkflowConfig, 'accessEnds'> {
  if (accessEnds === undefined) return {}
  const longest = readSpan(accessEnds.longest, ['spec', 'accessEnds', 'longest'], context)
  return { accessEnds: { required: accessEnds.choose === 'required', longest } }
}

function readDeadline({ deadline }: WorkflowSpec, context: BuildContext): Pick<WorkflowConfig, 'deadline'> {
  const span = readSpan(deadline, ['spec', 'deadline'], context)
  return span === undefined ? {} : { deadline: span }
}

function readSpan(text: string | undefined, path: Path, { issues }: BuildContext): TimeSpan | undefined {
  if (text === undefined || text === '') return undefined
  const span = parseTimeSpan(text.trim())
  if (span !== undefined && !isEmptySpan(span) && spanMillis(new Date(0), span) !== undefined) return span
  issues.error(path, `"${path.at(-1)}" must be a length of time such as 8h, 30d or P30D`)
  return undefined
}

/** What a caller may pass: declared names, and names in templates, except keys of the engine. */
function readParameterNames(spec: WorkflowSpec, { issues }: BuildContext): string[] {
  const declared = spec.parameters ?? []
  for (const [i, name] of declared.entries()) {
    const at = ['spec', 'parameters', i]
    if (name === '') issues.error(at, 'a request parameter needs a name')
    else if (isEngineKey(name)) issues.error(at, `"${name}" is a key of the engine, which no caller may set`)
  }
  return [...new Set([...declared, ...templateKeysIn(spec.tasks)])].filter((name) => !isEngineKey(name))
}

/** A definition as YAML in one line, with its values substituted; numbers keep their text, so that 1.10 is not 1.1. */
const workflowSource = (spec: WorkflowSpec, document: ConfigDocument): string =>
  `{"spec": ${flow(spec, ['spec'], document)}}`

function flow(value: unknown, path: Path, document: ConfigDocument): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'string') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map((item, i) => flow(item, [...path, i], document)).join(', ')}]`
  if (typeof value !== 'object') return document.yaml.scalarText(path) ?? String(value)
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return `{${entries.map(([name, item]) => `${JSON.stringify(name)}: ${flow(item, [...path, name], document)}`).join(', ')}}`
}
