import type { TimedAccess } from '#features/portal/contract/main-access.ts'
import type { RequestSummary } from '#features/portal/contract/main-requests.ts'

const day = 24 * 60 * 60_000
/** Access that expires within this time is shown. */
const soonMillis = 14 * day
/** Older failures are not shown. */
const recentMillis = 14 * day

/** Access that expires soon, the soonest first. */
export const endingSoon = (access: readonly TimedAccess[], now: number): readonly TimedAccess[] =>
  access
    .filter(({ expires }) => {
      const left = Date.parse(expires) - now
      return left > 0 && left <= soonMillis
    })
    .sort((one, other) => Date.parse(one.expires) - Date.parse(other.expires))

/** The user's own cancellations aren't news. */
export const recentTrouble = (
  requests: readonly RequestSummary[],
  login: string,
  now: number,
): readonly RequestSummary[] =>
  requests.filter(
    ({ updated, cancel }) =>
      now - Date.parse(updated) <= recentMillis && cancel?.by.toLowerCase() !== login.toLowerCase(),
  )
