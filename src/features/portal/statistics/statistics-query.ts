import type { CallCounts, RunCounts, StatisticsQuery } from './statistics.ts'

interface TokenCounts {
  readonly issued: number
  readonly refused: number
}

/** The figures of one interval. */
export interface StatisticsPart {
  readonly from: Date
  /** By the time they began, with their current phase. */
  readonly requests: RunCounts
  readonly approvals: {
    readonly opened: number
    /** How many of the opened ones were passed to others because no one decided. */
    readonly escalated: number
    readonly approved: number
    readonly denied: number
    /** The median time from opening to approval or denial. */
    readonly decisionMillis?: number
  }
  readonly tokens: { readonly sts: TokenCounts; readonly issuers: TokenCounts }
  readonly calls: CallCounts
}

/** The figures of a time span. */
export interface Statistics {
  /** Every interval of the time span, oldest first. */
  readonly parts: readonly StatisticsPart[]
  /** The median of the whole time span. */
  readonly decisionMillis?: number
  /** Those with the most first, at most 10. */
  readonly workflows: readonly { readonly name: string; readonly requests: RunCounts }[]
  readonly callers: readonly { readonly journal: string; readonly caller: string; readonly calls: CallCounts }[]
}

/** Throws BAD_REQUEST for a time span that ends before it begins, or that has more than 400 intervals. */
export type ReadStatistics = (query: StatisticsQuery) => Promise<Statistics>
