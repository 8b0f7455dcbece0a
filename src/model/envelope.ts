import * as z from 'zod'

/** What the API server of a cluster adds to an object; read and not used. */
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
