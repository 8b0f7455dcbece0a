import type { When } from '#kernel/time.ts'
import { isEmptySpan, parseTime, parseTimeSpan, spanMillis, type TimeSpan } from '#kernel/time.ts'

/** When access expires: at a time, or this long after it was granted. */
export type Expiry = { readonly at: Date } | { readonly after: TimeSpan }

/** `8h`, `30d`, `P30D`; undefined for text that isn't a length of time, and for none at all. */
export function parseExpiresAfter(text: string): Expiry | undefined {
  const after = parseTimeSpan(text.trim())
  return after === undefined || isEmptySpan(after) ? undefined : { after }
}

const date = /^\d{4}-/

/** An ISO 8601 date or time; undefined for anything else. */
export function parseExpiresAt(text: string): Expiry | undefined {
  const at = date.test(text.trim()) ? parseTime(text.trim(), new Date(0)) : undefined
  return at === undefined ? undefined : { at }
}

/** Undefined for a time that has passed, or is more than 100 years away. */
export function expiryTime(expiry: Expiry, now: Date): When | undefined {
  if ('at' in expiry) {
    const millis = spanMillis(now, { months: 0, millis: expiry.at.getTime() - now.getTime() })
    return millis === undefined || millis <= 0 ? undefined : { at: expiry.at }
  }
  const inMillis = spanMillis(now, expiry.after)
  return inMillis === undefined ? undefined : { inMillis }
}
