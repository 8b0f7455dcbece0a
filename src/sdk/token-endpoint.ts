import type { TokenAlgorithm } from '#kernel/signing-key.ts'
import type { Template } from '#kernel/template.ts'
import type { StsPreset } from '#model/sts.ts'

/** An endpoint of the token service with every default put in. */
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
  /** Of the service-account tokens it takes. */
  readonly incomingAudience: string
  readonly acceptApiServerAudience: boolean
  readonly acceptTokensWithoutPod: boolean
  /** For how many seconds after its last answer an API server may be away; 0: not at all. */
  readonly offlineSeconds: number
  readonly rateLimit: { readonly burst: number; readonly perMinute: number }
  readonly awsTags: AwsTags | undefined
  readonly awsRoles: readonly string[]
}

export interface AwsTags {
  readonly principal: ReadonlyMap<string, Template>
  readonly transitive: readonly string[]
}
