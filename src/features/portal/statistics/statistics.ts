import type { RunState } from '#workflows/record/run.ts'

export interface StatisticsQuery {
  readonly from: Date
  /** Exclusive. */
  readonly to: Date
  /** Counts are per interval of this length. The first interval begins at `from`; `to` cuts off the last. */
  readonly partMillis: number
  /** The journals whose calls are counted: all if absent, none for an empty list. */
  readonly journals?: readonly string[]
}

export type RunCounts = Readonly<Record<RunState, number>>

export interface CallCounts {
  /** Status below 400. */
  readonly answered: number
  /** Status from 400 to 499. */
  readonly refused: number
  /** Status 500 and above. */
  readonly failed: number
}
