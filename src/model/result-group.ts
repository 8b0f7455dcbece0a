import * as z from 'zod'

export const resultGroupSchema = z.array(
  z.strictObject({
    resultType: z.enum(['header', 'cookie', 'redirect']),
    source: z.enum(['static', 'user', 'custom']),
    value: z.string().min(1),
  }),
)
export type ResultGroupSpec = z.infer<typeof resultGroupSchema>
