import type { KeyObject } from 'node:crypto'
import type { KeyCustody } from '#engine/keys/key-ring.ts'
import type { TokenAlgorithm } from '#kernel/signing-key.ts'

/** One version of a key that another service keeps. */
export interface CustodyVersion {
  readonly version: number
  readonly publicKey: KeyObject
}

/** A key in another service, which signs with it and never hands it out. Every call rejects with TARGET_UNREACHABLE while that is away. */
export interface KeyCustodian {
  /** The mount and the name of the key, such as `transit/aws`. */
  readonly name: string
  /** The newest version; the key is created where there is none. Rejects with INTERNAL for a key of another algorithm. */
  latest(algorithm: TokenAlgorithm): Promise<CustodyVersion>
  /** Another version, which is then the newest. */
  rotate(algorithm: TokenAlgorithm): Promise<CustodyVersion>
  /** With this version of this key, which may be another key of the same service than the newest one. */
  sign(custody: KeyCustody, algorithm: TokenAlgorithm, content: Buffer): Promise<Buffer>
}
