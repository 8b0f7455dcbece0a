import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { stsEndpointSchema, stsFrameSchema, stsSubjectIssuerSchema } from '#config/kinds/sts.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

const text = z.string()
const flag = z.boolean()
const texts = z.record(z.string(), z.string())
const open = z.record(z.string(), z.unknown())
const openList = z.array(open)
const name = z.string().regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$/)
const port = z.int().min(1).max(65535)

const { injector: endpointInjector } = stsEndpointSchema.shape

/** An endpoint as the predecessor's chart has it too: its trust may be told in the injector. */
const endpoint = stsEndpointSchema.extend({
  injector: endpointInjector.unwrap().extend({ explicit_certificate_trust: flag.optional() }).optional(),
})

/** The predecessor's block has the image of its sidecar and the name of its own object beside the endpoints. */
const sts = stsFrameSchema.extend({
  endpoints: z.array(endpoint).max(200),
  issuers: z.array(stsSubjectIssuerSchema).max(50).optional(),
  image: text.optional(),
  openunison: open.optional(),
})

/** What the chart in deploy/helm/gatehouse takes. */
const values = z.strictObject({
  global: open.optional(),
  nameOverride: text,
  fullnameOverride: text,
  image: z.strictObject({
    repository: text.min(1),
    tag: text,
    digest: z.string().regex(/^(sha256:[0-9a-f]{64})?$/),
    pullPolicy: z.enum(['IfNotPresent', 'Always', 'Never']),
  }),
  imagePullSecrets: openList,
  replicas: z.int().min(1).max(100).nullish(),
  workers: z.union([z.int().min(1).max(64), z.literal('auto')]),
  url: z.string().regex(/^(https?:\/\/[^/\s]+)?$/),
  config: z.strictObject({
    source: z.enum(['objects', 'files']),
    files: z.record(z.string().regex(/^[-._a-zA-Z0-9]+$/), text),
    values: z.record(z.string(), z.union([text, z.number(), flag])),
    secrets: z.array(name.min(1)),
  }),
  cluster: z.strictObject({ target: name }),
  sts,
  publishing: z.strictObject({ createNamespaces: flag }),
  webhook: z.strictObject({ enabled: flag, port: port.min(1024) }),
  database: z.strictObject({ secretName: name, key: text.min(1) }),
  secretKey: z.strictObject({ secretName: name, key: text.min(1) }),
  persistence: z.strictObject({ size: text.min(1), storageClassName: text.nullish(), existingClaim: name }),
  tls: z.strictObject({ secretName: name }),
  trustedProxies: z.array(text.min(1)).nullish(),
  trustConfigMap: name,
  service: z.strictObject({
    type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']),
    annotations: texts,
    port: port.nullish(),
  }),
  serviceAccount: z.strictObject({ create: flag, name, annotations: texts }),
  rbac: z.strictObject({ create: flag, tokenReviews: flag }),
  listenAddress: text.min(1),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']),
  drainSeconds: z.int().min(0).max(3600),
  strict: flag,
  extraArgs: z.array(text),
  extraEnv: openList,
  extraVolumes: openList,
  extraVolumeMounts: openList,
  resources: open,
  podAnnotations: texts,
  podLabels: texts,
  podSecurityContext: open,
  containerSecurityContext: open,
  priorityClassName: text,
  nodeSelector: texts,
  tolerations: openList,
  affinity: open,
  networkPolicy: z.strictObject({
    enabled: flag,
    clients: openList,
    apiServer: openList,
    monitoring: openList,
    egress: openList,
  }),
})

export const valuesSchemaFile = join(import.meta.dirname, 'helm/gatehouse/values.schema.json')

/** The chart's values.schema.json. */
export function valuesSchema(): string {
  const schema = z.toJSONSchema(values, { unrepresentable: 'any', io: 'input' }) as JsonObject
  const $comment = 'Made by npm run values-schema from deploy/write-values-schema.ts and src/config/kinds.'
  return `${JSON.stringify(forHelm({ $comment, ...schema }), undefined, 2)}\n`
}

/**
 * Helm's validator compiles patterns as Go does, which knows no looking ahead, and no formats of Zod's own. What is left
 * out here is checked by Gatehouse.
 */
function forHelm(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(forHelm)
  if (!isJsonObject(value)) return value
  const kept = Object.entries(value).filter(
    ([key, one]) =>
      !(key === 'pattern' && typeof one === 'string' && one.includes('(?!')) &&
      !(key === 'format' && one === 'starts_with'),
  )
  return Object.fromEntries(kept.map(([key, one]) => [key, forHelm(one)]))
}

if (import.meta.main) writeFileSync(valuesSchemaFile, valuesSchema())
