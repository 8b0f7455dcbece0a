import * as z from 'zod'

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
