import type { Configuration } from '#config/configuration/configuration.ts'
import { createAt } from '#config/configuration/create-at.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { buildScoped, type Closable, type Scope } from '#kernel/scope.ts'
import { addSpan } from '#kernel/time.ts'
import { type Tracer, tracer } from '#kernel/tracing.ts'
import type { MailChoices } from '#mail/mail-choices.ts'
import { portalLinks } from '#mail/mail-links.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type { Texts } from '#sdk/page/page-texts.ts'
import { accountExists, accountNamed, takenValues } from '#sdk/target/new-account.ts'
import type { Target } from '#sdk/target/target.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import type { WorkflowCall, WorkflowResult, WorkflowStarter } from '#sdk/workflow/workflow.ts'
import type { TaskHost } from '#sdk/workflow/workflow-task.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { ExistingAccount } from '#workflows/approvals/approval-access.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'
import { createDefinition, type Definition, Definitions } from '#workflows/definitions/definitions.ts'
import { withExpiry } from '#workflows/definitions/expiry-parameter.ts'
import { type PreviewCalls, previewRun } from '#workflows/preview/preview-run.ts'
import { UnreadableTarget } from '#workflows/preview/preview-target.ts'
import {
  type ExecutedSteps,
  executeSteps,
  type RunKeeper,
  type StepFailure,
  type StepParts,
} from '#workflows/steps/execute-steps.ts'
import { type FoundChanges, findPlannedChanges, type PlannedChange } from '#workflows/steps/planned-changes.ts'
import type { RunMailing } from '#workflows/steps/run-effects.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import { deadlineTimer } from '#workflows/steps/run-timers.ts'
import { createTargetMappings, withMappings } from '#workflows/steps/target-mappings.ts'
import { maySkip } from '#workflows/steps/walk.ts'
import type { ApprovalOpener, WorkflowServices } from '#workflows/steps/workflow-services.ts'
import type { IdempotencyKey } from '#workflows/store/idempotency-store.ts'
import type { NewRun, RunEffects } from '#workflows/store/run-commit.ts'
import type { StartOutcome } from '#workflows/store/run-store.ts'
import { CallExecution, type CallParts, resultToJson } from './call-execution.ts'
import { isPassing } from './retry-policy.ts'
import { isAsynchronous, runOf, startedCall } from './run-call.ts'
import { newRunOf, placeOf, restoreRun, saveRun } from './saved-run.ts'

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
    for (const [name, config] of configuration.workflows) {
      const { at } = config
      created.set(name, await createAt(at, () => createDefinition(config, taskHost(name, at), scope)))
    }
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

export interface AccountConflicts {
  readonly existing: ExistingAccount
  /** Why the run would be refused; absent if nothing exists. */
  readonly error?: GatewayError
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

  /** Finds out by reading which planned changes were made. Throws errors of targets. */
  async find(
    plannedChanges: readonly PlannedChange[],
    run: { readonly id: string; readonly name: string },
  ): Promise<FoundChanges> {
    const { log } = this.#services
    return await this.#counted(run.name, () =>
      findPlannedChanges(plannedChanges, { target: this.#target, workflow: run, log }),
    )
  }

  /** Shows what would follow if the run continued from here. Consumes `state`; see `previewRun`. */
  preview(state: RunProgress, calls: PreviewCalls = {}): Promise<Preview> {
    const { clock, log } = this.#services
    const { directory } = this.#host
    const { definitions } = this.#stepParts
    return this.#counted(state.head.workflow, () =>
      previewRun(state, { definitions, target: this.#target, directory, clock, log, ...calls }),
    )
  }

  /**
   * The first step that would be refused, as far as targets show it before they are changed; undefined if there is none.
   * Only runs that write several targets are previewed for it: a single target refuses its first write just as early.
   */
  async refusalOf(state: RunProgress): Promise<StepFailure | undefined> {
    if (state.newAccount !== undefined || !this.#definitions.writesOf(state.head.workflow).severalTargets)
      return undefined
    let failure: StepFailure | undefined
    const onFailure = (found: StepFailure): void => {
      failure = found
    }
    try {
      await this.preview(restoreRun(state.head, saveRun(state)), { onFailure })
    } catch {
      // The run itself fails in the same way.
      return undefined
    }
    return failure !== undefined && isRefusal(failure.error) ? failure : undefined
  }

  /**
   * What already exists of the account that the run should create: unique values in the directory, and whether a
   * target would refuse it if the run continued from here. Undefined if the run may also change accounts, or has
   * begun to create. The run itself does not advance. Throws errors of the directory; a target that does not answer
   * is skipped here, and the write asks it again.
   */
  async accountConflicts(state: RunProgress): Promise<AccountConflicts | undefined> {
    const { id } = state.head
    const { newAccount } = state
    if (newAccount === undefined || newAccount.created.length > 0 || state.plannedChanges !== undefined)
      return undefined
    // An account that an interrupted attempt created is in the directory, and is not a conflict.
    const { rows } = await this.#services.audit.list({ workflowId: id, limit: 500 })
    if (rows.some(({ kind, action, target }) => kind === 'entry' && action === 'add' && target !== ownTarget)) {
      return undefined
    }
    const { userID } = state.user
    const taken = await takenValues(this.#host.directory, newAccount.unique)
    const refused: GatewayError[] = []
    const copy = restoreRun(state.head, saveRun(state))
    await this.preview(copy, { onAccountExists: (error) => refused.push(error) })
    const others = taken.filter(({ value }) => !sameLogin(value, userID))
    const login = others.length < taken.length || refused.length > 0
    const [other] = others
    // The preview may have "created" other accounts before; the run itself has not.
    const error = login
      ? accountExists(accountNamed(userID), [])
      : other && accountExists(`with this ${other.attribute}`, [])
    return { existing: { login, attributes: others.map(({ attribute }) => attribute) }, ...(error && { error }) }
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

/** Another attempt can't help, or needs a newer version of what the run is based on. */
const isRefusal = (error: GatewayError): boolean =>
  error instanceof UnreadableTarget ||
  (error.isRefusal && (!isPassing(error.code) || error.code === 'VERSION_MISMATCH'))

export const accepted = (id: string): WorkflowResult => ({ id, status: 'accepted', changes: 0 })
