import * as z from 'zod'
import { tokenAlgorithms } from '#kernel/signing-key.ts'
import { azRulesSchema } from '#model/az-rule.ts'
import { paramValueSchema } from '#model/params.ts'
import { stsKeysSchema, stsPublishSchema } from '#model/sts-publish.ts'

export const stsPresets = ['aws', 'azure', 'gcp', 'vault', 'kubernetes', 'anthropic'] as const
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
  /** By tag name: a text in which `${attribute}` stands for an attribute of the workload. */
  principal: z.record(z.string().min(1).max(128), z.string().min(1).max(256)),
  /** Names of tags that later sessions keep. */
  transitive: z.array(z.string().min(1).max(128)).max(50).optional(),
})

const rateLimit = z.strictObject({
  /** How many tokens one pod may have at once, after a pause. */
  burst: z.int().min(1).max(1000).optional(),
  perMinute: z.int().min(1).max(60_000).optional(),
})

/** An OpenID Connect issuer whose tokens are subjects of the exchange: a CI system, or a cluster without API access. */
export const stsSubjectIssuerSchema = z.strictObject({
  /** What subjects, rules and the audit call it. */
  name: z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?$/, 'may have lowercase letters, digits, dots and hyphens only'),
  /** The `iss` of its tokens, byte for byte. */
  issuer: z.string().min(1).max(1024),
  /** The `aud` that its tokens must have. */
  audience: z.string().min(1).max(1024),
  /** Where its keys are; found by its discovery document when absent. */
  jwksUri: z.string().min(1).max(2048).optional(),
  /** A PEM file, relative to the configuration: the only authorities of its certificate. */
  ca: z.string().min(1).optional(),
  algorithms: z
    .array(z.enum(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']))
    .min(1)
    .max(10)
    .optional(),
  /** Claims that become attributes, beside `sub`. */
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
    /** The endpoint's own name when absent. */
    keypair: z.string().min(1).optional(),
    /** Where on the host the documents stand; the host itself when absent. */
    path: z.string().startsWith('/').optional(),
  }),
  injector: z
    .strictObject({
      label: z.string().min(1),
      /** The preset's own when absent. */
      token_environment_variable_name: z.string().min(1).optional(),
      label_value_environment_variable_name: z.string().optional(),
      /** Values of the preset's settings where no annotation has others; `${attribute}` as in `environment`. */
      settings: z.record(z.string().min(1).max(64), z.string().min(1).max(32_768)).optional(),
      /** More variables: texts in which `${name}` stands for an attribute of the workload or a setting. */
      environment: z.record(z.string().min(1).max(253), z.string().min(1).max(4096)).optional(),
    })
    .optional(),
  explicit_certificate_trust: z.boolean().optional(),
  host_in_openunison: z.boolean().optional(),
  additionalAttributes: z.array(additionalAttribute).max(50).optional(),

  /** The consumer whose limits the tokens must keep. */
  preset: z.enum(stsPresets).optional(),
  ttlSeconds: z.int().min(60).max(86_400).optional(),
  algorithm: z.enum(tokenAlgorithms).optional(),
  /** A `jti` in each token. The audit has one either way. */
  jti: z.boolean().optional(),
  /** The `sub` of the tokens, with `${attribute}` for attributes of the workload. */
  subject: z.string().min(1).max(1024).optional(),
  /** Several workloads are meant to have one subject. */
  sharedSubject: z.boolean().optional(),
  /** Names of Kubernetes targets; may be left out where there is only one. */
  clusters: z.array(z.string().min(1)).min(1).max(64).optional(),
  /** Names of `issuers` of the block. */
  subjectIssuers: z.array(z.string().min(1)).min(1).max(20).optional(),
  incomingAudience: z.string().min(1).max(256).optional(),
  /** Also accept tokens made for the API server, as the predecessor's sidecars send. */
  acceptApiServerAudience: z.boolean().optional(),
  /** Also accept tokens that are not bound to a pod. */
  acceptTokensWithoutPod: z.boolean().optional(),
  whenApiServerIsAway: z.enum(['required', 'offline-ok']).optional(),
  /** How long after its last answer an API server may be away, where `offline-ok`. */
  offlineSeconds: z.int().min(1).max(3600).optional(),
  rateLimit: rateLimit.optional(),
  awsTags: awsTags.optional(),
  /** The only roles that the token may assume, by their exact names. */
  awsRoles: z.array(z.string().min(1).max(2048)).min(1).max(50).optional(),
  keys: stsKeysSchema.optional(),
  publish: stsPublishSchema.optional(),
})
export type StsEndpointSpec = z.infer<typeof stsEndpointSchema>

/** The `sts` block of a values document, with its endpoints left alone, to be read one by one. */
export const stsFrameSchema = z.strictObject({
  endpoints: z.array(z.unknown()).max(200),
  /** Outside issuers, left alone like the endpoints. */
  issuers: z.array(z.unknown()).max(50).optional(),
  /** The hosts that the token endpoints answer on; all when absent. */
  hosts: z.array(z.string().min(1)).min(1).max(50).optional(),
  /** The audience of the service-account tokens that every endpoint takes, unless it names another. */
  incomingAudience: z.string().min(1).max(256).optional(),
  /** Parameters of filters.StsInjector, which then answers at /sts/inject; `webhook` gives it a listener of its own. */
  injector: z.object({ webhook: z.unknown().optional() }).catchall(paramValueSchema).optional(),
  /** For every endpoint that does not say otherwise. */
  keys: stsKeysSchema.optional(),
  publish: stsPublishSchema.optional(),
})
export type StsFrame = z.infer<typeof stsFrameSchema>
