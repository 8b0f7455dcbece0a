import type { AuditPlace, AuditTrail } from '#engine/provisioning/audit-trail.ts'
import { CollectedEffects } from '#engine/workflow/collected-effects.ts'
import { type Intent, intentsOf } from '#engine/workflow/intents.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { stepContext } from '#engine/workflow/step-context.ts'
import { type Position, positionText } from '#engine/workflow/walk.ts'
import type { WorkflowServices } from '#engine/workflow/workflow-services.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import type { TaskOutcome } from '#sdk/workflow/workflow-task.ts'

export interface StepRunParts {
  readonly services: WorkflowServices
  readonly abort: AbortSignal
  /** The target's changes and their audit are one commit, so that none need be written down before. */
  auditsWithin(target: string): boolean
  /** Writes down what this step is about to change; settles when that is durable. */
  intend(intents: readonly Intent[]): Promise<void>
}

/** One execution of one task of a stored run. */
export class StepRun {
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

  /** The task, where it was not waited for any longer. */
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

/** A task that does not listen to the signal is not waited for. */
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
