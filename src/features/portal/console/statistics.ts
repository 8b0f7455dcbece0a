import type { StatisticsView } from '#features/portal/contract/main-admin.ts'
import type { MainParts } from '#features/portal/front/main-parts.ts'
import { readTime } from '#features/portal/runs/list-answer.ts'
import { answer, badRequest } from '#sdk/api/json-answer.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

const hourMillis = 3_600_000

/** The parts of statistics: their length, and their default number. */
const lengths = {
  hour: { millis: hourMillis, usual: 24 },
  day: { millis: 24 * hourMillis, usual: 30 },
} as const
type Length = keyof typeof lengths

const isLength = (word: string): word is Length => Object.hasOwn(lengths, word)

export const statisticsOperations = {
  getStatistics: {
    summary: 'Counts of requests, approvals, tokens and SCIM calls',
    query: { from: 'ISO 8601', to: 'ISO 8601', by: '"hour" or "day"' },
    answer: 'Statistics',
    handle: showStatistics,
  },
} satisfies OperationTable<MainParts>

/** Statistics of the whole installation. */
async function showStatistics({ settings, host }: MainParts, { request }: Exchange): Promise<GatewayResponse> {
  const { by, from, to } = readSpan(request.query, host.clock())
  const { scimJournals: journals } = settings.given
  const counted = await host.readStatistics({
    from,
    to,
    partMillis: lengths[by].millis,
    ...(journals.length === 0 ? {} : { journals }),
  })
  const { parts, decisionMillis, workflows, callers } = counted
  return answer({
    from: from.toISOString(),
    to: to.toISOString(),
    by,
    parts: parts.map(({ from: begins, calls: scim, ...part }) => ({ ...part, from: begins.toISOString(), scim })),
    ...(decisionMillis === undefined ? {} : { decisionMillis }),
    workflows,
    scimClients: callers.map(({ journal, caller, calls }) => ({ gateway: journal, client: caller, calls })),
  } satisfies StatisticsView)
}

function readSpan(query: URLSearchParams, now: Date): { readonly by: Length; readonly from: Date; readonly to: Date } {
  const given = readQuery(query, ['from', 'to', 'by'])
  const [by = 'day'] = given.by
  if (!isLength(by)) throw badRequest('by must be hour or day.')
  const { millis, usual } = lengths[by]
  const to = readTime('to', given.to, now) ?? now
  const from = readTime('from', given.from, now) ?? new Date(to.getTime() - usual * millis)
  return { by, from, to }
}
