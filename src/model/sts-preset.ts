import { type TokenAlgorithm, tokenAlgorithms } from '#kernel/signing-key.ts'
import type { StsPreset } from '#model/sts.ts'

/** What a consumer of tokens accepts. */
export interface ConsumerLimits {
  readonly algorithms: readonly TokenAlgorithm[]
  /** The longest lifetime it accepts, at most a day. */
  readonly ttlSeconds: number
  /** In bytes; subjects are ASCII everywhere. */
  readonly leastSubject: number
  readonly mostSubject: number
  readonly mostAudience: number
  readonly mostIssuer: number
  /** It rejects an issuer with a port. */
  readonly noPort: boolean
  readonly mostTokenBytes: number
  /** Tokens have a `jti` unless the endpoint says otherwise. */
  readonly jti: boolean
  /** The audience that it accepts by default. */
  readonly usualAudience: string | undefined
}

const hour = 3600
const day = 24 * hour

/** AWS, Anthropic and API servers verify RSA and ECDSA only. */
const withoutEdDsa: readonly TokenAlgorithm[] = ['RS256', 'ES256', 'ES384']

/** OpenID Connect Core 2 for the subject; otherwise what all consumers accept. */
const anybody: ConsumerLimits = {
  algorithms: tokenAlgorithms,
  ttlSeconds: hour,
  leastSubject: 1,
  mostSubject: 255,
  mostAudience: 1024,
  mostIssuer: 1024,
  noPort: false,
  mostTokenBytes: 16 * 1024,
  jti: true,
  usualAudience: undefined,
}

const limits: Readonly<Record<StsPreset, ConsumerLimits>> = {
  aws: { ...anybody, algorithms: withoutEdDsa, ttlSeconds: day, leastSubject: 6, mostAudience: 255, noPort: true },
  azure: {
    ...anybody,
    algorithms: ['RS256'],
    ttlSeconds: day,
    mostSubject: 600,
    mostAudience: 600,
    mostIssuer: 600,
    usualAudience: 'api://AzureADTokenExchange',
  },
  gcp: { ...anybody, algorithms: ['RS256', 'ES256'], ttlSeconds: 6 * hour, mostSubject: 127, mostAudience: 256 },
  vault: { ...anybody, ttlSeconds: day },
  kubernetes: { ...anybody, algorithms: withoutEdDsa, ttlSeconds: day },
  // Several processes read a file, and a consumer may accept a `jti` only once.
  anthropic: { ...anybody, algorithms: withoutEdDsa, noPort: true, jti: false },
}

export const consumerLimits = (preset: StsPreset | undefined): ConsumerLimits =>
  preset === undefined ? anybody : limits[preset]
