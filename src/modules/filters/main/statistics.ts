import type { Statistics } from '#contract/main-admin.ts'
import { GatewayError } from '#kernel/errors.ts'
import { parseMoment } from '#kernel/moment.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import { answer, badRequest, emptyAnswer } from './answer.ts'
import type { MainParts } from './main-parts.ts'
import { readQuery } from './routes.ts'

const hourMillis = 3_600_000

/** How long a part is, and how many there are unless it is said where they begin. */
const lengths = {
  hour: { millis: hourMillis, usual: 24 },
  day: { millis: 24 * hourMillis, usual: 30 },
} as const
type Length = keyof typeof lengths

const isLength = (word: string): word is Length => Object.hasOwn(lengths, word)

/** What happened over time in the whole installation; who may see it is found out by the caller. */
export async function answerStatistics(
  { settings, host }: Pick<MainParts, 'settings' | 'host'>,
  { request }: Pick<Exchange, 'request'>,
): Promise<GatewayResponse> {
  const { method, query } = request
  if (method !== 'GET' && method !== 'HEAD') {
    throw new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow: 'GET, HEAD' } })
  }
  const { by, from, to } = readSpan(query, host.clock())
  const { scimJournals: journals } = settings.given
  const counted = await host.readStatistics({
    from,
    to,
    partMillis: lengths[by].millis,
    ...(journals.length === 0 ? {} : { journals }),
  })
  const { parts, decisionMillis, workflows, callers } = counted
  if (method === 'HEAD') return emptyAnswer(200)
  return answer({
    from: from.toISOString(),
    to: to.toISOString(),
    by,
    parts: parts.map(({ from: begins, calls: scim, ...part }) => ({ ...part, from: begins.toISOString(), scim })),
    ...(decisionMillis === undefined ? {} : { decisionMillis }),
    workflows,
    scimClients: callers.map(({ journal, caller, calls }) => ({ gateway: journal, client: caller, calls })),
  } satisfies Statistics)
}

function readSpan(query: URLSearchParams, now: Date): { readonly by: Length; readonly from: Date; readonly to: Date } {
  const given = readQuery(query, ['from', 'to', 'by'])
  const [by = 'day'] = given.by
  if (!isLength(by)) throw badRequest('by must be hour or day.')
  const { millis, usual } = lengths[by]
  const to = readMoment('to', given.to, now) ?? now
  const from = readMoment('from', given.from, now) ?? new Date(to.getTime() - usual * millis)
  return { by, from, to }
}

function readMoment(name: string, [text]: readonly string[], now: Date): Date | undefined {
  if (text === undefined) return undefined
  const moment = parseMoment(text, now)
  if (moment === undefined) throw badRequest(`${name} must be such as 15m, 1h or 7d, or an ISO 8601 date.`)
  return moment
}
