/** A time in the format of a browser's date and time field, in the user's time zone. */
export function fieldValue(at: Date): string {
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 16)
}
