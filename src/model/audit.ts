import * as z from 'zod'
import { paramsSchema, secretParamsSchema } from '#model/params.ts'

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
