import type { RunState } from '#domain/run.ts'

/** A time in parts of one length. The first begins with `from`; the last is cut off by `to`, which is no part of it. */
export interface StatisticsSpan {
  readonly from: Date
  readonly to: Date
  readonly partMillis: number
}

export interface StatisticsQuery extends StatisticsSpan {
  /** Journals whose calls are counted; all when absent, and none for an empty list. */
  readonly journals?: readonly string[]
  /** Of the workflows and callers with most, so many. */
  readonly most: number
}

/** Which part, from 0. Parts in which nothing happened are left out. */
export interface InPart {
  readonly part: number
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

/** By the token service, and by our own issuers. */
export interface TokenCounts {
  readonly stsIssued: number
  readonly stsRefused: number
  readonly issuerIssued: number
  readonly issuerRefused: number
}

export interface StatisticsCounts {
  /** By the time they began, with the state that they are in now. */
  readonly requests: readonly (InPart & RunCounts)[]
  /** Those with most first. */
  readonly workflows: readonly ({ readonly name: string } & RunCounts)[]
  /** By the time they were opened; of those, how many went to others since because nobody decided. */
  readonly opened: readonly (InPart & { readonly opened: number; readonly escalated: number })[]
  /** By the time of the decision. */
  readonly decided: readonly (InPart & { readonly approved: number; readonly denied: number })[]
  /** How long those that were decided had been open: the median, of each part and of all. */
  readonly decisionMillis: readonly (InPart & { readonly median: number })[]
  readonly decisionMillisOfAll?: number
  readonly tokens: readonly (InPart & TokenCounts)[]
  readonly calls: readonly (InPart & CallCounts)[]
  /** Those with most first. */
  readonly callers: readonly ({ readonly journal: string; readonly caller: string } & CallCounts)[]
}

export interface StatisticsStore {
  /** The database counts, by its indexes: what it costs grows with what happened in the time, not with what is kept. */
  count(query: StatisticsQuery): Promise<StatisticsCounts>
}
