import type { StepRecord } from '#domain/run.ts'
import { type Position, positionText } from '#engine/workflow/walk.ts'

interface Entry {
  readonly number: number
  readonly position: Position
  readonly started: number
  readonly ended: number
  readonly outcome: string
  readonly error?: string
}

/** The executed steps, for the timeline; formatted on demand. */
export class StepLog {
  readonly #entries: Entry[] = []
  #taken = 0

  add(entry: Entry): void {
    this.#entries.push(entry)
  }

  /** Steps that were not taken yet; `attempt` is that of the first of all. */
  take(attempt: number): StepRecord[] {
    const from = this.#taken
    this.#taken = this.#entries.length
    return this.#entries.slice(from).map(({ number, position, started, ended, outcome, error }, i) => ({
      number,
      attempt: from + i === 0 ? attempt : 1,
      task: positionText(position),
      taskType: position.step.taskType,
      started: new Date(started),
      ended: new Date(ended),
      outcome,
      ...(error === undefined ? {} : { error: error.slice(0, 1_000) }),
    }))
  }

  report(observer: StepObserver, workflow: string): void {
    for (const { position, outcome, started, ended } of this.#entries) {
      observer.executed({ workflow, taskType: position.step.taskType, outcome, millis: ended - started })
    }
  }
}

/** One execution of one task, even if it failed. */
interface ExecutedStep {
  readonly workflow: string
  readonly taskType: string
  /** `next`, `branch`, `call`, `wait`, `stop`, or `failed` for an attempt that threw. */
  readonly outcome: string
  readonly millis: number
}

/** Notified of every step after its commit, in the process that executed it. Must not throw or do I/O. */
export interface StepObserver {
  executed(step: ExecutedStep): void
  /** A run was claimed that had been due for this long: the age of the queue. */
  claimed(waitedMillis: number): void
}

export const noStepObserver: StepObserver = { executed() {}, claimed() {} }
