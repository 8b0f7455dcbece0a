import * as z from 'zod'
import { azRulesSchema } from '#model/az-rule.ts'

export const portalUrlSchema = z.strictObject({
  label: z.string().min(1),
  url: z.string().min(1),
  org: z.string().optional(),
  /** A PNG, base64. */
  icon: z.string().optional(),
  azRules: azRulesSchema.optional(),
})
export type PortalUrlSpec = z.infer<typeof portalUrlSchema>
