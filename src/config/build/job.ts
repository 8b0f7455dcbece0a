import type { BuildContext } from '#config/build-context.ts'
import { readSchedule, type ScheduleFields } from '#kernel/schedule.ts'
import type { OUJobSpec } from '#model/ou-job.ts'

const defaultTimeoutSeconds = 600

export function buildJob(spec: OUJobSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  const module = context.module(state.catalog.jobs, spec.className, ['spec', 'className'])
  const params = context.params(spec.params, ['spec', 'params'], spec.secretParams, ['spec', 'secretParams'])
  const schedule = readSchedule(fieldTexts(spec.cronSchedule), spec.timeZone ?? 'UTC', (field, message) =>
    issues.error(field === 'timeZone' ? ['spec', field] : ['spec', 'cronSchedule', field], message),
  )
  const job = module?.prepare(params, issues, context)
  if (job === undefined || schedule === undefined) return
  const timeoutMillis = (spec.timeoutSeconds ?? defaultTimeoutSeconds) * 1000
  state.draft.jobs.set(placed.name, { ...placed, group: spec.group, schedule, timeoutMillis, job })
}

const fieldTexts = (spec: OUJobSpec['cronSchedule']): ScheduleFields => ({
  seconds: String(spec.seconds),
  minutes: String(spec.minutes),
  hours: String(spec.hours),
  dayOfMonth: String(spec.dayOfMonth),
  month: String(spec.month),
  dayOfWeek: String(spec.dayOfWeek),
  year: String(spec.year),
})
