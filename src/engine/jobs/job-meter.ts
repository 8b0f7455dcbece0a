/** `left`: the process ended or lost the run, and another takes it over. */
export type JobRunOutcome = 'done' | 'failed' | 'left'

export interface JobMeter {
  ended(job: string, outcome: JobRunOutcome, millis: number): void
}

export const noJobMeter: JobMeter = { ended() {} }
