const dayMillis = 86_400_000
/** The first moment of the year 10000, whose text is longer. */
const lastMillis = 253_402_300_800_000
const two = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, '0'))
const three = Array.from({ length: 1000 }, (_, n) => String(n).padStart(3, '0'))

let knownDay = -1
let knownDate = ''

/** The same text as `Date.toISOString`, in a fraction of its time, since a page of users needs it hundreds of times. */
export function isoTime(millis: number): string {
  if (!Number.isInteger(millis) || millis < 0 || millis >= lastMillis) return new Date(millis).toISOString()
  const day = Math.floor(millis / dayMillis)
  if (day !== knownDay) {
    knownDate = new Date(day * dayMillis).toISOString().slice(0, 11)
    knownDay = day
  }
  const inDay = millis - day * dayMillis
  const seconds = Math.floor(inDay / 1000)
  const minutes = Math.floor(seconds / 60)
  const clock = `${two[Math.floor(minutes / 60)]}:${two[minutes % 60]}:${two[seconds % 60]}`
  return `${knownDate}${clock}.${three[inDay % 1000]}Z`
}
