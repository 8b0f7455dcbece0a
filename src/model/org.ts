import * as z from 'zod'
import { azRulesSchema } from '#model/az-rule.ts'

export const orgSchema = z.strictObject({
  label: z.string().optional(),
  description: z.string().optional(),
  uuid: z.string().min(1),
  parent: z.string().optional(),
  showInPortal: z.boolean().optional(),
  showInRequestAccess: z.boolean().optional(),
  showInReports: z.boolean().optional(),
  azRules: azRulesSchema.optional(),
})
export type OrgSpec = z.infer<typeof orgSchema>
