import type { KeyObject } from 'node:crypto'

/** The certificates and keys of the configuration, and the keys of this installation. */
export interface KeySource {
  /** The public key of a certificate or key by name; undefined if there is none. */
  publicKey(name: string): Promise<KeyObject | undefined>
  /** The certificate of that name, as PEM; undefined if there is none, or only a key. */
  certificate?(name: string): Promise<string | undefined>
  /** A signing key pair of this installation, created on first use and stored in its data folder. */
  signingKey(name: string): Promise<{ readonly privateKey: KeyObject; readonly publicKey: KeyObject }>
  /**
   * 256-bit secret keys for one purpose, shared by all gateways with the same database: the first signs, all of
   * them verify, so that keys can be rotated. At least one.
   */
  secretKeys(purpose: string): Promise<readonly KeyObject[]>
}
