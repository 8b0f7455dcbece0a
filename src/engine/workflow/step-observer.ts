/** One execution of one task, whatever came of it. */
export interface ExecutedStep {
  readonly workflow: string
  readonly taskType: string
  /** `next`, `branch`, `call`, `wait`, `stop`, or `failed` for one attempt that threw. */
  readonly outcome: string
  readonly millis: number
}

/** Told of every step, in the process that executed it and after its commit. Neither throws nor does any I/O. */
export interface StepObserver {
  executed(step: ExecutedStep): void
  /** A run was claimed that had been due for so long: the age of the queue, as runs see it. */
  claimed(waitedMillis: number): void
}

export const noStepObserver: StepObserver = { executed() {}, claimed() {} }
