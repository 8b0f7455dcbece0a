import type { WorkflowListItem } from '#features/portal/contract/main.ts'
import { fieldValue } from '../../components/field-time.ts'

export type EndOffer = NonNullable<WorkflowListItem['accessEnds']>

const day = 86_400_000

const hour = 3_600_000
const minute = 60_000

/** Usual lengths of access. */
const presets = [
  { text: 'duration.hours', count: 4, millis: 4 * hour },
  { text: 'duration.days', count: 1, millis: day },
  { text: 'duration.days', count: 30, millis: 30 * day },
] as const

/** Those that the offer allows, counted from the end of the access that the user has, or from now. */
export function endPresets(
  { longestSeconds = Number.POSITIVE_INFINITY }: EndOffer,
  now = 0,
  current = now,
): readonly (typeof presets)[number][] {
  const latest = now + longestSeconds * 1000
  return presets.filter(({ millis }) => Math.max(now, current) + millis <= latest)
}

/** A day is enough, unless the access lasts less than two, or the value is a time already. */
export const endFieldType = ({ longestSeconds }: EndOffer, value = ''): 'date' | 'datetime-local' =>
  value.includes('T') || (longestSeconds !== undefined && longestSeconds * 1000 < 2 * day) ? 'datetime-local' : 'date'

/** The time of the field's value: a day is valid to its last second, in the user's time zone. */
export function endTime(value: string): Date | undefined {
  const at = new Date(value.includes('T') ? value : `${value}T23:59:59`)
  return Number.isNaN(at.getTime()) ? undefined : at
}

export interface EndLimits {
  readonly min: string
  readonly max?: string
}

/** The field's minimum and maximum. `current` is when the access ends that the user has. */
export function endLimits(offer: EndOffer, now: number, present = '', current = now): EndLimits {
  const length = endFieldType(offer, present) === 'date' ? 'yyyy-mm-dd'.length : undefined
  const value = (at: number): string => fieldValue(new Date(at)).slice(0, length)
  const isCovered = current > now && (endTime(value(current))?.getTime() ?? 0) <= current
  const min = value(Math.max(now, isCovered ? current + (length === undefined ? minute : day) : current))
  if (offer.longestSeconds === undefined) return { min }
  const latest = now + offer.longestSeconds * 1000
  const last = value(latest)
  const isWhole = (endTime(last)?.getTime() ?? 0) <= latest
  return { min, max: isWhole ? last : value(latest - day) }
}

export type EndProblem = 'cart.endRequired' | 'cart.endNotAhead' | 'cart.endNotLater' | 'cart.endTooLate'

/** The problem of the date before it is sent. */
export function endProblem(value: string, offer: EndOffer, now: number, current = now): EndProblem | undefined {
  if (value === '') return offer.required ? 'cart.endRequired' : undefined
  const at = endTime(value)?.getTime()
  if (at === undefined) return 'cart.endRequired'
  if (at <= now) return 'cart.endNotAhead'
  if (at <= current) return 'cart.endNotLater'
  const { longestSeconds } = offer
  return longestSeconds !== undefined && at > now + longestSeconds * 1000 ? 'cart.endTooLate' : undefined
}
