import * as z from 'zod'
import { paramsSchema, secretParamsSchema } from '#model/params.ts'

export const notifierSchema = z.strictObject({
  className: z.string().min(1),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
})
export type NotifierSpec = z.infer<typeof notifierSchema>
