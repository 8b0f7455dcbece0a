import { Cron } from 'croner'
import { type CronField, cronFields, everyValue, readCronField } from '#kernel/cron-field.ts'

/** Due times, to the second. */
export interface Schedule {
  /** The first one behind that time; undefined when there is none any more. */
  next(after: Date): Date | undefined
  /** The last one up to and including that time; undefined when there was none. */
  latest(upTo: Date): Date | undefined
}

export type ScheduleFields = Readonly<Record<CronField, string>>

/** Told what is wrong with a field. */
export type ReportField = (field: CronField | 'timeZone', message: string) => void

const names = Object.keys(cronFields) as CronField[]

/**
 * A schedule in the form of Quartz, by the clocks of a time zone. An hour that is left out in spring is made up for at its
 * end, and one that comes twice in autumn counts once for a schedule that names the hour. Undefined, with everything
 * reported, when it is not one that can be honoured.
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
    // The library leaves out the second it is asked for.
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
