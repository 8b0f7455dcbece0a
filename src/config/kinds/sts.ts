import * as z from 'zod'
import { tokenAlgorithms } from '#protocols/jwt/signing-key.ts'
import { azRulesSchema, paramValueSchema } from './envelope.ts'

const url = z.url({ protocol: /^https?$/, error: 'is not a URL that starts with https://' })
const bucket = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
/** Parts of an object's name: no empty ones, no leading slash, nothing that a server would normalize. */
const prefix = /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))(?:[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*)?$/
const objectName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/

const secretReference = z.strictObject({ secretName: z.string().min(1), secretKey: z.string().min(1) })

const invalidate = z.strictObject({
  /** Called by POST with `{"paths": [...]}` after both documents are written. */
  url,
  /** Sent as a header of this name, with the secret as its value. */
  header: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,64}$/, 'is not the name of a header')
    .optional(),
  secret: secretReference.optional(),
})

const folder = z.strictObject({
  type: z.literal('folder'),
  /** Relative paths start at the data folder. */
  folder: z.string().min(1).max(4096),
  invalidate: invalidate.optional(),
})

const s3 = z.strictObject({
  type: z.literal('s3'),
  bucket: z.string().regex(bucket, 'is not the name of a bucket: small letters, digits, dots and hyphens'),
  prefix: z
    .string()
    .max(512)
    .regex(prefix, 'is not a path such as issuers/cloud, without a slash at either end')
    .optional(),
  region: z
    .string()
    .regex(/^[a-z0-9-]{1,32}$/, 'is not the name of a region')
    .optional(),
  endpoint: url.optional(),
  pathStyle: z.boolean().optional(),
  accessKeyId: secretReference.optional(),
  secretAccessKey: secretReference.optional(),
  invalidate: invalidate.optional(),
})

const configMap = z.strictObject({
  type: z.literal('configmap'),
  /** The name of a Kubernetes target. */
  target: z.string().min(1),
  namespace: z.string().max(63).regex(objectName, 'is not the name of a Kubernetes object'),
  name: z.string().max(253).regex(objectName, 'is not the name of a Kubernetes object'),
  invalidate: invalidate.optional(),
})

/** One place to which both documents of an issuer are written. */
const stsDestinationSchema = z.discriminatedUnion('type', [folder, s3, configMap], {
  error: 'must be one of folder, s3, configmap',
})
export type StsDestinationSpec = z.infer<typeof stsDestinationSchema>

const stsPublishSchema = z.array(stsDestinationSchema).max(8)

const mountPath = /^[A-Za-z0-9_.-]{1,128}(?:\/[A-Za-z0-9_.-]{1,128}){0,4}$/

/** A key in the Transit engine of OpenBao or Vault, which signs and never reveals the private key. */
const transit = z.strictObject({
  type: z.literal('transit'),
  /** Such as `https://openbao.example.com:8200`. */
  address: url,
  namespace: z.string().min(1).max(256).optional(),
  /** Where the engine is mounted; `transit` if absent. */
  mount: z.string().regex(mountPath, 'is not a path such as transit, without a slash at either end').optional(),
  /** The endpoint's name if absent. The key is created if it does not exist and the policy allows it. */
  key: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,128}$/, 'is not the name of a key: letters, digits, dots, hyphens and underscores')
    .optional(),
  /** The CA certificate of `address`, in PEM; the CAs of the runtime if absent. */
  ca: z.union([z.string().startsWith('-----BEGIN CERTIFICATE-----').max(65_536), secretReference]).optional(),
  /** A token of the service; or `login`. */
  token: secretReference.optional(),
  /** Logs in with a JWT. The `kubernetes` and `jwt` methods of the service accept it in the same way. */
  login: z
    .strictObject({
      /** Where the method is mounted; `kubernetes` if absent. */
      mount: z.string().regex(mountPath, 'is not a path such as kubernetes, without a slash at either end').optional(),
      role: z.string().min(1).max(256),
      /** The token of the pod's service account if absent. */
      jwtFile: z.string().min(1).max(4096).optional(),
    })
    .optional(),
  /** New keys are created by the gateway; the service signs only until one of them does. */
  leave: z.boolean().optional(),
})
export type StsCustodySpec = z.infer<typeof transit>

/** How the keys of an endpoint are replaced. */
const stsKeysSchema = z.strictObject({
  /** A generated key is replaced after this many days; 0 never. */
  rotateDays: z.int().min(0).max(3650).optional(),
  /** `issuer` reads the documents back from the issuer URL before a key signs; `written` trusts what was written. */
  readBack: z.enum(['issuer', 'written']).optional(),
  /** How long caches in front of the issuer's host may keep the documents. */
  cdnSeconds: z.int().min(0).max(2_592_000).optional(),
  /** The service that stores the private keys; the gateway's database if absent. */
  custody: transit.optional(),
})

