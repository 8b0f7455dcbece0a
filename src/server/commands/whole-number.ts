/** Undefined for anything but a whole number from `min` to `max`. */
export function wholeNumber(text: string, min: number, max: number): number | undefined {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  return number >= min && number <= max ? number : undefined
}
