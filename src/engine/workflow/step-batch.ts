import type { AuditPlace, AuditTrail } from '#engine/provisioning/audit-trail.ts'
import { type Intent, intentsOf, intentsToJson, isRefusedCall, unreported } from '#engine/workflow/intents.ts'
import { CollectedEffects, type StepRequests } from '#engine/workflow/run-effects.ts'
import { messageOf, taskOf } from '#engine/workflow/run-failure.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { prepareWait, type Waiting } from '#engine/workflow/run-timers.ts'
import { type SavedRun, saveRun } from '#engine/workflow/saved-run.ts'
import { auditTrail, stepContext } from '#engine/workflow/step-context.ts'
import { StepLog } from '#engine/workflow/step-log.ts'
import {
  beginStep,
  type DefinitionOf,
  endStep,
  nextPosition,
  type Position,
  positionText,
} from '#engine/workflow/walk.ts'
import type { ApprovalOpener, WorkflowServices } from '#engine/workflow/workflow-services.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import type { TaskOutcome } from '#sdk/workflow/workflow-task.ts'

/** How a batch ended; `failed` is about the last step, and the state is the one before that step. */
export type BatchEnd =
  | { readonly kind: 'on' }
  | { readonly kind: 'end' }
  | { readonly kind: 'wait'; readonly waiting: Waiting }
  | { readonly kind: 'failed'; readonly error: unknown; readonly task: string }

/** What to commit together. */
export interface StepBatch {
  readonly end: BatchEnd
  /** The state to continue from, or to retry the failed step from. */
  readonly saved: SavedRun
  readonly trail: AuditTrail
  /** Planned changes of an earlier attempt that were made. */
  readonly confirmed: readonly Intent[]
  readonly requests: readonly StepRequests[]
  readonly log: StepLog
  /** The task that timed out; its later changes are added to the trail. */
  readonly abandoned?: Promise<void>
}

/** The claim that the batch is executed under. */
export interface BatchControl {
  readonly deadline: Date | undefined
  readonly abort: AbortSignal
  /** Commits the run before a step calls a target. Throws when the claim is lost. */
  intend(saved: SavedRun, log: StepLog): Promise<void>
}

export interface BatchParts extends BatchControl {
  readonly services: WorkflowServices
  readonly definitions: DefinitionOf
  readonly approvals: ApprovalOpener
  auditsWithin(target: string): boolean
}

/** Steps that share a commit because none of them has effects outside the run. */
const maxQuiet = 64
/** Custom tasks may do anything, so each is followed by a commit. */
const loudTasks: ReadonlySet<string> = new Set(['customTask'])

/**
 * Executes the next step, and, while nothing but the run itself has changed, the steps after it: repeating such
 * steps after a crash changes nothing, so they need no separate commit. Does not throw errors of tasks.
 */
export async function executeBatch(state: RunProgress, parts: BatchParts): Promise<StepBatch> {
  const { services, definitions, approvals, deadline, abort } = parts
  const trail = auditTrail(state, services.audit)
  const log = new StepLog()
  const requests: StepRequests[] = []
  const earlier = state.intents ?? []
  let confirmed: readonly Intent[] = []
  const finish = (end: BatchEnd, saved: SavedRun): StepBatch => ({ end, saved, trail, confirmed, requests, log })
  let before = saveRun(state)
  let step: StepRun | undefined
  const intend = (own: readonly Intent[]): Promise<void> =>
    parts.intend(withIntents(before, [...(state.intents ?? []), ...own]), log)
  try {
    for (let quiet = 0; quiet < maxQuiet; quiet++) {
      const position = nextPosition(state, definitions)
      if (position === undefined) return finish({ kind: 'end' }, saveRun(state))
      beginStep(state)
      step = new StepRun(state, position, { services, abort, auditsWithin: parts.auditsWithin, intend }, trail)
      const outcome = await step.run()
      const wait = endStep(state, position, outcome, definitions)
      const waiting = wait && (await prepareWait(state, wait, approvals, deadline))
      log.add(step.entry(outcome.kind))
      if (!step.effects.isEmpty) requests.push({ step: step.number, effects: step.effects })
      if (quiet === 0) confirmed = unreported(earlier, trail.rows)
      delete state.intents
      if (waiting !== undefined) return finish({ kind: 'wait', waiting }, saveRun(state))
      if (isLoud(step)) break
      before = saveRun(state)
      step = undefined
    }
    const end: BatchEnd = nextPosition(state, definitions) === undefined ? { kind: 'end' } : { kind: 'on' }
    return finish(end, saveRun(state))
  } catch (error) {
    if (step !== undefined) log.add(step.entry('failed', messageOf(error)))
    const open = [...(state.intents ?? []), ...(step === undefined || isRefusedCall(error) ? [] : step.intents)]
    const end: BatchEnd = { kind: 'failed', error, task: step?.task ?? taskOf(state) }
    const kept = open.length > 0 ? withIntents(before, open) : trail.count > 0 ? withoutVersions(before) : before
    const failed = finish(end, kept)
    return step?.abandoned === undefined ? failed : { ...failed, abandoned: step.abandoned }
  }
}

