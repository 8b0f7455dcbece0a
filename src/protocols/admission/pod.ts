import * as z from 'zod'

/** Unknown members stay unchanged; Go writes an empty list as null. */
const listOf = <T extends z.ZodType>(member: T) => z.array(member).nullish()
const texts = z.record(z.string(), z.string()).nullish()

const securityContextSchema = z.looseObject({
  runAsUser: z.number().nullish(),
  runAsGroup: z.number().nullish(),
  fsGroup: z.number().nullish(),
})

const requirementSchema = z.looseObject({ key: z.string(), operator: z.string(), values: listOf(z.string()) })
const nodeTermSchema = z.looseObject({ matchExpressions: listOf(requirementSchema) })
const affinitySchema = z.looseObject({
  nodeAffinity: z
    .looseObject({
      requiredDuringSchedulingIgnoredDuringExecution: z
        .looseObject({ nodeSelectorTerms: listOf(nodeTermSchema) })
        .nullish(),
    })
    .nullish(),
})

const envSchema = z.looseObject({ name: z.string(), value: z.string().nullish() })
const mountSchema = z.looseObject({ name: z.string(), mountPath: z.string() })
const volumeSchema = z.looseObject({ name: z.string() })

const containerSchema = z.looseObject({
  name: z.string(),
  env: listOf(envSchema),
  volumeMounts: listOf(mountSchema),
  securityContext: securityContextSchema.nullish(),
})

const ownerSchema = z.looseObject({
  kind: z.string(),
  apiVersion: z.string().nullish(),
  name: z.string().nullish(),
  uid: z.string().nullish(),
  controller: z.boolean().nullish(),
})

/** What the injector reads of a pod. */
export const podSchema = z.looseObject({
  metadata: z.looseObject({
    name: z.string().nullish(),
    generateName: z.string().nullish(),
    namespace: z.string().nullish(),
    labels: texts,
    annotations: texts,
    ownerReferences: listOf(ownerSchema),
  }),
  spec: z.looseObject({
    containers: listOf(containerSchema),
    initContainers: listOf(containerSchema),
    volumes: listOf(volumeSchema),
    imagePullSecrets: listOf(z.looseObject({ name: z.string().nullish() })),
    securityContext: securityContextSchema.nullish(),
    nodeSelector: texts,
    affinity: affinitySchema.nullish(),
    serviceAccountName: z.string().nullish(),
    os: z.looseObject({ name: z.string() }).nullish(),
    restartPolicy: z.string().nullish(),
  }),
})

export type Pod = z.infer<typeof podSchema>
/** The object that keeps a pod running. */
export interface PodOwner {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** Undefined if no controller owns the pod. */
export function ownerOf({ metadata }: Pod): PodOwner | undefined {
  const { apiVersion, kind, name, uid } = metadata.ownerReferences?.find(({ controller }) => controller === true) ?? {}
  return apiVersion && kind && name && uid ? { apiVersion, kind, name, uid } : undefined
}

export type Container = z.infer<typeof containerSchema>
export type EnvironmentVariable = z.infer<typeof envSchema>
export type NodeRequirement = z.infer<typeof requirementSchema>
export type Volume = z.infer<typeof volumeSchema>
