import type { Target } from '#sdk/target/target.ts'

/** What a cluster's API server says about a token. */
export interface TokenReview {
  readonly authenticated: boolean
  /** Why the token could not be checked; for the log. */
  readonly error: string | undefined
  readonly username: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: ReadonlyMap<string, readonly string[]>
  /** The audiences asked for that the token has. */
  readonly audiences: readonly string[]
}

/** Optional: the target is a cluster that can tell whose token this is. */
export interface TokenReviewer extends Target {
  /**
   * Asks for the cluster's own audiences when none are given. A token that is not accepted is an answer;
   * throws TARGET_UNREACHABLE when there is none.
   */
  reviewToken(token: string, audiences: readonly string[]): Promise<TokenReview>
}

export const reviewsTokens = (target: Target): target is TokenReviewer => 'reviewToken' in target

/** What a service-account token says of itself, with its signature, issuer and times checked by the cluster's keys. */
export interface VerifiedAccountToken {
  readonly issuer: string
  /** `system:serviceaccount:<namespace>:<name>` */
  readonly username: string
  readonly uid: string
  readonly audiences: readonly string[]
  readonly expires: Date
  /** `pod-name`, `pod-uid`, `node-name`, `node-uid` and `credential-id`, where they are known. */
  readonly extras: ReadonlyMap<string, string>
}

export type AccountTokenVerdict =
  | { readonly kind: 'verified'; readonly token: VerifiedAccountToken }
  /** `foreign`: signed by a key that is not the cluster's. `reason` is for the log. */
  | { readonly kind: 'refused'; readonly foreign: boolean; readonly reason: string; readonly expired?: boolean }

/** Optional: the target is a cluster whose tokens can be verified without asking it about each. */
export interface AccountTokenVerifier extends TokenReviewer {
  /** The audience is left to the caller. Throws TARGET_UNREACHABLE when the cluster's keys cannot be had. */
  verifyAccountToken(token: string): Promise<AccountTokenVerdict>
  /** Whether the cluster's keys are known, so that most tokens are verified without asking it. */
  hasKeys?(): boolean
}

export const verifiesAccountTokens = (target: Target): target is AccountTokenVerifier =>
  'reviewToken' in target && 'verifyAccountToken' in target
