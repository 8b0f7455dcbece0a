import * as z from 'zod'

/** Parameters are texts; in YAML people also write `true`, `15` or nothing, which become texts. */
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

/** One authorization rule as written. One rule that passes is enough; without rules access is denied. */
const azRuleSchema = z.strictObject({
  scope: z.enum(['dn', 'filter', 'group', 'dynamicGroup', 'custom']),
  constraint: z.string().min(1),
})

export const azRulesSchema = z.array(azRuleSchema)
export type AzRulesSpec = z.infer<typeof azRulesSchema>

/** Fields that the API server of a cluster adds to an object; accepted and ignored. */
const serverFields = {
  uid: z.unknown().optional(),
  resourceVersion: z.unknown().optional(),
  generation: z.unknown().optional(),
  creationTimestamp: z.unknown().optional(),
  deletionTimestamp: z.unknown().optional(),
  deletionGracePeriodSeconds: z.unknown().optional(),
  generateName: z.unknown().optional(),
  selfLink: z.unknown().optional(),
  finalizers: z.unknown().optional(),
  ownerReferences: z.unknown().optional(),
  managedFields: z.unknown().optional(),
}

const textMap = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.undefined()]))

export const metadataSchema = z.strictObject({
  name: z.string().min(1).max(253),
  namespace: z.string().min(1).max(253).optional(),
  labels: textMap.optional(),
  annotations: textMap.optional(),
  ...serverFields,
})

/** The frame around every kind's `spec`. */
export const envelopeSchema = <M extends z.ZodType, S extends z.ZodType>(metadata: M, spec: S) =>
  z.strictObject({
    apiVersion: z.string(),
    kind: z.string(),
    metadata,
    spec,
    status: z.unknown().optional(),
  })