/** Something happened, or may have, that should not be repeated without need. */
const isLoud = (step: StepRun): boolean => step.calledTarget || !step.effects.isEmpty || loudTasks.has(step.taskType)

const withIntents = (saved: SavedRun, intents: readonly Intent[]): SavedRun => {
  const { data, ...secret } = withoutVersions(saved)
  return { ...secret, data: { ...data, intents: intentsToJson(intents) } }
}

/** What an attempt has changed, or may have, has a new version, so versions read before it no longer bind. */
const withoutVersions = (saved: SavedRun): SavedRun => {
  const versions = saved.data['versions']
  const empty = Array.isArray(versions) ? versions.map(() => []) : []
  return { ...saved, data: { ...saved.data, versions: empty } }
}

interface StepRunParts {
  readonly services: WorkflowServices
  readonly abort: AbortSignal
  /** The target's changes and their audit are one commit, so planned changes need not be stored. */
  auditsWithin(target: string): boolean
  /** Stores the planned changes of this step; resolves when they are durable. */
  intend(intents: readonly Intent[]): Promise<void>
}

/** One execution of one task of a stored run. */
class StepRun {
  readonly number: number
  readonly effects = new CollectedEffects()
  readonly intents: Intent[] = []
  readonly #state: RunProgress
  readonly #position: Position
  readonly #parts: StepRunParts
  readonly #trail: AuditTrail
  readonly #started = Date.now()
  #calledTarget = false
  #abandoned: Promise<void> | undefined

  constructor(state: RunProgress, position: Position, parts: StepRunParts, trail: AuditTrail) {
    this.number = state.steps
    this.#state = state
    this.#position = position
    this.#parts = parts
    this.#trail = trail
  }

  get taskType(): string {
    return this.#position.step.taskType
  }

  get task(): string {
    return positionText(this.#position)
  }

  get calledTarget(): boolean {
    return this.#calledTarget
  }

  /** The task, if it timed out. */
  get abandoned(): Promise<void> | undefined {
    return this.#abandoned
  }

  entry(outcome: string, error?: string) {
    const { number } = this
    const ended = { number, position: this.#position, started: this.#started, ended: Date.now(), outcome }
    return error === undefined ? ended : { ...ended, error }
  }

  async run(): Promise<TaskOutcome> {
    const { abort, services } = this.#parts
    abort.throwIfAborted()
    const work = this.#start()
    const outcome = await untilAborted(work, abort, () => {
      this.#abandoned = work.then(
        () => {},
        () => {},
      )
    })
    if (this.#calledTarget) services.crash('after-target-call')
    return outcome
  }

  async #start(): Promise<TaskOutcome> {
    const { services, abort } = this.#parts
    const { log, clock, audit } = services
    const context = {
      log,
      clock,
      audit,
      trail: this.#trail,
      effects: this.effects,
      abort,
      onTarget: () => {
        this.#calledTarget = true
      },
      auditsWithin: (target: string) => this.#parts.auditsWithin(target),
      intend: (place: AuditPlace, changes: readonly TargetChange[]) => this.#intend(place, changes),
    }
    return await this.#position.step.task.run(stepContext(this.#state, this.#position, context))
  }

  async #intend(place: AuditPlace, changes: readonly TargetChange[]): Promise<void> {
    if (changes.length === 0) return
    this.intents.push(...intentsOf(this.#trail, place, changes))
    await this.#parts.intend(this.intents)
  }
}

/** A task that ignores the signal is not waited for. */
async function untilAborted<T>(work: Promise<T>, abort: AbortSignal, onAbandon: () => void): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => {
    onAbandon()
    reject(abort.reason)
  }
  abort.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    abort.removeEventListener('abort', onAbort)
  }
}
