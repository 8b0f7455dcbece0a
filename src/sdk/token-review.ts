import type { Target } from '#sdk/target.ts'

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
