import { createPublicKey, type KeyObject } from 'node:crypto'
import type { ExternalSigningKey, JWKS } from 'oidc-provider'
import type { PublicTokenKey, TokenKey } from '#sdk/sts/token-keys.ts'

/** The keys of a ring as the provider takes them: the first signs; the others only verify what they signed before. */
export function providerKeys(
  signer: TokenKey,
  published: readonly PublicTokenKey[],
  Key: typeof ExternalSigningKey,
): JWKS {
  const { kid } = signer
  class RingKey extends Key {
    readonly #public: KeyObject

    constructor(jwk: PublicTokenKey) {
      super()
      this.#public = createPublicKey({ key: { ...jwk }, format: 'jwk' })
      Object.assign(this, { kid: jwk['kid'], alg: jwk['alg'] })
    }

    override keyObject(): KeyObject {
      return this.#public
    }

    override async sign(data: Uint8Array): Promise<Uint8Array> {
      if (this.kid !== kid) throw new Error('a key that no longer signs was asked to')
      return signer.sign(Buffer.from(data))
    }
  }
  const active = published.filter((jwk) => jwk['kid'] === kid)
  const others = published.filter((jwk) => jwk['kid'] !== kid)
  return { keys: [...active, ...others].map((jwk) => new RingKey(jwk)) }
}
