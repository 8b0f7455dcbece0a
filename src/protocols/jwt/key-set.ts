import type { KeyObject } from 'node:crypto'
import { chooseKey, type VerificationKey, verificationKey } from '#protocols/jwt/verification-key.ts'

/** The keys of one issuer. */
export interface KeySet {
  /**
   * The key for a token with this header; undefined when the issuer has none such.
   * Throws TARGET_UNREACHABLE when the issuer's keys cannot be had.
   */
  find(algorithm: string, kid: string | undefined): Promise<VerificationKey | undefined>
  /** Whether the keys at hand are young enough to be trusted. Costs nothing; called for every request. */
  fresh(): boolean
}

/** One key, known beforehand. A token's `kid` is not looked at, since a certificate has none. */
export function pinnedKeySet(publicKey: KeyObject): KeySet {
  const keys = [verificationKey(publicKey)]
  return {
    find: async (algorithm) => chooseKey(keys, algorithm, undefined),
    fresh: () => true,
  }
}
