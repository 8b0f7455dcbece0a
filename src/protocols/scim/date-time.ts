const pattern = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(Z|[+-]\d{2}:\d{2})?$/

/** The moment of an xsd:dateTime (without a zone: UTC) in milliseconds; NaN when the text is none. */
export function dateTimeMillis(text: string): number {
  const match = pattern.exec(text)
  if (match === null) return Number.NaN
  const [, year, month, day, zone] = match
  // Date.parse takes 30 February for 2 March.
  if (Number(day) > new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()) return Number.NaN
  return Date.parse(zone === undefined ? `${text}Z` : text)
}

export const isDateTime = (text: string): boolean => !Number.isNaN(dateTimeMillis(text))
