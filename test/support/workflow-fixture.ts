import { customTasks } from '#catalog/custom-tasks.ts'
import { tasks as taskModules } from '#catalog/workflow-tasks.ts'
import { SubjectQueue } from '#engine/workflow/subject-queue.ts'
import { createWorkflows } from '#engine/workflow/workflows.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Directory } from '#identity/directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { Issues, type Path } from '#kernel/issues.ts'
import { type LogFields, type Logger, silentLogger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { TargetConfig, WorkflowConfig } from '#sdk/configuration.ts'
import type { ModuleHost, WorkflowStarter } from '#sdk/host.ts'
import type { PreparedMapping } from '#sdk/mapping.ts'
import type { Params } from '#sdk/params.ts'
import type { Target } from '#sdk/target.ts'
import type { WorkflowCall } from '#sdk/workflow.ts'
import type { PreparedTask, TaskParseContext } from '#sdk/workflow-task.ts'
import type { AuditRow } from '#storage/audit-store.ts'
import { MemoryTarget } from '#testing/memory-target.ts'

export type TaskSpec = Readonly<Record<string, unknown>>

/** Names that tasks referred to, with their places. */
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

/** Parses tasks written as in YAML, through the modules of the catalogue. */
export function parseTasks(specs: readonly TaskSpec[]): ParsedTasks {
  const issues = new Issues()
  const referred: Referred[] = []
  const context: TaskParseContext = {
    folder: '/',
    customTasks,
    refer: (kind, name, path) => void referred.push({ kind, name, path }),
    mapper: (expression, path, into) => {
      into.error(path, `no mapper in this test: ${expression}`)
      return undefined
    },
    params: (value, path) => paramsOf(value, path),
  }
  return { tasks: parseList(specs, [], issues, context), issues, referred }
}

function parseList(specs: readonly TaskSpec[], path: Path, issues: Issues, context: TaskParseContext): PreparedTask[] {
  return specs.map((spec, index) => {
    const { taskType, onSuccess, onFailure, ...fields } = spec
    const here = [...path, index]
    const module = taskModules.get(String(taskType))
    if (module === undefined) throw new Error(`no task type "${String(taskType)}"`)
    return {
      taskType: module.taskType,
      path: here,
      ...module.prepare(fields, here, issues, context),
      onSuccess: parseList((onSuccess ?? []) as TaskSpec[], [...here, 'onSuccess'], issues, context),
      onFailure: parseList((onFailure ?? []) as TaskSpec[], [...here, 'onFailure'], issues, context),
    }
  })
}

function paramsOf(value: unknown, path: Path): Params {
  const map = value as Readonly<Record<string, string | string[]>>
  return {
    names: () => Object.keys(map),
    values: (name) => [map[name] ?? []].flat(),
    pathOf: (name, index) => (index === undefined ? [...path, name] : [...path, name, index]),
    isSecret: () => false,
  }
}

export interface FixtureOptions {
  readonly workflows: Readonly<Record<string, readonly TaskSpec[]>>
  readonly targets?: Readonly<Record<string, Target>>
  readonly mappings?: Readonly<Record<string, PreparedMapping>>
  readonly directory?: Directory
  readonly log?: Logger
  readonly subjects?: SubjectQueue
  readonly append?: (rows: readonly AuditRow[]) => Promise<void>
}

export interface Fixture {
  readonly workflows: WorkflowStarter & Closable
  /** All rows, and how often rows were written. */
  readonly audit: { readonly rows: AuditRow[]; writes: number }
  run(
    name: string,
    call?: Partial<WorkflowCall> & { userID?: string; attributes?: Record<string, string[]>; groups?: string[] },
  ): ReturnType<WorkflowStarter['run']>
}

/** A running set of workflows over the given targets. Throws when the tasks do not parse. */
export async function startWorkflows(options: FixtureOptions): Promise<Fixture> {
  const audit = { rows: [] as AuditRow[], writes: 0 }
  const host = fakeHost(options)
  const configs = Object.entries(options.workflows).map(([name, specs]): [string, WorkflowConfig] => {
    const { tasks, issues } = parseTasks(specs)
    if (!issues.ok) throw new Error(issues.list.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n'))
    const described = { label: name, description: '', inList: false, orgId: undefined, hash: `hash of ${name}` }
    return [name, { name, namespace: undefined, at: `${name}.yaml:1:1`, ...described, tasks }]
  })
  const targets = Object.entries(options.mappings ?? {}).map(([name, mapping]): [string, TargetConfig] => {
    const target = { className: 'targets.Memory', create: async () => host.targets.get(name) }
    return [name, { name, namespace: undefined, at: `${name}.yaml:1:1`, target, mapping }]
  })
  const workflows = await createWorkflows({ workflows: new Map(configs), targets: new Map(targets) }, () => host, {
    log: host.log,
    clock: host.clock,
    subjects: options.subjects ?? new SubjectQueue(),
    audit: {
      append: async (rows) => {
        audit.writes++
        await options.append?.(rows)
        audit.rows.push(...rows)
      },
      appendWithin: async () => false,
    },
  })
  return {
    workflows,
    audit,
    run: (name, { userID = 'jjackson', attributes = {}, groups = [], ...call } = {}) =>
      workflows.run({
        name,
        requestor: 'caller',
        params: {},
        user: { userID, attributes: Attributes.from(attributes), groups },
        ...call,
      }),
  }
}

function fakeHost({ targets = {}, directory, log = silentLogger }: FixtureOptions): ModuleHost {
  const absent = (what: string) => (): never => {
    throw new GatewayError('INTERNAL', `no ${what} in this test`)
  }
  return {
    name: 'test',
    log,
    clock: () => new Date('2026-01-02T03:04:05Z'),
    targets: { get: (name) => targets[name] ?? absent(`target ${name}`)() },
    workflows: { run: absent('workflows') },
    directory: directory ?? { search: absent('directory'), isMember: absent('directory') },
    keys: { publicKey: absent('keys'), signingKey: absent('keys') },
    javaScript: () => undefined,
    authorize: absent('rules'),
    openUserDirectory: absent('user directory'),
    openJournal: absent('journals'),
    readJournal: absent('journals'),
    openEventStream: absent('event streams'),
    pollEvents: absent('event streams'),
  }
}

export interface RecordedLine {
  readonly level: string
  readonly message: string
  readonly fields: LogFields
}

/** Keeps what was logged. */
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

/** Runs the tasks on a user and gives what provisioning then writes to an empty target. */
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

/** `path: message` of every issue that parsing the tasks gives. */
export const issuesOf = (specs: readonly TaskSpec[]): string[] =>
  parseTasks(specs).issues.list.map(({ path, message }) => `${path.join('.')}: ${message}`)

export const customTask = (className: string, params: Record<string, unknown> = {}): TaskSpec => ({
  taskType: 'customTask',
  className,
  params,
})
