import { Cron } from 'croner'

const months = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const weekdays = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

interface Range {
  readonly min: number
  readonly max: number
  /** Words for the values from `min` on. */
  readonly words?: readonly string[]
}

/** The fields of a Quartz schedule, in the order of a cron line. Quartz counts the days of the week from Sunday as 1. */
export const cronFields = {
  seconds: { min: 0, max: 59 },
  minutes: { min: 0, max: 59 },
  hours: { min: 0, max: 23 },
  dayOfMonth: { min: 1, max: 31 },
  month: { min: 1, max: 12, words: months },
  dayOfWeek: { min: 1, max: 7, words: weekdays },
  year: { min: 1970, max: 2099 },
} as const satisfies Record<string, Range>

export type CronField = keyof typeof cronFields

/** Means every value. */
const everyValue = '*'
const maxItems = 60

/**
 * A field as a cron line without names, steps or wrapping ranges: `*`, or a list of values, with Sunday as 0.
 * Throws an Error that says what is wrong with it, or which part of Quartz is not supported.
 */
export function readCronField(field: CronField, written: string): string {
  const text = written.trim().toUpperCase()
  if (text === '') throw new Error('is empty; use "*" for every value')
  if (text === '?') {
    if (field === 'dayOfMonth' || field === 'dayOfWeek') return everyValue
    throw new Error('"?" is allowed only for days; use "*" for every value')
  }
  if (text === everyValue) return everyValue
  const special = specialDay(field, text)
  if (special !== undefined) return special
  const items = text.split(',')
  if (items.length > maxItems) throw new Error(`has more than ${maxItems} items`)
  const values = new Set(items.flatMap((item) => readItem(field, item)))
  const shift = field === 'dayOfWeek' ? 1 : 0
  return [...values]
    .sort((a, b) => a - b)
    .map((value) => value - shift)
    .join(',')
}

/** Days that depend on the month. They can't be combined with others. */
function specialDay(field: CronField, text: string): string | undefined {
  if (field === 'dayOfMonth') {
    if (text === 'L' || text === 'LW') return text
    const [, day] = /^(\d{1,2})W$/.exec(text) ?? []
    if (day !== undefined) return `${readValue(field, day)}W`
    if (/^L-\d+$/.test(text)) throw new Error(`"${text}", days before the last of the month, cannot be honoured`)
  }
  if (field === 'dayOfWeek') {
    // On its own it is the last day of the week.
    if (text === 'L') return '6'
    const [, last] = /^(\w+?)L$/.exec(text) ?? []
    if (last !== undefined) return `${readValue(field, last) - 1}#L`
    const [, day, nth] = /^(\w+)#(\d+)$/.exec(text) ?? []
    if (day !== undefined && nth !== undefined) {
      if (!/^[1-5]$/.test(nth)) throw new Error(`"${text}": a month has a first to a fifth of a weekday at most`)
      return `${readValue(field, day) - 1}#${nth}`
    }
  }
  return undefined
}

/** `a`, `a-b`, `*`, each with a step: `a/n` continues to the field's end, and `a-b` may wrap around it. */
function readItem(field: CronField, item: string): number[] {
  const { min, max } = cronFields[field]
  const [, base = '', step] = /^([^/]*)(?:\/(\d{1,4}))?$/.exec(item) ?? []
  if (base === '' && step === undefined) throw wrong(field, item)
  const by = step === undefined ? 1 : Number(step)
  if (by < 1 || by > max) throw new Error(`"${item}": the step must be from 1 to ${max}`)
  const dash = base.indexOf('-')
  if (dash > 0) {
    const first = readValue(field, base.slice(0, dash))
    const last = readValue(field, base.slice(dash + 1))
    if (last < first && field === 'year') throw new Error(`"${item}": the range ends before it starts`)
    const end = last < first ? last + (max - min + 1) : last
    return steps(first, end, by).map((value) => (value > max ? value - (max - min + 1) : value))
  }
  const first = base === '' || base === everyValue ? min : readValue(field, base)
  return step === undefined && base !== everyValue ? [first] : steps(first, max, by)
}

function readValue(field: CronField, text: string): number {
  const range: Range = cronFields[field]
  const word = range.words?.indexOf(text) ?? -1
  if (word >= 0) return word + range.min
  const value = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN
  if (value >= range.min && value <= range.max) return value
  throw wrong(field, text)
}

function wrong(field: CronField, text: string): Error {
  const range: Range = cronFields[field]
  const words = range.words === undefined ? '' : `, or ${range.words[0]} to ${range.words.at(-1)}`
  return new Error(`"${text}" is none of its values, ${range.min} to ${range.max}${words}`)
}

function steps(first: number, last: number, by: number): number[] {
  const values: number[] = []
  for (let value = first; value <= last; value += by) values.push(value)
  return values
}

/** Due times, to the second. */
export interface Schedule {
  /** The first one after that time; undefined if there is none. */
  next(after: Date): Date | undefined
  /** The last one up to and including that time; undefined if there was none. */
  latest(upTo: Date): Date | undefined
}

export type ScheduleFields = Readonly<Record<CronField, string>>

/** Called with what is wrong with a field. */
type ReportField = (field: CronField | 'timeZone', message: string) => void

const names = Object.keys(cronFields) as CronField[]

/**
 * A Quartz schedule in a time zone. An hour that clocks skip in spring is made up for at its end, and one that they
 * repeat in autumn counts once for a schedule that names the hour. Undefined, with every problem reported, if it is
 * not supported.
 */
export function readSchedule(fields: ScheduleFields, timeZone: string, report: ReportField): Schedule | undefined {
  let sound = true
  const wrong: ReportField = (field, message) => {
    sound = false
    report(field, message)
  }
  const read = new Map<CronField, string>()
  for (const name of names) {
    try {
      read.set(name, readCronField(name, fields[name]))
    } catch (error) {
      wrong(name, error instanceof Error ? error.message : String(error))
    }
  }
  if (!isTimeZone(timeZone)) wrong('timeZone', `"${timeZone}" is not a time zone such as Europe/Berlin or UTC`)
  if (fields.dayOfMonth.trim() === '?' && fields.dayOfWeek.trim() === '?') {
    wrong('dayOfWeek', 'dayOfMonth and dayOfWeek cannot both be "?"; use "*" for every day')
  }
  const restricted = (name: CronField): boolean => (read.get(name) ?? everyValue) !== everyValue
  if (restricted('dayOfMonth') && restricted('dayOfWeek')) {
    wrong('dayOfWeek', 'must be "?" where dayOfMonth names days: both cannot be honoured together')
  }
  if (!sound) return undefined
  const cron = new Cron(names.map((name) => read.get(name)).join(' '), {
    paused: true,
    mode: '7-part',
    timezone: timeZone,
  })
  if (cron.nextRun(new Date(0)) === null) {
    wrong('dayOfMonth', 'there is no such day in any of the months, so it is never due')
    return undefined
  }
  return {
    next: (after) => cron.nextRun(after) ?? undefined,
    // The library excludes the second that it starts from.
    latest: (upTo) => cron.previousRuns(2, new Date(upTo.getTime() + 1000)).find((due) => due <= upTo),
  }
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