const namePattern = z
  .string()
  .regex(/^[a-z0-9.-]*\*?[a-z0-9.-]*$/, 'is not a name in Kubernetes, which may have one "*" for any characters')
  .min(1)
  .max(253)
const namePatterns = z.array(namePattern).min(1).max(100)

/** Which TokenGrant objects of the endpoint's clusters count. */
const stsGrantsSchema = z.strictObject({
  /** The namespaces that may have grants. This or `namespaceLabels`; if both are present, both must hold. */
  namespaces: namePatterns.optional(),
  /** Labels that their namespaces must have. */
  namespaceLabels: z.record(z.string().min(1).max(317), z.string().max(63)).optional(),
  /** The service accounts that a grant may name; all if absent. */
  serviceAccounts: namePatterns.optional(),
  /** How many service accounts a grant may name. */
  maxServiceAccounts: z.int().min(1).max(100).optional(),
  /** How many grants of the endpoint a namespace may have. */
  maxGrants: z.int().min(1).max(100).optional(),
  /** How long the known grants count while the API server can't be watched. */
  staleSeconds: z.int().min(120).max(3600).optional(),
})
export type StsGrantsSpec = z.infer<typeof stsGrantsSchema>

export const stsPresets = ['aws', 'azure', 'gcp', 'vault', 'kubernetes', 'anthropic', 'spiffe'] as const
export type StsPreset = (typeof stsPresets)[number]

/** A claim and where its value comes from; a text alone is `attribute`, or `claim=attribute`. */
const additionalAttribute = z.union([
  z.string().min(1).max(256),
  z.strictObject({
    name: z.string().min(1).max(256),
    source: z.string().max(4096),
    sourceType: z.enum(['user', 'static', 'composite', 'custom']),
  }),
])

const awsTags = z.strictObject({
  /** By tag name: a text with `${attribute}` for attributes of the workload. */
  principal: z.record(z.string().min(1).max(128), z.string().min(1).max(256)),
  /** Names of tags that later sessions keep. */
  transitive: z.array(z.string().min(1).max(128)).max(50).optional(),
})

const rateLimit = z.strictObject({
  /** How many tokens one pod may get at once, after a pause. */
  burst: z.int().min(1).max(1000).optional(),
  perMinute: z.int().min(1).max(60_000).optional(),
})

