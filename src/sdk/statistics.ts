import type { RunState } from '#domain/run.ts'

export interface StatisticsQuery {
  readonly from: Date
  /** No part of the time. */
  readonly to: Date
  /** The time is counted in parts of this length, of which the first begins with `from`. */
  readonly partMillis: number
  /** Journals whose calls are counted; all when absent, and none for an empty list. */
  readonly journals?: readonly string[]
}

export type RunCounts = Readonly<Record<RunState, number>>

export interface CallCounts {
  /** With a status below 400. */
  readonly answered: number
  /** From 400 to 499. */
  readonly refused: number
  /** From 500 on. */
  readonly failed: number
}

export interface TokenCounts {
  readonly issued: number
  readonly refused: number
}

export interface StatisticsPart {
  readonly from: Date
  /** By the time they began, with the phase that they are in now. */
  readonly requests: RunCounts
  readonly approvals: {
    readonly opened: number
    /** Of those opened, how many went to others since, because nobody decided. */
    readonly escalated: number
    readonly approved: number
    readonly denied: number
    /** How long those that were approved or denied had been open: the median. */
    readonly decisionMillis?: number
  }
  readonly tokens: { readonly sts: TokenCounts; readonly issuers: TokenCounts }
  readonly calls: CallCounts
}

export interface Statistics {
  /** Every part of the time, oldest first. */
  readonly parts: readonly StatisticsPart[]
  /** The median of the whole time. */
  readonly decisionMillis?: number
  /** Those with most first, at most 10. */
  readonly workflows: readonly { readonly name: string; readonly requests: RunCounts }[]
  readonly callers: readonly { readonly journal: string; readonly caller: string; readonly calls: CallCounts }[]
}

/** Throws BAD_REQUEST for a time that ends before it begins, or that has more than 400 parts. */
export type ReadStatistics = (query: StatisticsQuery) => Promise<Statistics>
