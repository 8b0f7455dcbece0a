const pattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})?$/

/** The moment of an xsd:dateTime (without a zone: UTC) in milliseconds; NaN when the text is none. */
export function dateTimeMillis(text: string): number {
  const match = pattern.exec(text)
  if (match === null) return Number.NaN
  return Date.parse(match[2] === undefined ? `${text}Z` : text)
}

export const isDateTime = (text: string): boolean => !Number.isNaN(dateTimeMillis(text))
