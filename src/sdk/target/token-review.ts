import type { Target } from '#sdk/target/target.ts'

/** The API server's review of a token. */
export interface TokenReview {
  readonly authenticated: boolean
  /** Why the token could not be checked; for the log. */
  readonly error: string | undefined
  readonly username: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: ReadonlyMap<string, readonly string[]>
  /** The requested audiences that the token has. */
  readonly audiences: readonly string[]
}

/** Optional: the target is a cluster that can review tokens. */
export interface TokenReviewer extends Target {
  /**
   * Reviews for the cluster's own audiences if none are given. A rejected token is a result; throws
   * TARGET_UNREACHABLE if there is none.
   */
  reviewToken(token: string, audiences: readonly string[]): Promise<TokenReview>
}

export const reviewsTokens = (target: Target): target is TokenReviewer => 'reviewToken' in target

/** The claims of a service-account token, with its signature, issuer and times verified by the cluster's keys. */
export interface VerifiedAccountToken {
  readonly issuer: string
  /** `system:serviceaccount:<namespace>:<name>` */
  readonly username: string
  readonly uid: string
  readonly audiences: readonly string[]
  readonly expires: Date
  /** `pod-name`, `pod-uid`, `node-name`, `node-uid` and `credential-id`, if they are known. */
  readonly extras: ReadonlyMap<string, string>
}

export type AccountTokenVerdict =
  | { readonly kind: 'verified'; readonly token: VerifiedAccountToken }
  /** `foreign`: signed by a key that is not the cluster's. `reason` is for the log. */
  | { readonly kind: 'refused'; readonly foreign: boolean; readonly reason: string; readonly expired?: boolean }

/** Optional: the target is a cluster whose tokens can be verified without a call for each. */
export interface AccountTokenVerifier extends TokenReviewer {
  /** The caller checks the audience. Throws TARGET_UNREACHABLE if the cluster's keys are not available. */
  verifyAccountToken(token: string): Promise<AccountTokenVerdict>
  /** Whether the cluster's keys are known, so that most tokens are verified without a call. */
  hasKeys?(): boolean
}

export const verifiesAccountTokens = (target: Target): target is AccountTokenVerifier =>
  'reviewToken' in target && 'verifyAccountToken' in target
