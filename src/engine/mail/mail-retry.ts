const firstMillis = 5_000
const longestMillis = 30 * 60_000
/** With the pauses between them they take about a day. */
const maxAttempts = 60

/**
 * How long to wait after that many attempts that failed: twice as long each time, up to half an hour, of which half is
 * left to chance so that a server that comes back is not met by all mails at once. Undefined: the mail is given up.
 */
export function mailRetryMillis(attempts: number, chance = Math.random()): number | undefined {
  if (attempts >= maxAttempts) return undefined
  const whole = Math.min(firstMillis * 2 ** Math.min(attempts - 1, 30), longestMillis)
  return whole / 2 + (whole / 2) * chance
}
