import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type CronField,
  cronFields,
  readCronField,
  readSchedule,
  type Schedule,
  type ScheduleFields,
} from '#kernel/schedule.ts'
import { sampled } from '#testing/hostile/sample.ts'

const daily: ScheduleFields = {
  seconds: '0',
  minutes: '0',
  hours: '2',
  dayOfMonth: '*',
  month: '*',
  dayOfWeek: '?',
  year: '*',
}

function schedule(fields: Partial<ScheduleFields>, timeZone = 'UTC'): Schedule {
  const problems: string[] = []
  const read = readSchedule({ ...daily, ...fields }, timeZone, (field, message) =>
    problems.push(`${field}: ${message}`),
  )
  expect(problems).toEqual([])
  if (read === undefined) throw new Error('not read')
  return read
}

function problems(fields: Partial<ScheduleFields>, timeZone = 'UTC'): string[] {
  const found: string[] = []
  const read = readSchedule({ ...daily, ...fields }, timeZone, (field, message) => found.push(`${field}: ${message}`))
  expect(read === undefined).toBe(found.length > 0)
  return found
}

/** A Monday. */
const monday = new Date('2025-03-10T12:00:00Z')
const after = (fields: Partial<ScheduleFields>, count = 3): string[] => {
  const made = schedule(fields)
  const times: string[] = []
  let time: Date | undefined = monday
  for (let i = 0; i < count && time !== undefined; i++) {
    time = made.next(time)
    if (time !== undefined) times.push(time.toISOString().slice(0, 19))
  }
  return times
}

test.each<[string, Partial<ScheduleFields>, string[]]>([
  ['once a day', {}, ['2025-03-11T02:00:00', '2025-03-12T02:00:00', '2025-03-13T02:00:00']],
  [
    'every five minutes from the first',
    { minutes: '1/5', hours: '*' },
    ['2025-03-10T12:01:00', '2025-03-10T12:06:00', '2025-03-10T12:11:00'],
  ],
  [
    'a step without a start',
    { seconds: '/20', minutes: '*', hours: '*' },
    ['2025-03-10T12:00:20', '2025-03-10T12:00:40', '2025-03-10T12:01:00'],
  ],
  [
    'weekdays by name',
    { dayOfMonth: '?', dayOfWeek: 'SAT-MON' },
    ['2025-03-15T02:00:00', '2025-03-16T02:00:00', '2025-03-17T02:00:00'],
  ],
  [
    'weekdays by number, Sunday being 1',
    { dayOfMonth: '?', dayOfWeek: '1,7' },
    ['2025-03-15T02:00:00', '2025-03-16T02:00:00', '2025-03-22T02:00:00'],
  ],
  ['hours over midnight', { hours: '23-1' }, ['2025-03-10T23:00:00', '2025-03-11T00:00:00', '2025-03-11T01:00:00']],
  ['the last day', { dayOfMonth: 'L' }, ['2025-03-31T02:00:00', '2025-04-30T02:00:00', '2025-05-31T02:00:00']],
  ['the last weekday', { dayOfMonth: 'LW' }, ['2025-03-31T02:00:00', '2025-04-30T02:00:00', '2025-05-30T02:00:00']],
  ['the weekday nearest', { dayOfMonth: '15W' }, ['2025-03-14T02:00:00', '2025-04-15T02:00:00', '2025-05-15T02:00:00']],
  [
    'the third Friday',
    { dayOfMonth: '?', dayOfWeek: '6#3' },
    ['2025-03-21T02:00:00', '2025-04-18T02:00:00', '2025-05-16T02:00:00'],
  ],
  [
    'the last Friday',
    { dayOfMonth: '?', dayOfWeek: 'FRIL' },
    ['2025-03-28T02:00:00', '2025-04-25T02:00:00', '2025-05-30T02:00:00'],
  ],
  [
    'the last day of the week',
    { dayOfMonth: '?', dayOfWeek: 'L' },
    ['2025-03-15T02:00:00', '2025-03-22T02:00:00', '2025-03-29T02:00:00'],
  ],
  [
    'months and a year',
    { dayOfMonth: '1', month: 'jan,JUL', year: '2026' },
    ['2026-01-01T02:00:00', '2026-07-01T02:00:00'],
  ],
])('%s', (_, fields, expected) => {
  expect(after(fields)).toEqual(expected)
})

test('the latest due time includes this second', () => {
  const made = schedule({ hours: '12' })
  const at = (text: string): string | undefined => made.latest(new Date(text))?.toISOString()
  expect(at('2025-03-10T12:00:00.000Z')).toBe('2025-03-10T12:00:00.000Z')
  expect(at('2025-03-10T12:00:00.999Z')).toBe('2025-03-10T12:00:00.000Z')
  expect(at('2025-03-10T11:59:59.999Z')).toBe('2025-03-09T12:00:00.000Z')
  expect(schedule({ year: '2030' }).latest(monday)).toBeUndefined()
})

