import * as z from 'zod'
import { azRulesSchema } from './envelope.ts'

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

export const portalUrlSchema = z.strictObject({
  label: z.string().min(1),
  url: z.string().min(1),
  org: z.string().optional(),
  /** A PNG in base64, or a picture as a data URI. */
  icon: z.string().optional(),
  azRules: azRulesSchema.optional(),
})
export type PortalUrlSpec = z.infer<typeof portalUrlSchema>

export const reportSchema = z.strictObject({
  name: z.string().min(1),
  description: z.string().optional(),
  groupBy: z.string().optional(),
  groupings: z.boolean().optional(),
  orgId: z.string().optional(),
  parameters: z
    .strictObject({
      beginDate: z.boolean().optional(),
      endDate: z.boolean().optional(),
      userKey: z.boolean().optional(),
      currentUser: z.boolean().optional(),
    })
    .optional(),
  sql: z.string().min(1),
  headerFields: z.array(z.string()).optional(),
  dataFields: z.array(z.string()).optional(),
})
export type ReportSpec = z.infer<typeof reportSchema>
