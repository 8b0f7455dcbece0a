import * as z from 'zod'
import { azRulesSchema } from '#model/az-rule.ts'

export const stsEndpointSchema = z.strictObject({
  name: z.string().min(1),
  audience: z.string().min(1),
  path: z.string().startsWith('/'),
  azRules: azRulesSchema.optional(),
  issuer: z.strictObject({ host: z.string().min(1), keypair: z.string().min(1) }),
  injector: z
    .strictObject({
      label: z.string().min(1),
      token_environment_variable_name: z.string().min(1),
      label_value_environment_variable_name: z.string().optional(),
    })
    .optional(),
  explicit_certificate_trust: z.boolean().optional(),
  host_in_openunison: z.boolean().optional(),
  additionalAttributes: z.array(z.string().min(1)).optional(),
})
export type StsEndpointSpec = z.infer<typeof stsEndpointSchema>

/** The `sts` block of a values document, with its endpoints left alone, to be read one by one. */
export const stsFrameSchema = z.strictObject({ endpoints: z.array(z.unknown()) })
