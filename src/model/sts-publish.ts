import * as z from 'zod'

const url = z.url({ protocol: /^https?$/, error: 'is not a URL that starts with https://' })
const bucket = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
/** Parts of an object's name: no empty ones, no leading slash, nothing that a server would fold. */
const prefix = /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))(?:[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*)?$/
const kubernetesName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/

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
  namespace: z.string().max(63).regex(kubernetesName, 'is not the name of a Kubernetes object'),
  name: z.string().max(253).regex(kubernetesName, 'is not the name of a Kubernetes object'),
  invalidate: invalidate.optional(),
})

/** One place where both documents of an issuer are put. */
export const stsDestinationSchema = z.discriminatedUnion('type', [folder, s3, configMap], {
  error: 'must be one of folder, s3, configmap',
})
export type StsDestinationSpec = z.infer<typeof stsDestinationSchema>

export const stsPublishSchema = z.array(stsDestinationSchema).max(8)

const mountPath = /^[A-Za-z0-9_.-]{1,128}(?:\/[A-Za-z0-9_.-]{1,128}){0,4}$/

/** A key in the Transit engine of OpenBao or Vault, which signs and never hands out the private key. */
const transit = z.strictObject({
  type: z.literal('transit'),
  /** Such as `https://openbao.example.com:8200`. */
  address: url,
  namespace: z.string().min(1).max(256).optional(),
  /** Where the engine is mounted; `transit` when absent. */
  mount: z.string().regex(mountPath, 'is not a path such as transit, without a slash at either end').optional(),
  /** The endpoint's name when absent; created where there is none, if the policy allows it. */
  key: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,128}$/, 'is not the name of a key: letters, digits, dots, hyphens and underscores')
    .optional(),
  /** The certificate of the authority of `address`, in PEM; the authorities of the runtime when absent. */
  ca: z.union([z.string().startsWith('-----BEGIN CERTIFICATE-----').max(65_536), secretReference]).optional(),
  /** A token of the service; or `login`. */
  token: secretReference.optional(),
  /** Logs in with a JWT: the methods `kubernetes` and `jwt` of the service take it the same way. */
  login: z
    .strictObject({
      /** Where the method is mounted; `kubernetes` when absent. */
      mount: z.string().regex(mountPath, 'is not a path such as kubernetes, without a slash at either end').optional(),
      role: z.string().min(1).max(256),
      /** The token of the pod's service account when absent. */
      jwtFile: z.string().min(1).max(4096).optional(),
    })
    .optional(),
  /** New keys are created by the gateway; the service signs only until one of them does. */
  leave: z.boolean().optional(),
})
export type StsCustodySpec = z.infer<typeof transit>

/** How the keys of an endpoint are replaced. */
export const stsKeysSchema = z.strictObject({
  /** A made key is replaced after so many days; 0 never. */
  rotateDays: z.int().min(0).max(3650).optional(),
  /** `issuer` reads the documents back from the issuer URL before a key signs; `written` trusts what was written. */
  readBack: z.enum(['issuer', 'written']).optional(),
  /** How long caches in front of the issuer's host may keep the documents. */
  cdnSeconds: z.int().min(0).max(2_592_000).optional(),
  /** The service that keeps the private keys; the gateway's database when absent. */
  custody: transit.optional(),
})
export type StsKeysSpec = z.infer<typeof stsKeysSchema>
