import type { IncomingHttpHeaders } from 'node:http'

/** Seconds or an HTTP date, in milliseconds from now; undefined for anything else. */
export function readRetryAfter(value: string | undefined, now: Date): number | undefined {
  if (value === undefined) return undefined
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const time = Date.parse(value)
  return Number.isNaN(time) ? undefined : Math.max(0, time - now.getTime())
}

/** The longest pause that a server may request. */
const longestMillis = 60 * 60_000
/** From 2001 on, so that a smaller number is seconds from now. */
const firstEpochSeconds = 1e9

/**
 * How long a server wants no further calls: Retry-After, or the end of a window in which no call is left
 * (`X-RateLimit-Remaining: 0`, and `X-RateLimit-Reset` as seconds, Unix time or date). At most an hour; undefined if it
 * requests none.
 */
export function requestedPause(headers: IncomingHttpHeaders, now: Date): number | undefined {
  const pause = readRetryAfter(headers['retry-after'], now) ?? windowEnd(headers, now)
  return pause === undefined ? undefined : Math.min(pause, longestMillis)
}

function windowEnd(headers: IncomingHttpHeaders, now: Date): number | undefined {
  if (readLimit(headers, 'remaining') !== '0') return undefined
  const reset = readLimit(headers, 'reset')
  if (reset === undefined || !/^\d{1,13}$/.test(reset)) return readRetryAfter(reset, now)
  const number = Number(reset)
  if (number < firstEpochSeconds) return number * 1000
  const time = number < 1000 * firstEpochSeconds ? number * 1000 : number
  return Math.max(0, time - now.getTime())
}

/** The value of `X-RateLimit-NAME`, or of `RateLimit-NAME`. */
function readLimit(headers: IncomingHttpHeaders, name: 'remaining' | 'reset'): string | undefined {
  const value = headers[`x-ratelimit-${name}`] ?? headers[`ratelimit-${name}`]
  return typeof value === 'string' ? value.trim() : undefined
}
