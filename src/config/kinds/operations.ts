import * as z from 'zod'
import { paramsSchema, secretParamsSchema } from './envelope.ts'

const field = z.union([z.string(), z.int()])

export const cronScheduleSchema = z.strictObject({
  seconds: field,
  minutes: field,
  hours: field,
  dayOfMonth: field,
  month: field,
  dayOfWeek: field,
  year: field,
})
export type CronScheduleSpec = z.infer<typeof cronScheduleSchema>

export const ouJobSchema = z.strictObject({
  className: z.string().min(1),
  group: z.string().optional(),
  cronSchedule: cronScheduleSchema,
  /** The time zone of the schedule. UTC if absent, so that all processes use the same. */
  timeZone: z.string().min(1).optional(),
  /** The maximum duration of one run. */
  timeoutSeconds: z.int().min(1).max(86_400).optional(),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
})
export type OUJobSpec = z.infer<typeof ouJobSchema>

export const notifierSchema = z.strictObject({
  className: z.string().min(1),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
})
export type NotifierSpec = z.infer<typeof notifierSchema>

export const auditSinkSchema = z.strictObject({
  className: z.string().min(1),
  start: z.enum(['beginning', 'now']).optional(),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
})
export type AuditSinkSpec = z.infer<typeof auditSinkSchema>

export const auditAnchorSchema = z.strictObject({
  className: z.string().min(1),
  intervalSeconds: z.int().min(1).max(86_400).optional(),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
})
export type AuditAnchorSpec = z.infer<typeof auditAnchorSchema>
