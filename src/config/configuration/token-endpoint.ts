import type { StsPreset } from '#config/kinds/sts.ts'
import type { Template } from '#kernel/template.ts'
import type { TokenAlgorithm } from '#protocols/jwt/signing-key.ts'

/** An endpoint of the token service with all defaults filled in. */
export interface TokenEndpoint {
  readonly name: string
  /** Of the tokens it issues. */
  readonly audience: string
  /** The `iss` of its tokens. */
  readonly issuer: string
  readonly preset: StsPreset | undefined
  readonly algorithm: TokenAlgorithm
  readonly ttlSeconds: number
  readonly jti: boolean
  /** Its attributes are those of the workload. */
  readonly subject: Template
  /** Names of Kubernetes targets. */
  readonly clusters: readonly string[]
  /** Besides the clusters, or instead of them. */
  readonly subjectIssuers: readonly SubjectIssuer[]
  /** Of the service-account tokens it accepts. */
  readonly incomingAudience: string
  readonly acceptApiServerAudience: boolean
  readonly acceptTokensWithoutPod: boolean
  /** For how many seconds after its last answer an API server may be unavailable; 0: not at all. */
  readonly offlineSeconds: number
  readonly rateLimit: { readonly burst: number; readonly perMinute: number }
  /** Undefined: grants do not count. */
  readonly grants?: GrantLimits | undefined
  readonly awsTags: AwsTags | undefined
  readonly awsRoles: readonly string[]
}

/** An OpenID Connect issuer whose tokens are accepted by their signature alone. */
export interface SubjectIssuer {
  readonly name: string
  /** The `iss` of its tokens. */
  readonly issuer: string
  /** The `aud` that its tokens must have. */
  readonly audience: string
  /** Undefined: found by its discovery document. */
  readonly jwksUri: string | undefined
  /** PEM of the only CAs of its certificate; undefined: the default ones. */
  readonly authorities: string | undefined
  readonly algorithms: readonly string[]
  /** Claims that are attributes, besides `sub`. */
  readonly claims: readonly string[]
  /** Its tokens are those of service accounts of a cluster, which has its name. */
  readonly kubernetes: boolean
  readonly clockToleranceSeconds: number
}

/** Which TokenGrant objects count. Names may have one `*`. */
export interface GrantLimits {
  /** Empty: all. */
  readonly namespaces: readonly string[]
  /** What each namespace must have. */
  readonly namespaceLabels: ReadonlyMap<string, string>
  /** Empty: all. */
  readonly serviceAccounts: readonly string[]
  readonly maxServiceAccounts: number
  /** In one namespace. */
  readonly maxGrants: number
  /** How long the known grants count after the API server last confirmed them. */
  readonly staleSeconds: number
}

/** Session tags for AWS. */
export interface AwsTags {
  readonly principal: ReadonlyMap<string, Template>
  readonly transitive: readonly string[]
}

/** What distinguishes endpoints outside of the gateway. */
export interface EndpointName {
  readonly issuer: string
  readonly audience: string
}

/** In one text, for references. */
export const endpointName = ({ issuer, audience }: EndpointName): string => `${issuer} ${audience}`
