import type { RequestPlace } from '#sdk/http/host-origins.ts'

/** The issuers of tokens with their keys, for administrators. Private parts of keys are never in it. */
export interface TokenReportAccess {
  /** The issuer of an OpenID Connect issuer is an address at the host of the request, or else at its first host. */
  describe(request: RequestPlace): Promise<readonly TokenIssuerFacts[]>
}

export interface TokenIssuerFacts {
  readonly name: string
  /** For workloads, or for users of OpenID Connect clients. */
  readonly kind: 'workloads' | 'users'
  /** Where it is configured. */
  readonly at: string
  readonly issuer: string
  readonly algorithm: string
  /** The longest lifetime of a token. */
  readonly maxTokenSeconds: number
  /** The audience of its tokens; of workloads only. */
  readonly audience?: string
  /** Clusters and issuers whose tokens it exchanges. */
  readonly accepts: readonly string[]
  /** The number of rules; without any, no one gets a token. */
  readonly rules: number
  /** In the order of their lives; absent if they can't be read. */
  readonly keys?: readonly TokenKeyFacts[]
  /** The destinations of the documents, and reading them back. */
  readonly publications: readonly PublicationFacts[]
}

export interface TokenKeyFacts {
  readonly kid: string
  readonly algorithm: string
  readonly state: 'next' | 'active' | 'retiring'
  /** Comes from a file or a secret, whose owner replaces it. */
  readonly given: boolean
  /** The service that stores the private part, such as `transit/aws`. */
  readonly custody?: string
  readonly created: Date
  readonly visibleSince?: Date
  readonly activated?: Date
  /** When the next key may sign, as far as known. */
  readonly activatesAt?: Date
  /** When it is removed from the documents. */
  readonly goneAt?: Date
}

interface PublicationFacts {
  readonly place: string
  /** The last success. */
  readonly done?: Date
  /** Failed tries since then. */
  readonly failures: number
  readonly error?: string
  readonly retryAt?: Date
}
