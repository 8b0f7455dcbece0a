const firstMillis = 1000
const longestMillis = 5 * 60_000
/** A receiver may ask to be left alone longer, but not for ever. */
const longestAskedMillis = 60 * 60_000

/**
 * How long to leave a receiver alone after `failures` in a row: twice as long each time, up to five minutes, of which
 * half is left to chance so that many senders do not come back together. What the receiver asked for counts for more.
 */
export function retryDelay(failures: number, askedMillis: number | undefined, chance = Math.random()): number {
  const whole = Math.min(firstMillis * 2 ** Math.min(failures - 1, 30), longestMillis)
  const ours = whole / 2 + (whole / 2) * chance
  return askedMillis === undefined ? ours : Math.max(ours, Math.min(askedMillis, longestAskedMillis))
}
