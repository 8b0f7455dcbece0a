import * as z from 'zod'
import { paramsSchema, secretParamsSchema } from '#model/params.ts'

export const authenticationMechanismSchema = z.strictObject({
  className: z.string().min(1),
  uri: z.string().startsWith('/auth/'),
  init: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
})
export type AuthenticationMechanismSpec = z.infer<typeof authenticationMechanismSchema>
