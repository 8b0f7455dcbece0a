import type { AccountTokenVerdict, TokenReview } from '#protocols/kubernetes/cluster.ts'
import type { Target } from '#sdk/target/target.ts'

/** Optional: the target is a cluster that can review tokens. */
export interface TokenReviewer extends Target {
  /**
   * Reviews for the cluster's own audiences if none are given. A rejected token is a result; throws
   * TARGET_UNREACHABLE if there is none.
   */
  reviewToken(token: string, audiences: readonly string[]): Promise<TokenReview>
}

/** Whether the target can review service-account tokens. */
export const reviewsTokens = (target: Target): target is TokenReviewer => 'reviewToken' in target

/** Optional: the target is a cluster whose tokens can be verified without a call for each. */
export interface AccountTokenVerifier extends TokenReviewer {
  /** The caller checks the audience. Throws TARGET_UNREACHABLE if the cluster's keys are not available. */
  verifyAccountToken(token: string): Promise<AccountTokenVerdict>
  /** Whether the cluster's keys are known, so that most tokens are verified without a call. */
  hasKeys?(): boolean
}

/** Whether the target can check service-account tokens offline. */
export const verifiesAccountTokens = (target: Target): target is AccountTokenVerifier =>
  'reviewToken' in target && 'verifyAccountToken' in target
