/** A moment as a browser's own field for day and time has it, in the person's time zone. */
export function fieldValue(at: Date): string {
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 16)
}
