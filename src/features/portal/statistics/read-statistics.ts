import type { Journals } from '#features/scim/journal/journals.ts'
import { GatewayError } from '#kernel/errors.ts'
import { runStates } from '#workflows/record/run.ts'
import type { CallCounts, RunCounts, StatisticsQuery } from './statistics.ts'
import type { ReadStatistics, Statistics, StatisticsPart } from './statistics-query.ts'
import type { InPart, StatisticsCounts, StatisticsStore } from './statistics-store.ts'

const maxParts = 400
const mostNames = 10

/** Adds the parts without counts to those of the database. Writes the journals first, so that all calls are counted. */
export const createStatistics =
  (store: Pick<StatisticsStore, 'count'>, journals: Pick<Journals, 'write'>): ReadStatistics =>
  async (query) => {
    const parts = countParts(query)
    await journals.write()
    return toStatistics(query, parts, await store.count({ ...query, most: mostNames }))
  }

function countParts({ from, to, partMillis }: StatisticsQuery): number {
  const parts = Math.ceil((to.getTime() - from.getTime()) / partMillis)
  if (parts >= 1 && parts <= maxParts) return parts
  const publicText = `from must be before to, by at most ${maxParts} hours or days.`
  throw new GatewayError('BAD_REQUEST', `${parts} parts of ${partMillis} ms`, { publicText })
}

function toStatistics(query: StatisticsQuery, parts: number, counts: StatisticsCounts): Statistics {
  const requests = byPart(counts.requests)
  const opened = byPart(counts.opened)
  const decided = byPart(counts.decided)
  const medians = byPart(counts.decisionMillis)
  const tokens = byPart(counts.tokens)
  const calls = byPart(counts.calls)
  const partAt = (part: number): StatisticsPart => {
    const median = medians.get(part)?.median
    const given = tokens.get(part)
    return {
      from: new Date(query.from.getTime() + part * query.partMillis),
      requests: runCounts(requests.get(part)),
      approvals: {
        opened: opened.get(part)?.opened ?? 0,
        escalated: opened.get(part)?.escalated ?? 0,
        approved: decided.get(part)?.approved ?? 0,
        denied: decided.get(part)?.denied ?? 0,
        ...(median === undefined ? {} : { decisionMillis: median }),
      },
      tokens: {
        sts: { issued: given?.stsIssued ?? 0, refused: given?.stsRefused ?? 0 },
        issuers: { issued: given?.issuerIssued ?? 0, refused: given?.issuerRefused ?? 0 },
      },
      calls: callCounts(calls.get(part)),
    }
  }
  const { decisionMillisOfAll } = counts
  return {
    parts: Array.from({ length: parts }, (_, part) => partAt(part)),
    ...(decisionMillisOfAll === undefined ? {} : { decisionMillis: decisionMillisOfAll }),
    workflows: counts.workflows.map((row) => ({ name: row.name, requests: runCounts(row) })),
    callers: counts.callers.map((row) => ({ journal: row.journal, caller: row.caller, calls: callCounts(row) })),
  }
}

const byPart = <T extends InPart>(rows: readonly T[]): ReadonlyMap<number, T> =>
  new Map(rows.map((row) => [row.part, row]))

const runCounts = (row: RunCounts | undefined): RunCounts =>
  Object.fromEntries(runStates.map((state) => [state, row?.[state] ?? 0])) as RunCounts

const callCounts = (row: CallCounts | undefined): CallCounts => ({
  answered: row?.answered ?? 0,
  refused: row?.refused ?? 0,
  failed: row?.failed ?? 0,
})
