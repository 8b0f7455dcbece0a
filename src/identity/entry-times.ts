import { isoTime } from '#kernel/time.ts'

/**
 * Attribute names that filters and sort orders reserve for the times of the entry itself. Their values are texts
 * written by `timeValue`, which compare by time. A target's system may store finer times; they are cut to
 * milliseconds.
 */
export type TimeAttribute = 'meta.created' | 'meta.lastModified'

export const timeAttributes: readonly TimeAttribute[] = ['meta.created', 'meta.lastModified']

const lastMillis = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
const firstMillis = Date.parse('0000-01-01T00:00:00.000Z')

/** The reserved name, in any letter case; undefined for any other attribute. */
export function timeAttribute(name: string): TimeAttribute | undefined {
  const key = name.toLowerCase()
  return timeAttributes.find((attribute) => attribute.toLowerCase() === key)
}

/** A time as filters use it: in UTC, to the millisecond, with a four-digit year. */
export const timeValue = (millis: number): string => isoTime(Math.min(lastMillis, Math.max(firstMillis, millis)))

/** The milliseconds of a text that `timeValue` wrote; undefined for any other text. */
export function valueMillis(text: string): number | undefined {
  const written = text.toUpperCase()
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(written)) return undefined
  const millis = Date.parse(written)
  // Date.parse reads 30 February as 2 March.
  return !Number.isNaN(millis) && timeValue(millis) === written ? millis : undefined
}

/** Reads an ISO 8601 date and time from outside, in UTC unless it has an offset; undefined for any other text. */
export function readTime(text: string): Date | undefined {
  const parts = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?$/i.exec(text)
  if (parts === null) return undefined
  const [, day = '', clock = '', fraction = '', zone = 'Z'] = parts
  const isDay = valueMillis(`${day}T00:00:00.000Z`) !== undefined
  const millis = Date.parse(`${day}T${clock}${fraction}${zone.toUpperCase()}`)
  return isDay && !Number.isNaN(millis) ? new Date(millis) : undefined
}

/** The times of a user or group as values of the reserved attributes. */
export function timeValues(
  attribute: TimeAttribute,
  { created, modified }: { readonly created?: Date | undefined; readonly modified?: Date | undefined },
): readonly string[] {
  const time = attribute === 'meta.created' ? created : modified
  return time === undefined ? [] : [timeValue(time.getTime())]
}
