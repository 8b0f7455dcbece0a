import * as z from 'zod'

/** Parameters are texts; YAML people also write `true`, `15` or nothing, which count as their text. */
const scalar = z.union([z.string(), z.number(), z.boolean(), z.null(), z.undefined()])
export const paramValueSchema = z.union([scalar, z.array(z.union([z.string(), z.number(), z.boolean()]))])

/** A map of texts or lists of texts, or a list of `{name, value}` where a name may repeat. */
export const paramsSchema = z.union([
  z.record(z.string(), paramValueSchema),
  z.array(z.strictObject({ name: z.string().min(1), value: paramValueSchema })),
])

export const secretParamsSchema = z.array(
  z.strictObject({ name: z.string().min(1), secretName: z.string().min(1), secretKey: z.string().min(1) }),
)
export type SecretParamsSpec = z.infer<typeof secretParamsSchema>
