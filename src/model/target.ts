import * as z from 'zod'
import { paramsSchema, secretParamsSchema } from '#model/params.ts'

export const targetSchema = z.strictObject({
  className: z.string().min(1),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
  targetAttributes: z
    .array(
      z.strictObject({
        name: z.string().min(1),
        source: z.string(),
        sourceType: z.enum(['user', 'static', 'composite', 'custom']),
        targetType: z.string().optional(),
      }),
    )
    .optional(),
})
export type TargetSpec = z.infer<typeof targetSchema>
