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
const count = z.int().min(1)
/** A duration as Prometheus writes it. */
const duration = z.string().regex(/^([0-9]+(ms|[smh]))+$/)
const host = z.string().regex(/^(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)

/** What an object that is made on demand has in any case. */
const optionalObject = { enabled: flag, labels: texts, annotations: texts }
/** An object that the namespace of others may have. */
const monitoringObject = z.strictObject({ ...optionalObject, namespace: name })

const ingress = z.strictObject({
  ...optionalObject,
  className: name,
  hosts: z.array(host),
  tls: z.array(z.strictObject({ secretName: name.optional(), hosts: z.array(host).optional() })),
})

const httpRoute = z.strictObject({
  ...optionalObject,
  parentRefs: z.array(
    z.strictObject({
      name: name.min(1),
      namespace: name.optional(),
      sectionName: text.optional(),
      port: port.optional(),
      group: text.optional(),
      kind: text.optional(),
    }),
  ),
  hostnames: z.array(host).max(16),
  filters: openList,
  timeouts: z.strictObject({ request: text.optional(), backendRequest: text.optional() }),
})

const metrics = z.strictObject({
  podMonitor: monitoringObject.extend({
    interval: duration,
    scrapeTimeout: duration,
    relabelings: openList,
    metricRelabelings: openList,
  }),
  prometheusRule: monitoringObject.extend({ disabled: z.array(text), alertLabels: texts }),
  dashboard: monitoringObject,
})

const autoscaling = z.strictObject({
  enabled: flag,
  minReplicas: count.max(100),
  maxReplicas: count.max(100),
  targetCPUUtilizationPercentage: count.max(1000).nullish(),
  metrics: openList,
  behavior: z.strictObject({ scaleUp: open.optional(), scaleDown: open.optional() }),
})

const spreadConstraint = z.strictObject({
  maxSkew: count,
  topologyKey: text.min(1),
  whenUnsatisfiable: z.enum(['DoNotSchedule', 'ScheduleAnyway']),
  labelSelector: open.optional(),
  matchLabelKeys: z.array(text).optional(),
  minDomains: count.optional(),
  nodeAffinityPolicy: z.enum(['Honor', 'Ignore']).optional(),
  nodeTaintsPolicy: z.enum(['Honor', 'Ignore']).optional(),
})

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
  commonLabels: texts,
  commonAnnotations: texts,
  image: z.strictObject({
    repository: text.min(1),
    tag: text,
    digest: z.string().regex(/^(sha256:[0-9a-f]{64})?$/),
    pullPolicy: z.enum(['IfNotPresent', 'Always', 'Never']),
  }),
  imagePullSecrets: openList,
  replicas: z.int().min(1).max(100).nullish(),
  autoscaling,
  workers: z.union([z.int().min(1).max(64), z.literal('auto')]),
  url: z.string().regex(/^(https?:\/\/[^/\s]+)?$/),
  config: z.strictObject({
    source: z.enum(['objects', 'files']),
    files: z.record(z.string().regex(/^[-._a-zA-Z0-9]+$/), text),
    values: z.record(z.string(), z.union([text, z.number(), flag])),
    secrets: z.array(name.min(1)),
  }),
  crds: z.strictObject({ upgrade: flag }),
  cluster: z.strictObject({ target: name }),
  sts,
  publishing: z.strictObject({ createNamespaces: flag }),
  webhook: z.strictObject({ enabled: flag, port: port.min(1024) }),
  database: z.strictObject({ secretName: name, key: text.min(1) }),
  secretKey: z.strictObject({ secretName: name, key: text.min(1) }),
  auditKey: z.strictObject({ secretName: name, key: text.min(1) }),
  persistence: z.strictObject({ size: text.min(1), storageClassName: text.nullish(), existingClaim: name }),
  tls: z.strictObject({ secretName: name }),
  trustedProxies: z.array(text.min(1)).nullish(),
  trustConfigMap: name,
  service: z.strictObject({
    type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']),
    annotations: texts,
    port: port.nullish(),
  }),
  ingress,
  httpRoute,
  metrics,
  serviceAccount: z.strictObject({ create: flag, name, annotations: texts }),
  rbac: z.strictObject({ create: flag, tokenReviews: flag }),
  listenAddress: text.min(1),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']),
  drainSeconds: z.int().min(0).max(3600),
  strict: flag,
  extraArgs: z.array(text),
  extraEnv: openList,
  extraEnvFrom: openList,
  extraVolumes: openList,
  extraVolumeMounts: openList,
  extraInitContainers: openList,
  extraContainers: openList,
  extraObjects: openList,
  hostAliases: openList,
  resources: open,
  deploymentAnnotations: texts,
  podAnnotations: texts,
  podLabels: texts,
  podSecurityContext: open,
  containerSecurityContext: open,
  priorityClassName: text,
  nodeSelector: texts,
  tolerations: openList,
  affinity: open,
  topologySpreadConstraints: z.array(spreadConstraint).nullish(),
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
