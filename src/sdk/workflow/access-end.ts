import { addSpan, parseTime, type TimeSpan } from '#kernel/time.ts'
import { expiryTime } from '#sdk/target/expiry.ts'

/** A workflow's offer that whoever asks for access chooses when it ends. */
export interface AccessEndOffer {
  /** Without an end nothing is given. */
  readonly required: boolean
  /** From the request on; as long as they like when absent. */
  readonly longest?: TimeSpan
}

/** The request parameter with the chosen end, an ISO 8601 time. Absent or empty, access is for good. */
export const accessEndKey = 'accessEnds'

/** An ISO 8601 time, of UTC where it names no zone; a date is good until the end of that day. */
export function parseAccessEnd(text: string): Date | undefined {
  const [, date, time, zone] = /^(\d{4}-\d\d-\d\d)(?:T([\d:.]{5,16})(Z|[+-]\d\d:\d\d)?)?$/.exec(text) ?? []
  if (date === undefined || !isDay(date)) return undefined
  return parseTime(`${date}T${time ?? '23:59:59'}${zone ?? 'Z'}`, new Date(0))
}

/** Not 31 February, which Date takes for a day of March. */
function isDay(date: string): boolean {
  const midnight = new Date(`${date}T00:00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date)
}

/** The end, undefined for access that is for good; or why it cannot be had, for people. */
export type ChosenEnd = { readonly ends: Date | undefined } | { readonly refusal: string }

export function chooseAccessEnd(text: string, offer: AccessEndOffer | undefined, now: Date): ChosenEnd {
  const given = text.trim()
  if (given === '') return offer?.required === true ? { refusal: 'End date is required' } : { ends: undefined }
  if (offer === undefined) return { refusal: 'End date cannot be chosen here' }
  const ends = parseAccessEnd(given)
  if (ends === undefined) return { refusal: 'End date is not a date or time' }
  if (ends.getTime() <= now.getTime()) return { refusal: 'End date is not in the future' }
  const latest = offer.longest === undefined ? undefined : addSpan(now, offer.longest)
  const isTooLate = (latest !== undefined && ends > latest) || expiryTime({ at: ends }, now) === undefined
  return isTooLate ? { refusal: 'End date is later than allowed' } : { ends }
}
