import * as z from 'zod'
import { paramsSchema, secretParamsSchema } from './envelope.ts'

export const authenticationChainSchema = z.strictObject({
  level: z.int().min(0),
  root: z.string().optional(),
  /** OpenUnison's spelling; both are read. */
  finishOnRequiredSucess: z.boolean().optional(),
  finishOnRequiredSuccess: z.boolean().optional(),
  compliance: z
    .strictObject({
      enabled: z.boolean().optional(),
      maxFailedAttempts: z.int().optional(),
      maxLockoutTime: z.int().optional(),
      numFailedAttribute: z.string().optional(),
      lastFailedAttribute: z.string().optional(),
      lastSucceedAttribute: z.string().optional(),
      updateAttributesWorkflow: z.string().optional(),
      uidAttributeName: z.string().optional(),
    })
    .optional(),
  authMechs: z
    .array(
      z.strictObject({
        name: z.string().min(1),
        required: z.string().min(1),
        params: paramsSchema.optional(),
        secretParams: secretParamsSchema.optional(),
      }),
    )
    .min(1),
})
export type AuthenticationChainSpec = z.infer<typeof authenticationChainSchema>

export const authenticationMechanismSchema = z.strictObject({
  className: z.string().min(1),
  uri: z.string().startsWith('/auth/'),
  init: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
})
export type AuthenticationMechanismSpec = z.infer<typeof authenticationMechanismSchema>
