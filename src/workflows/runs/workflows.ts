import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Configuration } from '#config/configuration/configuration.ts'
import { createAt, createEach } from '#config/configuration/create-at.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Directory } from '#identity/directory.ts'
import type { RunIdentities } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { buildScoped, type Closable, type Scope } from '#kernel/scope.ts'
import { addSpan } from '#kernel/time.ts'
import { type Tracer, tracer, writeTraceparent } from '#kernel/tracing.ts'
import type { MailChoices } from '#mail/mail-choices.ts'
import { portalLinks } from '#mail/mail-links.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type { Texts } from '#sdk/page/page-texts.ts'
import type { Target } from '#sdk/target/target.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import { isEngineKey, type WorkflowCall, type WorkflowResult, type WorkflowStarter } from '#sdk/workflow/workflow.ts'
import type { RequestMap, TaskHost, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { createDefinition, type Definition, Definitions, type Pins } from '#workflows/definitions/definitions.ts'
import { expiryIn, withExpiry } from '#workflows/definitions/expiry-parameter.ts'
import { type ExecutedSteps, executeSteps, type RunKeeper, type StepParts } from '#workflows/steps/execute-steps.ts'
import type { RunMailing } from '#workflows/steps/run-effects.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import { deadlineTimer } from '#workflows/steps/run-timers.ts'
import { createTargetMappings, withMappings } from '#workflows/steps/target-mappings.ts'
import type { DefinitionOf } from '#workflows/steps/walk.ts'
import { maySkip, rootFrame } from '#workflows/steps/walk.ts'
import type { ApprovalOpener, WorkflowServices } from '#workflows/steps/workflow-services.ts'
import type { IdempotencyKey } from '#workflows/store/idempotency-store.ts'
import type { NewRun, RunEffects } from '#workflows/store/run-commit.ts'
import type { StartOutcome } from '#workflows/store/run-store.ts'
import { CallExecution, type CallParts, resultToJson } from './call-execution.ts'
import { newRunOf, placeOf } from './saved-run.ts'

/** How long closing waits for running calls. */
const drainMillis = 30_000

/** Creates the tasks of every workflow of a configuration, once; if one can't be created, closes the others. */
export async function createWorkflows(
  configuration: Pick<Configuration, 'workflows' | 'targets' | 'restoreWorkflow'> &
    Partial<Pick<Configuration, 'applications'>>,
  hostFor: (name: string, at: string) => TaskHost,
  services: WorkflowServices,
  approvals: ApprovalOpener,
  choices?: MailChoices,
): Promise<Workflows> {
  const { applications = [] } = configuration
  const { value: definitions, scope } = await buildScoped(async (scope) => {
    const mappings = await createTargetMappings(configuration.targets, hostFor, scope)
    const taskHost = (name: string, at: string): TaskHost => withMappings(hostFor(name, at), mappings)
    const created = new Map<string, Definition>()
    await createEach(configuration.workflows, async ([name, config]) => {
      const { at } = config
      created.set(name, await createAt(at, () => createDefinition(config, taskHost(name, at), scope)))
    })
    return scope.own(new Definitions({ configuration, created, hostFor: taskHost, store: services.runs }))
  })
  const mailing = { pages: portalLinks(applications), choices }
  return new Workflows(definitions, services, approvals, hostFor('', ''), scope, mailing)
}

/** A call that gets the same response when it is repeated. */
interface KeyedCall extends IdempotencyKey {
  readonly bodyHash: string
}

interface RunNowOptions {
  readonly key?: KeyedCall | undefined
  /** Executes a run that may change several systems, so that it is stored before its first step. */
  readonly stored?: (parts: CallParts) => Promise<WorkflowResult>
}

/** What shows the effects of a run without executing it. */
export interface ReadingParts {
  readonly definitions: DefinitionOf
  target(name: string): Target
  readonly directory: Directory
  readonly audit: Pick<AuditStore, 'list'>
  readonly clock: Clock
  readonly log: Logger
}

/** The workflows of one configuration: starts runs, and executes steps of stored ones. */
export class Workflows implements WorkflowStarter, Closable {
  readonly #definitions: Definitions
  readonly #services: WorkflowServices
  readonly #approvals: ApprovalOpener
  readonly #host: Pick<TaskHost, 'targets' | 'directory'>
  /** By target name: whether its changes and their audit are one commit. */
  readonly #auditing = new Map<string, boolean>()
  readonly #scope: Scope
  readonly mailing: RunMailing
  readonly #stepParts: StepParts
  #active = 0
  #closing = false
  #drained: (() => void) | undefined

  constructor(
    definitions: Definitions,
    services: WorkflowServices,
    approvals: ApprovalOpener,
    host: Pick<TaskHost, 'targets' | 'directory'>,
    scope: Scope,
    mailing: RunMailing,
  ) {
    this.#definitions = definitions
    this.#services = services
    this.#approvals = approvals
    this.#host = host
    this.#scope = scope
    this.mailing = mailing
    this.#stepParts = {
      services,
      approvals,
      definitions: (name, hash) => definitions.get(name, hash),
      auditsWithin: (target) => this.#auditsWithin(target),
    }
  }

  async run(call: WorkflowCall): Promise<WorkflowResult> {
    if (!isAsynchronous(call)) return await this.runNow(call, this.begin(call))
    const state = this.begin(call)
    await this.store(state)
    return accepted(state.head.id)
  }

  /** The requested run, before its first step. Throws NOT_SUPPORTED and BAD_REQUEST. */
  begin(call: WorkflowCall): RunProgress {
    const definition = this.#definitions.get(call.head.workflow)
    const checked = withExpiry(call, definition.accessEnds, this.#services.clock())
    const deadline = this.#deadlineOf(call, definition)
    return runOf(checked, definition, this.#definitions.pinsOf(call.head.workflow), deadline)
  }

  /** Executes the run in its order among those of its subject, until it ends or has to wait. */
  runNow(call: WorkflowCall, state: RunProgress, options: RunNowOptions = {}): Promise<WorkflowResult> {
    return tracer === undefined ? this.#runNow(call, state, options) : this.#traced(tracer, call, state, options)
  }

  #traced(tracer: Tracer, call: WorkflowCall, state: RunProgress, options: RunNowOptions): Promise<WorkflowResult> {
    const { id: run, workflow } = state.head
    const attributes = { 'gatehouse.workflow': workflow, 'gatehouse.run.id': run }
    const start = { name: `workflow ${workflow}`, kind: 'internal', parent: 'current', run, attributes } as const
    return tracer.span(start, async (span) => {
      const result = await this.#runNow(call, state, options)
      span.set({ 'gatehouse.outcome': result.status })
      return result
    })
  }

  #runNow(call: WorkflowCall, state: RunProgress, { key, stored }: RunNowOptions): Promise<WorkflowResult> {
    const parts = {
      services: this.#services,
      kept: call.kept ?? false,
      saveDefinitions: () => this.#definitions.save(state.pins),
      answer: (result: WorkflowResult) =>
        key && { scope: key.scope, key: key.key, run: state.head.id, response: resultToJson(result) },
    }
    const execute = (): Promise<WorkflowResult> => {
      if (stored !== undefined && this.#definitions.writesOf(call.head.workflow).severalTimes) return stored(parts)
      const prepare = (started: WorkflowCall) => this.prepare(startedCall(started, state))
      const own = {
        ...this.#stepParts,
        mailing: this.mailing,
        prepare,
        maySkip: (data: JsonObject) => this.maySkip(data),
      }
      return new CallExecution(state, { ...own, ...parts }).run()
    }
    return this.#counted(call.head.workflow, () =>
      this.#services.subjects.run(state.head.subject.toLowerCase(), execute),
    )
  }

  /** Stores the run; a worker claims and executes it. */
  async store(state: RunProgress, key?: KeyedCall): Promise<StartOutcome> {
    const { deadline } = state.head
    const run = await newRunOf(state, this.#services.secrets)
    await this.#definitions.save(state.pins)
    const effects: RunEffects = deadline === undefined ? {} : { timers: [deadlineTimer(state.head.id, deadline)] }
    const idempotency = key && { ...key, run: state.head.id }
    return await this.#services.runs.start(run, { effects, idempotency })
  }

  async prepare(call: WorkflowCall): Promise<NewRun> {
    const state = this.begin(call)
    const run = await newRunOf(state, this.#services.secrets)
    await this.#definitions.save(state.pins)
    return run
  }

  /** Loads the definitions that a stored run needs. Throws WORKFLOW_FAILED if one is not available. */
  async load(state: Pick<RunProgress, 'frames' | 'pins'>): Promise<void> {
    await this.#definitions.load(state.frames.map(({ workflow, hash }) => [workflow, hash]))
    await this.#definitions.load(state.pins)
  }

  /** Whether the next task of a stored run can be skipped; see `maySkip`. Undefined if that can't be found out. */
  async maySkip(data: JsonObject): Promise<boolean | undefined> {
    try {
      const place = placeOf(data)
      await this.load(place)
      return maySkip(place, this.#stepParts.definitions)
    } catch {
      return undefined
    }
  }

  /** Whether the workflow, with those that it calls, writes several targets. */
  writesSeveralTargets(workflow: string): boolean {
    return this.#definitions.writesOf(workflow).severalTargets
  }

  /** Lets `work` read with the tasks, targets and directory of this configuration, which stay open until it ends. */
  reading<T>(workflow: string, work: (parts: ReadingParts) => Promise<T>): Promise<T> {
    const { clock, log, audit } = this.#services
    const { directory } = this.#host
    const { definitions } = this.#stepParts
    return this.#counted(workflow, () => work({ definitions, target: this.#target, directory, audit, clock, log }))
  }

  /** For the approvers of a run that ended without the approved change. */
  async mailsToDeciders(run: string, write: (texts: Texts) => string): Promise<readonly NewMail[]> {
    return (await this.#approvals.mailsToDeciders?.(run, write)) ?? []
  }

  /** Executes steps of a stored run up to the next commit. */
  step(state: RunProgress, keeper: RunKeeper): Promise<ExecutedSteps> {
    return this.#counted(state.head.workflow, () => executeSteps(state, this.#stepParts, keeper))
  }

  /** Waits for running calls, then closes the tasks. */
  async close(): Promise<void> {
    this.#closing = true
    if (this.#active > 0) await this.#drain()
    await this.#scope.close()
  }

  /** The value of the call, or else of the workflow. */
  #deadlineOf({ head: { deadline } }: WorkflowCall, { deadline: span }: Definition): Date | undefined {
    return deadline ?? (span === undefined ? undefined : addSpan(this.#services.clock(), span))
  }

  readonly #target = (name: string): Target => this.#host.targets.get(name)

  /** Tasks may also name something other than a target, such as themselves. */
  #auditsWithin(target: string): boolean {
    const known = this.#auditing.get(target)
    if (known !== undefined) return known
    try {
      const audits = this.#target(target).auditsWithin ?? false
      this.#auditing.set(target, audits)
      return audits
    } catch {
      return false
    }
  }

  async #counted<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (this.#closing) throw new GatewayError('SHUTTING_DOWN', `workflow "${name}" came too late`)
    this.#active++
    try {
      return await work()
    } finally {
      this.#active--
      if (this.#active === 0) this.#drained?.()
    }
  }

  #drain(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#services.log.warn('closing the old configuration while runs are still active', { runs: this.#active })
        resolve()
      }, drainMillis)
      this.#drained = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

export const accepted = (id: string): WorkflowResult => ({ id, status: 'accepted', changes: 0 })

/** How many runs may start one another: a workflow that starts itself must end. */
const maxDepth = 16

/**
 * The run of a call, before its first step. Copies the caller's user. Throws BAD_REQUEST, and WORKFLOW_FAILED if
 * too many runs started one another.
 */
export function runOf(call: WorkflowCall, definition: Definition, pins: Pins, deadline?: Date): RunProgress {
  if (call.user.userID === '') throw new GatewayError('BAD_REQUEST', 'a workflow was called for a user without a login')
  if (call.newUserID === '') throw new GatewayError('BAD_REQUEST', 'a workflow was called for an empty new login')
  const { session, newAccount, bound, depth = 0 } = call
  if (depth > maxDepth) {
    const text = `workflow "${call.head.workflow}" was not started: more than ${maxDepth} runs started one another`
    throw new GatewayError('WORKFLOW_FAILED', text)
  }
  const id = newId()
  const request = createRequestMap(call.params)
  request.set('WORKFLOW_ID', id)
  const span = tracer?.current()
  return {
    head: {
      ...call.head,
      id,
      definition: definition.hash,
      subject: call.head.subject ?? call.user.userID,
      who: call.head.who ?? {},
      deadline,
      accessEnds: expiryIn(request),
    },
    session,
    trace: span === undefined ? undefined : writeTraceparent(span.context),
    user: workflowUser(call),
    request,
    frames: [rootFrame(definition)],
    pins,
    steps: 0,
    ...(depth === 0 ? {} : { depth }),
    bound,
    newAccount: newAccount === undefined ? undefined : { ...newAccount, created: [...(newAccount.created ?? [])] },
  }
}

/**
 * A run that a step of another run starts: one level deeper, with the same caller, and bound to the same user or
 * new account.
 */
export const startedCall = (
  call: WorkflowCall,
  { depth = 0, head, newAccount, bound }: Pick<RunProgress, 'depth' | 'head' | 'newAccount' | 'bound'>,
) => ({
  ...call,
  head: {
    ...call.head,
    caller: call.head.caller ?? head.caller,
    who: { ...inherited(call, head), ...call.head.who },
  },
  ...(newAccount === undefined ? {} : { newAccount }),
  ...(bound === undefined ? {} : { bound }),
  depth: depth + 1,
})

/** Logins that the starting run knows keep their identities. */
function inherited(call: WorkflowCall, { who, requester, subject }: RunHead): RunIdentities {
  const sameSubject = (call.head.subject ?? call.user.userID) === subject
  return {
    requester: call.head.requester === requester ? who.requester : undefined,
    caller: who.caller,
    subject: sameSubject ? who.subject : undefined,
  }
}

function workflowUser(call: WorkflowCall): WorkflowUser {
  const { head, user, password, newUserID, basedOn } = call
  return {
    userID: user.userID,
    attributes: Attributes.from(user.attributes),
    groups: [...user.groups],
    keepGroups: call.keepGroups ?? false,
    groupChanges: call.groupChanges,
    id: user.id,
    cleared: call.cleared,
    newUserID,
    basedOn: basedOn === undefined ? undefined : new Map([[basedOn.target, basedOn]]),
    requestReason: head.reason,
    password,
  }
}

const maxKeys = 256
const maxKeyLength = 256

/** How a run is executed; the only engine key that a caller may set. */
const execType = 'UNISON.EXEC.TYPE'
const synchronous = 'UNISON.EXEC.SYNC'
const asynchronous = 'UNISON.EXEC.ASYNC'

/** The request map of a run from what the caller passed. Throws BAD_REQUEST for engine keys and for too many keys. */
export function createRequestMap(params: Readonly<Record<string, string>>): RequestMap {
  const map: RequestMap = new Map()
  for (const key of Object.keys(params)) {
    if (map.size >= maxKeys) throw refused(`more than ${maxKeys} request parameters`)
    if (key.length === 0 || key.length > maxKeyLength) throw refused('a request parameter without a usable name')
    const value = params[key]
    if (typeof value !== 'string') throw refused(`request parameter "${key}" is not text`)
    if (key === execType) requireExecType(value)
    else if (isEngineKey(key)) throw refused(`request parameter "${key}" is a key of the engine`)
    map.set(key, value)
  }
  return map
}

/** The value of the call, or else of its request parameter; synchronous by default. */
export function isAsynchronous({ asynchronous: said, params }: Pick<WorkflowCall, 'asynchronous' | 'params'>): boolean {
  return said ?? (Object.hasOwn(params, execType) && params[execType] === asynchronous)
}

function requireExecType(value: string): void {
  if (value !== synchronous && value !== asynchronous) throw refused(`"${value}" is not an execution type`)
}

const refused = (detail: string): GatewayError =>
  new GatewayError('BAD_REQUEST', detail, { publicText: 'A request parameter is not allowed.' })
