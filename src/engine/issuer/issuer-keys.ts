import { createPublicKey, type KeyObject, type SignKeyObjectInput, sign } from 'node:crypto'
import { promisify } from 'node:util'
import type { ExternalSigningKey, JWKS } from 'oidc-provider'
import type { PublicTokenKey, TokenKey } from '#sdk/token-keys.ts'

const signInPool = promisify<string, Buffer, SignKeyObjectInput, Buffer>(sign)

/**
 * The keys of a ring as the provider takes them: the first signs, in the thread pool; the others only verify what they
 * signed before.
 */
export function providerKeys(
  { kid, privateKey }: TokenKey,
  published: readonly PublicTokenKey[],
  Key: typeof ExternalSigningKey,
): JWKS {
  class RingKey extends Key {
    readonly #public: KeyObject
    readonly #private: KeyObject | undefined

    constructor(jwk: PublicTokenKey) {
      super()
      this.#public = createPublicKey({ key: { ...jwk }, format: 'jwk' })
      this.#private = jwk['kid'] === kid ? privateKey : undefined
      Object.assign(this, { kid: jwk['kid'], alg: jwk['alg'] })
    }

    override keyObject(): KeyObject {
      return this.#public
    }

    override async sign(data: Uint8Array): Promise<Uint8Array> {
      if (this.#private === undefined) throw new Error('a key that does not sign any more was asked to')
      return signInPool('sha256', Buffer.from(data), { key: this.#private, dsaEncoding: 'ieee-p1363' })
    }
  }
  const active = published.filter((jwk) => jwk['kid'] === kid)
  const others = published.filter((jwk) => jwk['kid'] !== kid)
  return { keys: [...active, ...others].map((jwk) => new RingKey(jwk)) }
}
