import { customTasks, tasks as taskModules } from '#catalog/catalog.ts'
import type { Configuration, TargetConfig, WorkflowConfig } from '#config/configuration/configuration.ts'
import { HiddenValues } from '#config/context/hidden-values.ts'
import { Substitution } from '#config/context/substitute.ts'
import { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { secretHash } from '#kernel/ids.ts'
import { Issues, type Path } from '#kernel/issues.ts'
import { type LogFields, type Logger, silentLogger } from '#kernel/logger.ts'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import { SecretValues } from '#kernel/secret-values.ts'
import type { TimeSpan } from '#kernel/time.ts'
import { SecretBox } from '#keys/secret-box.ts'
import type { PasswordChangeStore } from '#requests/login/password-change-store.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import type { PreparedMapping } from '#sdk/mapper/mapping.ts'
import type { Params } from '#sdk/module/params.ts'
import type { GroupMapping } from '#sdk/target/group-mappings.ts'
import type { Target } from '#sdk/target/target.ts'
import type { ExpiryOffer } from '#sdk/workflow/expiry-offer.ts'
import type { GrantAccess } from '#sdk/workflow/grants.ts'
import type { WorkflowStarter } from '#sdk/workflow/workflow.ts'
import type { PreparedTask, TaskHost, TaskModule, TaskParseContext, WorkflowTask } from '#sdk/workflow/workflow-task.ts'
import { fakeDirectory } from '#testing/login/fake-directory.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { absentStore, callStore } from '#testing/workflows/call-store.ts'
import type { GivenCall } from '#testing/workflows/given-call.ts'
import { createWorkflows, type Workflows } from '#workflows/runs/workflows.ts'
import {
  type ApprovalOpener,
  noCrash,
  noStepObserver,
  subjectQueue,
  type WorkflowServices,
} from '#workflows/steps/workflow-services.ts'
import type { IdempotencyStore } from '#workflows/store/idempotency-store.ts'
import { watchedTarget } from '#workflows/targets/watched-target.ts'

export type TaskSpec = Readonly<Record<string, unknown>>

/** Names that tasks refer to, with their positions. */
export interface Referred {
  readonly kind: string
  readonly name: string
  readonly path: Path
}

export interface ParsedTasks {
  readonly tasks: readonly PreparedTask[]
  readonly issues: Issues
  readonly referred: readonly Referred[]
}

/** The environment of the tasks. */
const environment = { REGION: 'eu-1', DB_PASSWORD: 'hunter2' }

/** Parses tasks in YAML form, through the modules of the catalog. */
export function parseTasks(specs: readonly TaskSpec[], own: OwnTasks = {}): ParsedTasks {
  const issues = new Issues()
  const referred: Referred[] = []
  const values = new Substitution(environment, new Map(), new HiddenValues(new SecretValues()))
  const context: TaskParseContext = {
    folder: '/',
    customTasks,
    shownValue: (name) => values.shownValue(name),
    refer: (kind, name, path) => void referred.push({ kind, name, path }),
    mapper: (expression, path, into) => {
      into.error(path, `no mapper in this test: ${expression}`)
      return undefined
    },
    params: (value, path) => paramsOf(value, path),
  }
  return { tasks: parseList(specs, [], issues, context, own), issues, referred }
}

function parseList(
  specs: readonly TaskSpec[],
  path: Path,
  issues: Issues,
  context: TaskParseContext,
  own: OwnTasks,
): PreparedTask[] {
  return specs.map((spec, index) => {
    const { taskType, onSuccess, onFailure, ...fields } = spec
    const here = [...path, index]
    const run = own[String(taskType)]
    const module = run === undefined ? taskModules.get(String(taskType)) : ownTask(String(taskType), run)
    if (module === undefined) throw new Error(`no task type "${String(taskType)}"`)
    return {
      taskType: module.taskType,
      path: here,
      ...module.prepare(fields, here, issues, context),
      onSuccess: parseList((onSuccess ?? []) as TaskSpec[], [...here, 'onSuccess'], issues, context, own),
      onFailure: parseList((onFailure ?? []) as TaskSpec[], [...here, 'onFailure'], issues, context, own),
    }
  })
}

const ownTask = (taskType: string, own: OwnTasks[string]): TaskModule => ({
  taskType,
  fields: {},
  branches: true,
  prepare: () => ({ calls: [], flow: noFlow, create: async () => (typeof own === 'function' ? { run: own } : own) }),
})

function paramsOf(value: unknown, path: Path): Params {
  const map = value as Readonly<Record<string, string | string[]>>
  return {
    names: () => Object.keys(map),
    values: (name) => [map[name] ?? []].flat(),
    pathOf: (name, index) => (index === undefined ? [...path, name] : [...path, name, index]),
    isSecret: () => false,
  }
}

/** The test's own task types; a function is a task without a preview. */
export type OwnTasks = Readonly<Record<string, WorkflowTask['run'] | WorkflowTask>>

export interface FixtureOptions {
  readonly tasks?: OwnTasks
  readonly workflows: Readonly<Record<string, readonly TaskSpec[]>>
  /** The deadlines of workflows that have one. */
  readonly deadlines?: Readonly<Record<string, TimeSpan>>
  readonly accessEnds?: Readonly<Record<string, ExpiryOffer>>
  readonly targets?: Readonly<Record<string, Target>>
  readonly mappings?: Readonly<Record<string, PreparedMapping>>
  readonly directory?: Parameters<typeof fakeDirectory>[0]
  readonly grants?: GrantAccess
  readonly groupMappings?: readonly GroupMapping[]
  readonly log?: Logger
  readonly subjects?: WorkflowServices['subjects']
  readonly append?: (rows: readonly AuditEntry[]) => Promise<void>
  /** Replaces stores and other services that tests don't need. */
  readonly services?: Partial<WorkflowServices>
  readonly approvals?: ApprovalOpener
}

export interface Fixture {
  readonly workflows: Workflows
  /** All rows, and the number of writes. */
  readonly audit: { readonly rows: AuditEntry[]; writes: number }
  run(
    name: string,
    call?: GivenCall & { userID?: string; attributes?: Record<string, string[]>; groups?: string[] },
  ): ReturnType<WorkflowStarter['run']>
}

/** Workflows of a configuration. A definition is identified by its content, and parsed from it again. */
export function workflowSet(
  workflows: FixtureOptions['workflows'],
  own?: OwnTasks,
  { deadlines = {}, accessEnds = {} }: Pick<FixtureOptions, 'deadlines' | 'accessEnds'> = {},
): Pick<Configuration, 'workflows' | 'restoreWorkflow'> {
  const config = (name: string, source: string): WorkflowConfig => {
    const { tasks, issues } = parseTasks(JSON.parse(source) as TaskSpec[], own)
    if (!issues.ok) throw new Error(issues.list.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n'))
    const described = { label: name, description: '', inList: false, orgId: undefined, parameters: [] }
    const hash = secretHash(source)
    const [deadline, offer] = [deadlines[name], accessEnds[name]]
    const ends = {
      ...(deadline === undefined ? {} : { deadline }),
      ...(offer === undefined ? {} : { accessEnds: offer }),
    }
    return { name, namespace: undefined, at: `${name}.yaml:1:1`, ...described, ...ends, hash, source, tasks }
  }
  return {
    workflows: new Map(Object.entries(workflows).map(([name, specs]) => [name, config(name, JSON.stringify(specs))])),
    restoreWorkflow: ({ name, source }) => {
      try {
        return { config: config(name, source) }
      } catch (error) {
        return { problems: [error instanceof Error ? error.message : String(error)] }
      }
    },
  }
}

const noApprovalDesk: ApprovalOpener = {
  open: async () => {
    throw new Error('no approvals in this test')
  },
}

/** A running set of workflows over the given targets. Throws if the tasks do not parse. */
export async function startWorkflows(options: FixtureOptions): Promise<Fixture> {
  const audit = { rows: [] as AuditEntry[], writes: 0 }
  const host = fakeHost(options)
  const targets = Object.entries(options.mappings ?? {}).map(([name, mapping]): [string, TargetConfig] => {
    const target = { className: 'targets.Memory', create: async () => host.targets.get(name) }
    return [name, { name, namespace: undefined, at: `${name}.yaml:1:1`, target, mapping }]
  })
  const append = async (rows: readonly AuditEntry[]): Promise<void> => {
    audit.writes++
    await options.append?.(rows)
    audit.rows.push(...rows)
  }
  const services: WorkflowServices = {
    log: host.log,
    clock: host.clock,
    subjects: options.subjects ?? subjectQueue(),
    rateLimits: new MemoryRateLimits(host.clock),
    runs: callStore(append),
    idempotency: absentStore<IdempotencyStore>('keys of calls'),
    leaseMillis: 2_000,
    secrets: new SecretBox(async () => []),
    observer: noStepObserver,
    crash: noCrash,
    passwordChanges: new Proxy(absentStore<PasswordChangeStore>('password changes'), {
      get: (absent, name: keyof PasswordChangeStore) =>
        name === 'begin' ? async (change: object) => ({ ...change, lease: 1 }) : absent[name],
    }),
    audit: {
      append,
      appendWithin: async () => false,
      list: async () => ({ rows: [] }),
    },
    ...options.services,
  }
  const configuration = {
    ...workflowSet(options.workflows, options.tasks, options),
    targets: new Map(targets),
  }
  const workflows = await createWorkflows(configuration, () => host, services, options.approvals ?? noApprovalDesk)
  return {
    workflows,
    audit,
    run: (name, { userID = 'jjackson', attributes = {}, groups = [], head, ...call } = {}) =>
      workflows.run({
        head: { workflow: name, requester: 'caller', ...head },
        params: {},
        user: { userID, attributes: Attributes.from(attributes), groups },
        ...call,
      }),
  }
}

function fakeHost(options: FixtureOptions): TaskHost {
  const { targets = {}, directory, log = silentLogger, grants, groupMappings = [] } = options
  const absent = (what: string) => (): never => {
    throw new GatewayError('INTERNAL', `no ${what} in this test`)
  }
  return {
    ...fakeModuleHost({ ...(grants && { grants }), groupMappings }),
    log,
    clock: () => new Date('2026-01-02T03:04:05Z'),
    targets: { get: (name) => watchedTarget(targets[name] ?? absent(`target ${name}`)(), (_, call) => call()) },
    directory: fakeDirectory(directory ?? { search: absent('directory'), isMember: absent('directory') }),
  }
}

export interface RecordedLine {
  readonly level: string
  readonly message: string
  readonly fields: LogFields
}

/** Records the log. */
export function recordingLogger(): Logger & { readonly lines: RecordedLine[] } {
  const lines: RecordedLine[] = []
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}) =>
      void lines.push({ level, message, fields })
  const log = {
    lines,
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    with: () => log,
  }
  return log
}

/** Runs the tasks on a user and returns what provisioning then writes to an empty target. */
export async function userAfter(
  specs: readonly TaskSpec[],
  call: Parameters<Fixture['run']>[1] = {},
  options: Omit<FixtureOptions, 'workflows'> = {},
): Promise<ReturnType<MemoryTarget['stored']>> {
  const result = new MemoryTarget()
  const provision = { taskType: 'provision', target: 'result', sync: true }
  const { run } = await startWorkflows({
    ...options,
    workflows: { w: [...specs, provision] },
    targets: { ...options.targets, result },
  })
  await run('w', call)
  return result.stored(call.userID ?? 'jjackson')
}

/** `path: message` of every issue of parsing the tasks. */
export const issuesOf = (specs: readonly TaskSpec[]): string[] =>
  parseTasks(specs).issues.list.map(({ path, message }) => `${path.join('.')}: ${message}`)

export const customTask = (className: string, params: Record<string, unknown> = {}): TaskSpec => ({
  taskType: 'customTask',
  className,
  params,
})
