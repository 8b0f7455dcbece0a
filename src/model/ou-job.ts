import * as z from 'zod'
import { paramsSchema, secretParamsSchema } from '#model/params.ts'

const field = z.union([z.string(), z.int()])

export const ouJobSchema = z.strictObject({
  className: z.string().min(1),
  group: z.string().optional(),
  cronSchedule: z.strictObject({
    seconds: field,
    minutes: field,
    hours: field,
    dayOfMonth: field,
    month: field,
    dayOfWeek: field,
    year: field,
  }),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
})
export type OUJobSpec = z.infer<typeof ouJobSchema>
