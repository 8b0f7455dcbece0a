/** Failed tries under one key, such as an account or an address. */
export interface LoginFailures {
  readonly failures: number
  /** Tries before this time are refused. */
  readonly lockedUntil: Date
}

/** What a failure leads to. */
export interface FailurePolicy {
  /** How long the key is locked, in milliseconds, when it has failed so many times; 0 for not at all. Pure. */
  lockMillis(failures: number): number
  /** Failures are forgotten when there was none for so long after the lock ended. */
  readonly forgetMillis: number
}

/** Keys are opaque and of bounded length: hashes of what callers typed. */
export interface LoginFailureStore {
  /**
   * Counts a try as failed, atomically, unless the key is locked: then nothing changes and `refused` is true.
   */
  count(key: string, policy: FailurePolicy, now: Date): Promise<LoginFailures & { readonly refused: boolean }>
  /** Forgets the failures of a key. */
  clear(key: string): Promise<void>
  /** Takes one failure back, where a try turned out well that was not the key's own. */
  forgive(key: string): Promise<void>
  /** Removes what is forgotten; how many. */
  deleteForgotten(now: Date): Promise<number>
}
