const minute = 60_000
const units = [
  ['year', 365 * 24 * 60 * minute],
  ['month', 30 * 24 * 60 * minute],
  ['week', 7 * 24 * 60 * minute],
  ['day', 24 * 60 * minute],
  ['hour', 60 * minute],
  ['minute', minute],
] as const

/** "in 3 hours", "yesterday", in the largest unit that fits. Hours are rounded: a second less than eight is eight. */
export function relativeTime(format: Intl.RelativeTimeFormat, at: number, now: number): string {
  const distance = at - now
  const [unit, millis] = units.find(([, size]) => Math.abs(distance) >= size) ?? ['minute', minute]
  const whole = unit === 'hour' ? Math.round : Math.trunc
  return format.format(whole(distance / millis), unit)
}
