import type { WorkflowListItem } from '#contract/main.ts'
import { fieldValue } from '../../components/field-time.ts'

export type EndOffer = NonNullable<WorkflowListItem['accessEnds']>

const day = 86_400_000

/** A day is enough to choose, unless the access lasts shorter than two. */
export const endFieldType = ({ longestSeconds }: EndOffer): 'date' | 'datetime-local' =>
  longestSeconds !== undefined && longestSeconds * 1000 < 2 * day ? 'datetime-local' : 'date'

/** What the field stands for: a day is good to its last second, where the person is. */
export function endTime(value: string): Date | undefined {
  const at = new Date(value.includes('T') ? value : `${value}T23:59:59`)
  return Number.isNaN(at.getTime()) ? undefined : at
}

export interface EndLimits {
  readonly min: string
  readonly max?: string
}

/** What the field takes at the least and at the most. */
export function endLimits(offer: EndOffer, now: number): EndLimits {
  const length = endFieldType(offer) === 'date' ? 'yyyy-mm-dd'.length : undefined
  const value = (at: number): string => fieldValue(new Date(at)).slice(0, length)
  const min = value(now)
  if (offer.longestSeconds === undefined) return { min }
  const latest = now + offer.longestSeconds * 1000
  const last = value(latest)
  const isWhole = (endTime(last)?.getTime() ?? 0) <= latest
  return { min, max: isWhole ? last : value(latest - day) }
}

export type EndProblem = 'cart.endRequired' | 'cart.endNotAhead' | 'cart.endTooLate'

/** What is wrong with it before it is sent. */
export function endProblem(value: string, offer: EndOffer, now: number): EndProblem | undefined {
  if (value === '') return offer.required ? 'cart.endRequired' : undefined
  const at = endTime(value)?.getTime()
  if (at === undefined) return 'cart.endRequired'
  if (at <= now) return 'cart.endNotAhead'
  const { longestSeconds } = offer
  return longestSeconds !== undefined && at > now + longestSeconds * 1000 ? 'cart.endTooLate' : undefined
}