/** An OpenID Connect issuer whose tokens can be exchanged: a CI system, or a cluster without API access. */
export const stsSubjectIssuerSchema = z.strictObject({
  /** Its name in subjects, rules and the audit. */
  name: z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?$/, 'may have lowercase letters, digits, dots and hyphens only'),
  /** The `iss` of its tokens, byte for byte. */
  issuer: z.string().min(1).max(1024),
  /** The `aud` that its tokens must have. */
  audience: z.string().min(1).max(1024),
  /** The URL of its keys; taken from its discovery document if absent. */
  jwksUri: z.string().min(1).max(2048).optional(),
  /** A PEM file, relative to the configuration: the only CAs that its certificate may come from. */
  ca: z.string().min(1).optional(),
  algorithms: z
    .array(z.enum(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']))
    .min(1)
    .max(10)
    .optional(),
  /** Claims that become attributes, besides `sub`. */
  claims: z.array(z.string().min(1).max(128)).max(50).optional(),
  /** Its tokens are those of service accounts. */
  kubernetes: z.boolean().optional(),
  clockToleranceSeconds: z.int().min(0).max(120).optional(),
})
export type StsSubjectIssuerSpec = z.infer<typeof stsSubjectIssuerSchema>

export const stsEndpointSchema = z.strictObject({
  name: z.string().min(1),
  audience: z.string().min(1),
  path: z.string().startsWith('/'),
  azRules: azRulesSchema.optional(),
  issuer: z.strictObject({
    host: z.string().min(1),
    /** The endpoint's own name if absent. */
    keypair: z.string().min(1).optional(),
    /** The path of the documents on the host; the root if absent. */
    path: z.string().startsWith('/').optional(),
  }),
  injector: z
    .strictObject({
      label: z.string().min(1),
      /** The preset's own if absent. */
      token_environment_variable_name: z.string().min(1).optional(),
      label_value_environment_variable_name: z.string().optional(),
      /** Values of the preset's settings unless an annotation has others; `${attribute}` as in `environment`. */
      settings: z.record(z.string().min(1).max(64), z.string().min(1).max(32_768)).optional(),
      /** More variables: texts with `${name}` for an attribute of the workload or a setting. */
      environment: z.record(z.string().min(1).max(253), z.string().min(1).max(4096)).optional(),
      /** The same as beside `injector`, where OpenUnison's documentation has it. */
      explicit_certificate_trust: z.boolean().optional(),
    })
    .optional(),
  explicit_certificate_trust: z.boolean().optional(),
  host_in_openunison: z.boolean().optional(),
  additionalAttributes: z.array(additionalAttribute).max(50).optional(),

  /** The consumer whose limits apply to the tokens. */
  preset: z.enum(stsPresets).optional(),
  ttlSeconds: z.int().min(60).max(86_400).optional(),
  algorithm: z.enum(tokenAlgorithms).optional(),
  /** Adds a `jti` to each token. The audit has one in any case. */
  jti: z.boolean().optional(),
  /** The `sub` of the tokens, with `${attribute}` for attributes of the workload. */
  subject: z.string().min(1).max(1024).optional(),
  /** Several workloads may have one subject. */
  sharedSubject: z.boolean().optional(),
  /** Names of Kubernetes targets; optional if there is only one. */
  clusters: z.array(z.string().min(1)).min(1).max(64).optional(),
  /** Names of `issuers` of the block. */
  subjectIssuers: z.array(z.string().min(1)).min(1).max(20).optional(),
  incomingAudience: z.string().min(1).max(256).optional(),
  /** Also accept tokens made for the API server, as OpenUnison's sidecars send. */
  acceptApiServerAudience: z.boolean().optional(),
  /** Also accept tokens that are not bound to a pod. */
  acceptTokensWithoutPod: z.boolean().optional(),
  whenApiServerIsAway: z.enum(['required', 'offline-ok']).optional(),
  /** How long the API server may be unreachable after its last response, with `offline-ok`. */
  offlineSeconds: z.int().min(1).max(3600).optional(),
  rateLimit: rateLimit.optional(),
  /** Teams may allow service accounts of their namespaces; without it, their grants do not count. */
  grants: stsGrantsSchema.optional(),
  awsTags: awsTags.optional(),
  /** The only roles that the token may assume, by their exact names. */
  awsRoles: z.array(z.string().min(1).max(2048)).min(1).max(50).optional(),
  keys: stsKeysSchema.optional(),
  publish: stsPublishSchema.optional(),
})
export type StsEndpointSpec = z.infer<typeof stsEndpointSchema>

/** The `sts` block of a values document. Endpoints are read one by one later. */
export const stsFrameSchema = z.strictObject({
  endpoints: z.array(z.unknown()).max(200),
  /** External issuers, read later like the endpoints. */
  issuers: z.array(z.unknown()).max(50).optional(),
  /** The hosts of the token endpoints; all if absent. */
  hosts: z.array(z.string().min(1)).min(1).max(50).optional(),
  /** The audience of the service-account tokens that every endpoint accepts, unless it names another. */
  incomingAudience: z.string().min(1).max(256).optional(),
  /** Parameters of filters.StsInjector, which then answers at /sts/inject; `webhook` gives it a listener of its own. */
  injector: z.object({ webhook: z.unknown().optional() }).catchall(paramValueSchema).optional(),
  /** For every endpoint without its own value. */
  keys: stsKeysSchema.optional(),
  publish: stsPublishSchema.optional(),
  /** Values of OpenUnison's chart that have no meaning here. */
  image: z.unknown().optional(),
  openunison: z.unknown().optional(),
})
export type StsFrame = z.infer<typeof stsFrameSchema>

const kubernetesName = z
  .string()
  .regex(
    /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/,
    'is not a name in Kubernetes: small letters, digits, dots and hyphens',
  )

/** How an API server reaches the injector: by a separate listener, with a configured or generated certificate. */
export const stsWebhookSchema = z.strictObject({
  /** HOST:PORT */
  listen: z.string().min(1).max(300),

  /** A secret with `tls.crt` and `tls.key`. */
  secretName: z.string().min(1).optional(),
  /** PEM files, relative to the configuration. */
  certFile: z.string().min(1).optional(),
  keyFile: z.string().min(1).optional(),
  /** A PEM file: only callers with a certificate of these CAs are accepted. */
  clientAuthorities: z.string().min(1).optional(),

  /** The Kubernetes target whose API server calls; optional if there is only one. */
  cluster: z.string().min(1).optional(),
  /** The Service that it calls. */
  service: z
    .strictObject({ namespace: kubernetesName, name: kubernetesName, port: z.int().min(1).max(65_535).optional() })
    .optional(),
  /** The URL that it calls if that is not a Service, without a path. */
  url: z.string().min(1).max(2048).optional(),
  /** The name of the MutatingWebhookConfiguration. */
  configuration: kubernetesName.optional(),
})
export type StsWebhookSpec = z.infer<typeof stsWebhookSchema>
