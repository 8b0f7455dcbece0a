import * as z from 'zod'

export const javaScriptMappingSchema = z.strictObject({
  /** Defines `doMapping(user, attributeName)`. */
  javascript: z.string().min(1),
})
export type JavaScriptMappingSpec = z.infer<typeof javaScriptMappingSchema>
