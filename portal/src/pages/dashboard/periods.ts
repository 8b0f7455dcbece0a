import type { StatisticsView } from '#features/portal/contract/main-admin.ts'
import type { MessageKey } from '../../app/messages.ts'

const hour = 60 * 60_000
const lengths = { hour, day: 24 * hour } as const

type By = StatisticsView['by']

/** Periods, each with as many parts as a chart has room for. */
export const periods = {
  '24h': { label: 'dashboard.day', by: 'hour', parts: 24 },
  '7d': { label: 'dashboard.week', by: 'day', parts: 7 },
  '30d': { label: 'dashboard.month', by: 'day', parts: 30 },
} as const satisfies Readonly<Record<string, { readonly label: MessageKey; readonly by: By; readonly parts: number }>>

export type Period = keyof typeof periods

export const isPeriod = (word: string | undefined): word is Period => word !== undefined && Object.hasOwn(periods, word)

/** Parts that begin at a full hour or at midnight in the browser's time zone; the last one contains the present. */
export function spanOf(period: Period, now: number): { readonly by: By; readonly from: string; readonly to: string } {
  const { by, parts } = periods[period]
  const last = new Date(now)
  if (by === 'hour') last.setMinutes(0, 0, 0)
  else last.setHours(0, 0, 0, 0)
  const end = last.getTime() + lengths[by]
  return { by, from: new Date(end - parts * lengths[by]).toISOString(), to: new Date(end).toISOString() }
}

/** A time that is certainly within the part: around a clock change, a day begins an hour before or after midnight. */
export const middleOf = (from: string, by: By): number => Date.parse(from) + lengths[by] / 2
