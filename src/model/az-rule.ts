import * as z from 'zod'

/** One authorization rule as written; any rule that passes is enough, and none denies. */
export const azRuleSchema = z.strictObject({
  scope: z.enum(['dn', 'filter', 'group', 'dynamicGroup', 'custom']),
  constraint: z.string().min(1),
})

export const azRulesSchema = z.array(azRuleSchema)
export type AzRulesSpec = z.infer<typeof azRulesSchema>