test('hours follow the time zone, and each day has its hour through changes of the clocks', () => {
  const made = schedule({ minutes: '30' }, 'Europe/Berlin')
  const days = ['2025-03-28', '2025-10-24']
  for (const day of days) {
    let time = new Date(`${day}T12:00:00Z`)
    const seen = new Set<string>()
    for (let i = 0; i < 5; i++) {
      const due = made.next(time)
      if (due === undefined) throw new Error('not due')
      seen.add(due.toISOString().slice(0, 10))
      time = due
    }
    expect(seen.size).toBe(5)
  }
})

describe('unsupported schedules', () => {
  test.each<[string, Partial<ScheduleFields>, string]>([
    [
      'days before the last',
      { dayOfMonth: 'L-3' },
      'dayOfMonth: "L-3", days before the last of the month, cannot be honoured',
    ],
    [
      'days of both kinds',
      { dayOfMonth: '1', dayOfWeek: 'MON' },
      'dayOfWeek: must be "?" where dayOfMonth names days: both cannot be honoured together',
    ],
    [
      'days of neither',
      { dayOfMonth: '?', dayOfWeek: '?' },
      'dayOfWeek: dayOfMonth and dayOfWeek cannot both be "?"; use "*" for every day',
    ],
    ['an open minute', { minutes: '?' }, 'minutes: "?" is allowed only for days; use "*" for every value'],
    ['a value too large', { hours: '24' }, 'hours: "24" is none of its values, 0 to 23'],
    ['Sunday as 0', { dayOfMonth: '?', dayOfWeek: '0' }, 'dayOfWeek: "0" is none of its values, 1 to 7, or SUN to SAT'],
    ['a word', { month: 'JUNE' }, 'month: "JUNE" is none of its values, 1 to 12, or JAN to DEC'],
    ['nothing', { seconds: ' ' }, 'seconds: is empty; use "*" for every value'],
    ['an item that is empty', { seconds: '1,,2' }, 'seconds: "" is none of its values, 0 to 59'],
    ['no step', { seconds: '*/0' }, 'seconds: "*/0": the step must be from 1 to 59'],
    [
      'a sixth Friday',
      { dayOfMonth: '?', dayOfWeek: 'FRI#6' },
      'dayOfWeek: "FRI#6": a month has a first to a fifth of a weekday at most',
    ],
    ['a last day in a list', { dayOfMonth: '1,L' }, 'dayOfMonth: "L" is none of its values, 1 to 31'],
    [
      'a day that never comes',
      { dayOfMonth: '30', month: 'FEB' },
      'dayOfMonth: there is no such day in any of the months, so it is never due',
    ],
  ])('%s', (_, fields, expected) => {
    expect(problems(fields)).toEqual([expected])
  })

  test('an unknown time zone is reported together with all other problems', () => {
    expect(problems({ hours: 'x' }, 'Mars/Olympus')).toEqual([
      'hours: "X" is none of its values, 0 to 23',
      'timeZone: "Mars/Olympus" is not a time zone such as Europe/Berlin or UTC',
    ])
  })
})

test('any field is read or rejected with a message, and lists contain only its values', () => {
  const letters = fc.string({ unit: fc.constantFrom(...'0123456789*?/-,LW#MONJAN'), minLength: 1, maxLength: 12 })
  const fields = fc.constantFrom(...(Object.keys(cronFields) as CronField[]))
  fc.assert(
    fc.property(fields, letters, (field, text) => {
      let read: string
      try {
        read = readCronField(field, text)
      } catch (error) {
        return error instanceof Error && error.message.length > 5
      }
      if (!/^[\d,]+$/.test(read)) return true
      const { min, max } = cronFields[field]
      const shift = field === 'dayOfWeek' ? 1 : 0
      return read.split(',').every((value) => Number(value) + shift >= min && Number(value) + shift <= max)
    }),
  )
})

test('there is no due time between one and the next', () => {
  const at = fc.date({ min: new Date('2024-01-01'), max: new Date('2027-01-01'), noInvalidDate: true })
  fc.assert(
    fc.property(at, fc.integer({ min: 0, max: 59 }), fc.constantFrom('UTC', 'Europe/Berlin'), (time, minute, zone) => {
      const made = schedule({ minutes: String(minute), hours: '*/3' }, zone)
      const next = made.next(time)
      const latest = made.latest(time)
      return (
        next !== undefined &&
        latest !== undefined &&
        latest <= time &&
        next > time &&
        made.latest(new Date(next.getTime() - 1))?.getTime() === latest.getTime()
      )
    }),
    { numRuns: sampled(60, 200) },
  )
})
