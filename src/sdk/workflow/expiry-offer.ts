import { addSpan, parseTime, type TimeSpan } from '#kernel/time.ts'
import { expiryTime } from '#sdk/target/expiry.ts'

/** A workflow's offer that the requester chooses the expiry date. */
export interface ExpiryOffer {
  /** An expiry date is required. */
  readonly required: boolean
  /** The longest time from the request on; unlimited if absent. */
  readonly longest?: TimeSpan | undefined
}

/** The request parameter with the expiry date, an ISO 8601 time. If absent or empty, access does not expire. */
export const expiryKey = 'accessEnds'

/** An ISO 8601 time, in UTC unless it has a zone; a date includes that whole day. */
export function parseExpiry(text: string): Date | undefined {
  const [, date, time, zone] = /^(\d{4}-\d\d-\d\d)(?:T([\d:.]{5,16})(Z|[+-]\d\d:\d\d)?)?$/.exec(text) ?? []
  if (date === undefined || !isDay(date)) return undefined
  return parseTime(`${date}T${time ?? '23:59:59'}${zone ?? 'Z'}`, new Date(0))
}

/** Rejects 31 February, which Date reads as a day of March. */
function isDay(date: string): boolean {
  const midnight = new Date(`${date}T00:00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date)
}

/** The expiry, undefined for access that does not expire; or why it is not available, for people. */
type ChosenExpiry = { readonly ends: Date | undefined } | { readonly refusal: string }

/** Reads the expiry that a requester chose. */
export function chooseExpiry(text: string, offer: ExpiryOffer | undefined, now: Date): ChosenExpiry {
  const given = text.trim()
  if (given === '') return offer?.required === true ? { refusal: 'End date is required' } : { ends: undefined }
  if (offer === undefined) return { refusal: 'End date cannot be chosen here' }
  const ends = parseExpiry(given)
  if (ends === undefined) return { refusal: 'End date is not a date or time' }
  if (ends.getTime() <= now.getTime()) return { refusal: 'End date is not in the future' }
  const latest = offer.longest === undefined ? undefined : addSpan(now, offer.longest)
  const isTooLate = (latest !== undefined && ends > latest) || expiryTime({ at: ends }, now) === undefined
  return isTooLate ? { refusal: 'End date is later than allowed' } : { ends }
}
